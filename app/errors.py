"""What can go wrong, in the words of the domain; which HTTP status that is, only `app.http.problems` knows."""


class VmsizesError(Exception):
    """Every error of ours; its text is fit to be shown to a person."""


class NotFound(VmsizesError):
    """Something was asked for by its name, and the catalog has no such thing."""

    def __init__(self, kind: str, name: str, *, suggestions: tuple[str, ...] = ()) -> None:
        self.kind, self.name, self.suggestions = kind, name, suggestions
        hint = f" Did you mean {' or '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"There is no {kind} named {name!r}.{hint}")


class BadQuery(VmsizesError):
    """A parameter is well formed, but this catalog cannot answer it: names the field, the value, what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field}{'' if value is None else f'={value}'}: {allowed}")


class BadCursor(BadQuery):
    """A cursor is none of ours, or of another question."""

    def __init__(self, cursor: str) -> None:
        allowed = "take next_cursor as it was given, with the same filters and order"
        super().__init__("cursor", cursor[:40], allowed)


class CursorGone(VmsizesError):
    """The catalog has changed since the page before, so that the next one would not belong to it."""

    def __init__(self, cursor_revision: str, current_revision: str) -> None:
        self.cursor_revision, self.current_revision = cursor_revision, current_revision
        super().__init__(
            f"The catalog has changed since this list was begun (revision {cursor_revision}, now {current_revision}): "
            "a row might come twice or never. Begin again without cursor."
        )


class BadWorkload(VmsizesError):
    """A workload contradicts itself, or says too little to be answered: names the field, and what is wrong."""

    def __init__(self, field: str, detail: str) -> None:
        self.field, self.detail = field, detail
        super().__init__(f"{field}: {detail}")


class BadData(VmsizesError):
    """A source cannot be read; carries the file, the line and the column where there is one."""

    def __init__(self, detail: str, *, file: str, line: int | None = None, column: str | None = None) -> None:
        self.detail, self.file, self.line, self.column = detail, file, line, column
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {f'column {column!r}: ' if column else ''}{detail}")


class NotReady(VmsizesError):
    """The database cannot be reached, or it has no schema or no catalog yet; says what to do next."""


class Busy(VmsizesError):
    """As much of this is being done as can be done at once; says when to try again."""
