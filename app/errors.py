"""Domain errors; `app.http.problems` maps them to HTTP statuses, `app.cli` to exit codes."""

from functools import partial


class VmsizesError(Exception):
    """The base of all errors that the program raises on purpose; the message is written for users."""


class NotFound(VmsizesError):
    """The catalog has nothing of this kind and name; `suggestions` are the nearest names, `hint` says what it is.

    `others` are errors of the same kind about further names.
    """

    others: "tuple[NotFound, ...]" = ()

    def __init__(self, kind: str, name: str, *, suggestions: tuple[str, ...] = (), hint: str = "") -> None:
        self.kind, self.name, self.suggestions = kind, name, suggestions
        advice = f"Did you mean {' or '.join(suggestions)}?" if suggestions else hint
        self.advice = advice.replace("Did you", "did you", 1).rstrip(".")
        what = f"{kind} {name}" if kind == "revision" else f"{kind} named {name!r}"
        super().__init__(f"There is no {what}. {advice}".rstrip())

    def of_value(self, where: str) -> str:
        """Return the same as the phrase that follows `name=value: `; `where` says what lists the names."""
        more = (part for other in self.others for part in (f"none is named {other.name!r}", other.advice))
        return "; ".join(filter(None, (f"no such {self.kind}", self.advice, *more, where))).replace("?;", "?")


class Ambiguous(NotFound):
    """Several things of this kind have the name in theirs; `suggestions` are their whole names."""

    def __init__(self, kind: str, name: str, *, suggestions: tuple[str, ...]) -> None:
        super().__init__(kind, name, suggestions=suggestions)
        self.args = (f"Several {kind}s are called {name!r}: name {', '.join(suggestions[:-1])} or {suggestions[-1]}.",)


class BadQuery(VmsizesError):
    """A parameter is well formed, but its value is unknown to this catalog; says what is allowed."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field, self.value, self.allowed = field, value, allowed
        super().__init__(f"{field}{'' if value is None else f'={value}'}: {allowed}")


class BadCursor(BadQuery):
    """A cursor was not issued by this service, or for another request."""

    def __init__(self, cursor: str) -> None:
        allowed = "use next_cursor as it was returned, with the same filters and order"
        super().__init__("cursor", cursor[:40], allowed)


class CursorGone(VmsizesError):
    """The catalog has changed since the previous page, so the next one would not continue it."""

    def __init__(self, cursor_revision: str, current_revision: str) -> None:
        self.cursor_revision, self.current_revision = cursor_revision, current_revision
        super().__init__(
            f"The catalog has changed since this list was started (revision {cursor_revision}, now {current_revision})"
            ": rows could repeat or be missing. Start again without cursor."
        )


class CatalogChanged(Exception):  # it says what happened, as the others do
    """An ingest committed while a question was answered: it is to be asked again, of the new revision."""


class BadWorkload(VmsizesError):
    """A workload contradicts itself or is incomplete; `field` is the one to change, `value` what it holds, if known."""

    def __init__(self, field: str, detail: str, value: object = None) -> None:
        self.field, self.detail, self.value = field, detail, value
        super().__init__(f"{field}{'' if value is None else f'={value}'}: {detail}")


class UnknownInBody(BadWorkload):
    """A field of a body is well formed, but its value is unknown to this catalog, as that of a BadQuery."""


class BadData(VmsizesError):
    """A source file cannot be read; has the file, and the line and the column if known."""

    def __init__(self, detail: str, *, file: str, line: int | None = None, column: str | None = None) -> None:
        self.detail, self.file, self.line, self.column = detail, file, line, column
        place = file if line is None else f"{file}:{line}"
        super().__init__(f"{place}: {f'column {column!r}: ' if column else ''}{detail}")

    def __reduce__(self) -> tuple[object, ...]:
        """Say how it is made again in another process: by keywords."""
        return partial(BadData, file=self.file, line=self.line, column=self.column), (self.detail,)


class FetchError(VmsizesError):
    """Something of a vendor cannot be fetched, or is not what it should be; says what was asked and what came."""


class NotReady(VmsizesError):
    """The database cannot be reached, or has no schema or no catalog yet; says what to do."""


class Busy(VmsizesError):
    """The service is at its limit of concurrent work of this kind; says when to retry."""
