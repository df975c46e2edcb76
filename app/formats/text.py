"""Rows as lines of text: CSV (RFC 4180) and NDJSON, each block of rows on its own."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import orjson

from app.catalog.fields import FieldKind

RowValues = Sequence[Any]
"""The values of a row in the order of its columns."""

FORMULA_PREFIXES = (*"=+-@\t\r\n", *"\uff1d\uff0b\uff0d\uff20")
"""A spreadsheet may run a cell that begins so; the last four are the full-width forms of the first."""
LIST_SEPARATOR = "; "
"""What stands between the parts of a list, here and in every CSV file that the catalog reads."""


class TextFormat(Protocol):
    """Writes rows as text in UTF-8: the head first, then any number of blocks."""

    head: bytes

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        """Take the columns, in their order."""

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Write a block of rows."""


class Csv:
    """CSV: a header line always, CRLF, an unknown value is an empty cell, a list is joined by BETWEEN.

    A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """

    def __init__(self, columns: Mapping[str, FieldKind]) -> None:
        self.head = _lines([list(columns)])
        made = ((place, _CELL_FORMATTERS.get(kind)) for place, kind in enumerate(columns.values()))
        self._cells = [(place, cell) for place, cell in made if cell is not None]

    def write(self, rows: Iterable[RowValues]) -> bytes:
        """Write a block of rows."""
        return _lines(map(self._row, rows))

    def _row(self, values: RowValues) -> RowValues:
        cells = list(values)
        for place, cell in self._cells:
            if cells[place] is not None:
                cells[place] = cell(cells[place])
        return cells


class Ndjson:
    """NDJSON: a JSON object a line, as it stands in the JSON list."""

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
    """Put an apostrophe before a text that a spreadsheet would run as a formula."""
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) else text


def _format_bool(value: object) -> str:
    return "true" if value else "false"


def _format_list(parts: Iterable[object]) -> str:
    return escape_formula(LIST_SEPARATOR.join(map(str, parts)))


_CELL_FORMATTERS: Mapping[FieldKind, Callable[[Any], str]] = {
    "text": escape_formula,
    "boolean": _format_bool,
    "list": _format_list,
}
"""How a value of a kind is written where that is not its own text: numbers and dates are."""
