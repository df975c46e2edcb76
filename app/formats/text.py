"""Writes blocks of rows as lines of text: CSV (RFC 4180) and NDJSON."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from app.catalog.fields import FieldKind

Columns = Sequence[Sequence[Any]]
"""The values of a block of rows, which has at least one, by column: to convert a column at once takes half the time."""

FORMULA_PREFIXES = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""A spreadsheet may run a cell that starts with one of these; the last four are the full-width forms of the first."""
_READ_AS_DATE = re.compile(r"[0-9]+/[0-9]+(/[0-9]+)?|[0-9]{1,2}-[0-9]{1,2}(-[0-9]{2,4})?")
"""What a spreadsheet takes for a day: `1/3`, a third of a GPU, becomes 3 January or 1 March."""
LIST_SEPARATOR = "; "
"""Separates the items of a list in a CSV cell, here and in every CSV file that the catalog reads."""


class TextFormat(ABC):
    """Writes rows as UTF-8 text: `head` first, then any number of blocks, and the end."""

    head: bytes
    media_type: str

    @abstractmethod
    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        """Take the columns, in their order."""

    @abstractmethod
    def write(self, columns: Columns) -> bytes:
        """Write a block of rows."""

    def end(self) -> bytes:
        """Write what follows the last block."""
        return b""


class Csv(TextFormat):
    """CSV: always a header line, CRLF line ends, unknown values as empty cells, lists joined by LIST_SEPARATOR.

    A text that a spreadsheet would run as a formula, or take for a day, gets a leading apostrophe.
    """

    media_type = "text/csv"

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self._kinds = list(columns.values())
        self.head = _to_lines([[_quote(name)] for name in columns])

    def write(self, columns: Columns) -> bytes:
        """Write a block of rows."""
        return _to_lines([_to_cells(kind, column) for kind, column in zip(self._kinds, columns, strict=True)])


def _to_cells(kind: FieldKind, column: Sequence[Any]) -> Iterable[str]:
    """Return the cells of a column; its few different values, if they are no prices, are each written once."""
    if kind == "number":
        return ["" if number is None else str(number) for number in column]
    if kind == "list":
        return ["" if parts is None else _quote(escape_cell(LIST_SEPARATOR.join(map(str, parts)))) for parts in column]
    to_text = _CELL_FORMATTERS[kind]
    cells = {value: "" if value is None else _quote(to_text(value)) for value in set(column)}
    return map(cells.__getitem__, column)


def _to_lines(cells: Sequence[Iterable[str]]) -> bytes:
    """Join the cells of columns to lines; an empty cell that is alone in its line is quoted, or there would be none."""
    lines: Iterable[str] = map(",".join, zip(*cells, strict=True))
    if len(cells) == 1:
        lines = (line or '""' for line in lines)
    return "\r\n".join([*lines, ""]).encode()


_QUOTED = re.compile('[",\r\n]')


def _quote(text: str) -> str:
    if not _QUOTED.search(text):
        return text
    return '"{}"'.format(text.replace('"', '""'))


class Ndjson(TextFormat):
    """NDJSON: one JSON object per line, the same as in the JSON list."""

    head, media_type = b"", "application/x-ndjson"

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self._names = tuple(columns)

    def write(self, columns: Columns) -> bytes:
        """Write a block of rows."""
        block = bytearray()
        for row in zip(*columns, strict=True):
            block += orjson.dumps(dict(zip(self._names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
        return bytes(block)


def escape_cell(text: str) -> str:
    """Return a text with a leading apostrophe if a spreadsheet would run it as a formula, or take it for a day.

    So does a text that looks like one that got an apostrophe, or `unescape_cell` could not distinguish the two.
    """
    return f"'{text}" if _is_misread(text) else text


def unescape_cell(cell: str) -> str:
    """Return the text of which `escape_cell` made a cell."""
    return cell[1:] if cell.startswith("'") and _is_misread(cell) else cell


def _is_misread(text: str) -> bool:
    bare = text.lstrip("'")
    return bare.startswith(FORMULA_PREFIXES) or _READ_AS_DATE.fullmatch(bare) is not None


_CELL_FORMATTERS: Mapping[FieldKind, Callable[[Any], str]] = {
    "integer": str,
    "text": escape_cell,
    "boolean": lambda value: "true" if value else "false",
    "date": str,
}
"""Writes a value of a kind as text."""
