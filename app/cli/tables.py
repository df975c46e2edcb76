"""How rows become a table that fits a terminal: columns are chosen by their importance, values are never cut."""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.formats.text import LIST_SEPARATOR

Record = Mapping[str, Any]
GAP = "  "
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""A document could otherwise move the cursor of whoever reads what it says."""


def terminal_width() -> int | None:
    """The width of the terminal; None where there is none, so that nothing is left out of what a program reads."""
    return max(shutil.get_terminal_size().columns, 20) if sys.stdout.isatty() else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: `rank` says how soon it is left out (0 is always shown), `wraps` that words may wrap."""

    heading: str
    rank: int = 0
    wraps: bool = False
    format: Callable[[Any], str] | None = None


def format_value(value: object) -> str:
    """Write a value for a person: unknown is `-`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    text = LIST_SEPARATOR.join(map(str, value)) or "-" if isinstance(value, list) else str(value)
    return text.translate(_CONTROL)


def format_table(
    rows: Sequence[Record], columns: Mapping[str, Column], max_width: int | None
) -> tuple[list[str], list[str]]:
    """Lay rows out in at most so many characters a line; gives the lines, and the headings that were left out.

    A column that no row has is none.
    """
    there = {name: column for name, column in columns.items() if not rows or any(name in row for row in rows)}
    made = {name: _RenderedColumn.render(name, column, rows) for name, column in there.items()}
    if max_width is None:
        return list(_table_lines(made.values(), {name: one.natural_width for name, one in made.items()})), []
    chosen = _choose_columns(list(made.values()), max_width)
    if not chosen:
        return list(_record_lines(list(made.values()), max_width)), []
    widths = _column_widths(chosen, max_width)
    left_out = [one.heading for one in made.values() if one not in chosen]
    return list(_table_lines(chosen, widths)), left_out


def min_table_width(rows: Sequence[Record], columns: Mapping[str, Column]) -> int:
    """How wide a table of all these columns is at least."""
    made = [_RenderedColumn.render(name, column, rows) for name, column in columns.items()]
    return sum(one.min_width for one in made) + len(GAP) * (len(made) - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RenderedColumn:
    """A column with its cells written."""

    name: str
    heading: str
    rank: int
    wraps: bool
    right: bool
    cells: list[str]

    @classmethod
    def render(cls, name: str, column: Column, rows: Sequence[Record]) -> "_RenderedColumn":
        values = [row.get(name) for row in rows]
        write = column.format or format_value
        known = [value for value in values if value is not None]
        return cls(
            name=name,
            heading=column.heading,
            rank=column.rank,
            wraps=column.wraps,
            right=all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known),
            cells=["-" if value is None else write(value) for value in values],
        )

    @property
    def natural_width(self) -> int:
        return max(map(len, (self.heading, *self.cells)))

    @property
    def min_width(self) -> int:
        """The narrowest that cuts nothing."""
        if not self.wraps:
            return self.natural_width
        return max(len(self.heading), *(len(word) for cell in self.cells for word in cell.split()), 1)


def _choose_columns(columns: list[_RenderedColumn], max_width: int) -> list[_RenderedColumn]:
    """The most important columns that fit beside each other; none where not even those of rank 0 do."""
    chosen: set[str] = set()
    room = max_width + len(GAP)
    for column in sorted(columns, key=lambda column: column.rank):
        needed = column.min_width + len(GAP)
        if needed <= room:
            chosen.add(column.name)
            room -= needed
        elif column.rank == 0:
            return []
    return [column for column in columns if column.name in chosen]


def _column_widths(columns: Sequence[_RenderedColumn], max_width: int) -> dict[str, int]:
    """The width of each column: those that wrap share what the others leave, the first of them first."""
    room = max_width - sum(column.min_width for column in columns) - len(GAP) * (len(columns) - 1)
    widths = {}
    for column in columns:
        more = min(room, column.natural_width - column.min_width)
        widths[column.name] = column.min_width + more
        room -= more
    return widths


def _table_lines(columns: Iterable[_RenderedColumn], widths: Mapping[str, int]) -> Iterator[str]:
    shown = list(columns)
    yield _table_line([(column, column.heading) for column in shown], widths)
    for index in range(len(shown[0].cells) if shown else 0):
        cells = [
            textwrap.wrap(column.cells[index], widths[column.name], break_long_words=False, break_on_hyphens=False)
            if column.wraps
            else [column.cells[index]]
            for column in shown
        ]
        for part in range(max(map(len, cells), default=0)):
            texts = [cell[part] if part < len(cell) else "" for cell in cells]
            yield _table_line(list(zip(shown, texts, strict=True)), widths)


def _table_line(cells: Sequence[tuple[_RenderedColumn, str]], widths: Mapping[str, int]) -> str:
    aligned = (
        text.rjust(widths[column.name]) if column.right else text.ljust(widths[column.name]) for column, text in cells
    )
    return GAP.join(aligned).rstrip()


def _record_lines(columns: Sequence[_RenderedColumn], max_width: int) -> Iterator[str]:
    """Every row as a block of lines, where the terminal is too narrow for a table."""
    label = max(len(column.heading) for column in columns)
    for index in range(len(columns[0].cells)):
        if index:
            yield ""
        for column in columns:
            yield from label_lines(column.heading, column.cells[index], label, max_width)


def label_lines(label: str, text: str, label_width: int, max_width: int | None) -> Iterator[str]:
    """A label and a text beside it, which goes on under itself."""
    indent = " " * (label_width + len(GAP))
    yield from wrap(text or "-", max_width, first=label.ljust(label_width) + GAP, indent=indent)


def wrap(text: str, max_width: int | None, *, first: str = "", indent: str = "") -> list[str]:
    """The lines of a text: wrapped between words at a width; a word that is longer than a line is left whole."""
    if max_width is None:
        return [first + text]
    return textwrap.wrap(
        text, max_width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
