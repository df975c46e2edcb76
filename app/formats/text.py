"""Writes rows as lines of text, block by block: CSV (RFC 4180) and NDJSON."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import orjson

from app.catalog.fields import FieldKind

RowValues = Sequence[Any]
"""The values of a row in the order of its columns."""

FORMULA_PREFIXES = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""A spreadsheet may run a cell that starts with one of these; the last four are the full-width forms of the first."""
_ESCAPED_PREFIXES = (*FORMULA_PREFIXES, "'")
LIST_SEPARATOR = "; "
"""Separates the items of a list in a CSV cell, here and in every CSV file that the catalog reads."""


class TextFormat(Protocol):
    """Writes rows as UTF-8 text: `head` first, then any number of blocks."""

    head: bytes

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        """Take the columns, in their order."""

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Write a block of rows."""


class Csv:
    """CSV: always a header line, CRLF line ends, unknown values as empty cells, lists joined by LIST_SEPARATOR.

    A text that a spreadsheet would run as a formula gets a leading apostrophe.
    """

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self.head = _lines([list(columns)])
        self._kinds = list(columns.values())

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Write a block of rows."""
        block = list(rows)
        if not block:
            return b""
        columns = zip(*block, strict=True)
        formatted = [_format_column(kind, column) for kind, column in zip(self._kinds, columns, strict=True)]
        return _lines(zip(*formatted, strict=True))


def _format_column(kind: FieldKind, column: Sequence[Any]) -> Iterable[Any]:
    """Return the cells of a column; its few different values are each written as text once."""
    if kind == "list":
        return [None if parts is None else _format_list(parts) for parts in column]
    if kind not in _CELL_FORMATTERS:
        return column
    to_text = _CELL_FORMATTERS[kind]
    texts = {value: to_text(value) for value in set(column) if value is not None}
    if all(value is text for value, text in texts.items()):
        return column
    return map(texts.get, column)


class Ndjson:
    """NDJSON: one JSON object per line, the same as in the JSON list."""

    head = b""

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self._names = tuple(columns)

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Write a block of rows."""
        block = bytearray()
        for row in rows:
            block += orjson.dumps(dict(zip(self._names, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)
        return bytes(block)


def _lines(rows: Iterable[RowValues]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def escape_formula(text: str) -> str:
    """Return a text with a leading apostrophe if a spreadsheet would run it as a formula.

    So does a text that looks like one that got an apostrophe, or `unescape_formula` could not tell the two apart.
    """
    return f"'{text}" if text.startswith(_ESCAPED_PREFIXES) and _is_formula(text) else text


def unescape_formula(cell: str) -> str:
    """Return the text of which `escape_formula` made a cell."""
    return cell[1:] if cell.startswith("'") and _is_formula(cell) else cell


def _is_formula(text: str) -> bool:
    return text.lstrip("'").startswith(FORMULA_PREFIXES)


def _format_bool(value: object) -> str:
    return "true" if value else "false"


def _format_list(parts: Iterable[object]) -> str:
    return escape_formula(LIST_SEPARATOR.join(map(str, parts)))


_CELL_FORMATTERS: Mapping[FieldKind, Callable[[Any], str]] = {
    "text": escape_formula,
    "boolean": _format_bool,
    "list": _format_list,
}
"""Writes the values of a kind as text; other kinds, numbers and dates, are written by `csv` itself."""
