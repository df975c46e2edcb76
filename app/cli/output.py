"""Prints what a command found: a table that fits the terminal for people, JSON or CSV for programs.

A table never cuts a value: columns that do not fit are left out by rank, and below the width of the most important
ones each row becomes a block of lines. This module must not load Rich: short commands would start noticeably later.
"""

import csv
import inspect
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from functools import cache, wraps
from typing import Annotated, Any

import typer

from app.catalog.fields import field_heading
from app.errors import BadQuery
from app.formats.text import LIST_SEPARATOR, escape_cell

Record = Mapping[str, Any]
"""A row of output: values by field name."""

GAP = "  "
_PIPED_WIDTH = 240
_MIN_TERMINAL_WIDTH = 20
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""Control characters are replaced: a source document could otherwise send escape sequences to the terminal."""


# Options


class Format(StrEnum):
    """Output formats of commands that print rows."""

    table = "table"
    json = "json"
    csv = "csv"


Json = Annotated[bool, typer.Option("--json", help="Print JSON, every field.", rich_help_panel="Output")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV, every field.", rich_help_panel="Output")]
Wide = Annotated[
    bool, typer.Option("--wide", help="Print all columns of the table, however wide.", rich_help_panel="Output")
]
Columns = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="NAME,...",
        help="Print these fields, in this order: names as in the JSON, `a.b` for b inside a.",
        rich_help_panel="Output",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """The output options of a command: the format, and which columns to print (none: the command's own)."""

    format: Format
    wide: bool = False
    columns: tuple[str, ...] = ()


def with_output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --wide, --columns, --json and --csv to a command, which gets them as its parameter `output`."""
    options = inspect.signature(_output_parameters).parameters.values()
    own = [one for one in inspect.signature(command).parameters.values() if one.name != "output"]
    rest = [own.pop()] if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD else []

    @wraps(command)
    def run(*, wide: bool, columns: str | None, as_json: bool, as_csv: bool, **values: Any) -> Any:
        return command(output=output_options(as_json=as_json, as_csv=as_csv, wide=wide, columns=columns), **values)

    signature = inspect.Signature([*own, *options, *rest])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads the options from
    run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return run


def _output_parameters(
    *, wide: Wide = False, columns: Columns = None, as_json: Json = False, as_csv: Csv = False
) -> None:
    """The output options, declared as Typer reads them; never called."""


def output_options(*, as_json: bool, as_csv: bool, wide: bool = False, columns: str | None = None) -> OutputOptions:
    """Build the output options; raises BadParameter for two that contradict each other."""
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv cannot be given together")
    if wide and (as_json or as_csv or columns is not None):
        raise typer.BadParameter("--wide only applies to the table: it cannot be given with --json, --csv or --columns")
    names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    if columns is not None and not names:
        raise typer.BadParameter("--columns needs names: --columns name,gpu_model")
    return OutputOptions(
        format=Format.json if as_json else Format.csv if as_csv else Format.table, wide=wide, columns=names
    )


# Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table: low ranks are left out last (0 never), `wraps` allows line breaks between words."""

    heading: str
    rank: int = 0
    wraps: bool = False
    format: Callable[[Any], str] | None = None


def size_columns(**ranks: int) -> dict[str, Column]:
    """Return the columns of fields of a size by name, each with its rank."""
    return {name: Column(heading=field_heading(name), rank=rank) for name, rank in ranks.items()}


def print_rows(
    rows: Sequence[Record],
    columns: Mapping[str, Column],
    output: OutputOptions,
    *,
    json_value: Any = None,
    objects: Sequence[Record] = (),
) -> None:
    """Print rows in the chosen format.

    The table has the columns that fit and a mark after sizes that are not verified, JSON and CSV every field, and each
    of them exactly the fields of `--columns` where given. `json_value` replaces the rows in JSON without `--columns`;
    `objects` are the full objects, row by row, in which `--columns` looks up paths that the rows do not have.
    """
    originals = objects or rows
    if output.columns:
        rows = _select_columns(rows, originals, output.columns)
        columns = {name: Column(heading=name) for name in output.columns}
    if output.format is Format.json:
        print_json(json_value if json_value is not None and not output.columns else rows)
    elif output.format is Format.csv:
        print_csv(rows)
    elif rows:
        marked = [_mark_name(row, full) for row, full in zip(rows, originals, strict=True)]
        _print_table(marked, columns, output, UNVERIFIED_NOTE if marked != list(rows) else "")


UNVERIFIED_NOTE = "* Not verified: no vendor page names the size, or it is withdrawn."


def mark_unverified(size: str) -> str:
    """Return the name of a size that is not verified as tables have it; UNVERIFIED_NOTE stands below them."""
    return f"{size}*"


def _mark_name(row: Record, full: Record) -> Record:
    name = "name" if "name" in row else "size"
    unverified = full.get("verified") is False or "UNVERIFIED" in full.get("warnings", ())
    return {**row, name: mark_unverified(row[name])} if unverified and name in row else row


def _select_columns(rows: Sequence[Record], objects: Sequence[Record], names: Sequence[str]) -> list[dict[str, Any]]:
    selected = [{name: _get_path(name, row, full) for name in names} for row, full in zip(rows, objects, strict=True)]
    for row in selected:
        for name, value in row.items():
            if value is _MISSING:
                check_column(name, rows[0])
    return selected


_MISSING = object()


def _get_path(name: str, row: Record, full: Record) -> Any:
    """Return a field of the row, or the value at a dotted path of the full object; None below an unknown value."""
    if name in row:
        return row[name]
    value: Any = full
    for step in name.split("."):
        if not isinstance(value, Mapping):
            return None if value is None else _MISSING
        if step not in value:
            return _MISSING
        value = value[step]
    return value


def check_column(name: str, known: Collection[str]) -> None:
    """Raise BadQuery, naming the nearest field, for a field that is not among the known ones."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise BadQuery("--columns", name, f"there is no such field; {hint}")


def _print_table(rows: Sequence[Record], columns: Mapping[str, Column], output: OutputOptions, note: str) -> None:
    max_width = None if output.wide or output.columns else terminal_width()
    lines, left_out = format_table(rows, columns, max_width)
    emphasize = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for index, line in enumerate(lines):
        print_line(f"\033[1m{line}\033[0m" if index == 0 and emphasize else line)
    if note:
        print_text(note)
    if left_out:
        print_note(f"Left out at {max_width} columns: {', '.join(left_out)}. --wide shows all, --columns chooses.")


def print_json(value: Any) -> None:
    """Print indented JSON; decimals become numbers, dates ISO texts."""
    sys.stdout.write(json.dumps(value, default=_to_json_value, indent=2, ensure_ascii=False) + "\n")


def _to_json_value(value: object) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_csv(rows: Sequence[Record]) -> None:
    """Print CSV with a header: lists joined by `; `, unknown values empty, formulas escaped."""
    if not rows:
        return
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in rows)


def _csv_cell(value: object) -> object:
    if isinstance(value, list):
        return escape_cell(LIST_SEPARATOR.join(map(str, value)))
    if isinstance(value, str):
        return escape_cell(value)
    if isinstance(value, bool):
        return str(value).lower()
    return format_value(value) if isinstance(value, Decimal) else value


# Lines and notes


def print_line(text: str = "") -> None:
    """Print one line to standard output as it is."""
    sys.stdout.write(f"{text}\n")


def print_text(text: str, *, first: str = "", indent: str = "") -> None:
    """Print a text to standard output, wrapped between words on a terminal."""
    for line in wrap(text, terminal_width(), first=first, indent=indent):
        print_line(line)


def print_note(text: str) -> None:
    """Print a remark to standard error, so that a pipe gets the result alone."""
    _print_error_text(text)


def print_no_price(answer: Mapping[str, Any]) -> None:
    """Print where prices are known, if an answer has none, to standard error: no format of rows has a place for it."""
    if "no_price" in answer:
        print_note(f"{answer['no_price']['detail']}.")


def print_next_cursor(cursor: str) -> None:
    """Print the option that gets the next page to standard error; never wrapped, so that it can be copied."""
    sys.stdout.flush()
    sys.stderr.write(f"More: --cursor {cursor}\n")


def print_error(text: str) -> None:
    """Print an error message to standard error."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    _print_error_text(text, label="error: ", style="\033[1;31m{}\033[0m" if colour else "{}")


def _print_error_text(text: str, *, label: str = "", style: str = "{}") -> None:
    # The label is wrapped without its colour, since escape sequences would count as characters.
    sys.stdout.flush()
    start, *rest = wrap(text, terminal_width() if sys.stderr.isatty() else None, first=" " * len(label))
    styled = f"{style.format(label.rstrip())} " if label else ""
    sys.stderr.write("\n".join((styled + start[len(label) :], *rest)) + "\n")


@cache
def get_console(name: str) -> Any:
    """Return Rich's console for standard output ("out") or standard error ("err"); loads Rich at the first call."""
    from rich.console import Console

    if name == "err":
        return Console(stderr=True)
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)


# Tables


def terminal_width() -> int | None:
    """Return the width of the terminal, or None where standard output is none: a program gets every column."""
    return max(shutil.get_terminal_size().columns, _MIN_TERMINAL_WIDTH) if sys.stdout.isatty() else None


def format_value(value: object) -> str:
    """Format a value for people: unknown values and empty lists are `-`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    values = value if isinstance(value, list) else [value]
    written = (json.dumps(each) if isinstance(each, dict) else str(each) for each in values)
    text = LIST_SEPARATOR.join(written) or "-"
    return text.translate(_CONTROL)


def format_table(
    rows: Sequence[Record], columns: Mapping[str, Column], max_width: int | None
) -> tuple[list[str], list[str]]:
    """Return the lines of a table of at most `max_width` characters, and the headings of the columns left out.

    Columns that no row has are skipped.
    """
    rendered = [
        _RenderedColumn.render(name, column, rows)
        for name, column in columns.items()
        if not rows or any(name in row for row in rows)
    ]
    if max_width is None:
        return list(_table_lines(rendered, {column.name: column.natural_width for column in rendered})), []
    chosen = _choose_columns(rendered, max_width)
    if not chosen:
        return list(_record_lines(rendered, max_width)), []
    left_out = [column.heading for column in rendered if column not in chosen]
    return list(_table_lines(chosen, _column_widths(chosen, max_width))), left_out


def min_table_width(rows: Sequence[Record], columns: Mapping[str, Column]) -> int:
    """Return the least width of a table with all these columns, in characters."""
    rendered = [_RenderedColumn.render(name, column, rows) for name, column in columns.items()]
    return sum(column.min_width for column in rendered) + len(GAP) * (len(rendered) - 1)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RenderedColumn:
    """A column with its cells formatted; numbers are aligned to the right."""

    name: str
    heading: str
    rank: int
    wraps: bool
    right: bool
    cells: list[str]

    @classmethod
    def render(cls, name: str, column: Column, rows: Sequence[Record]) -> "_RenderedColumn":
        values = [row.get(name) for row in rows]
        to_text = column.format or format_value
        known = [value for value in values if value is not None]
        return cls(
            name=name,
            heading=column.heading,
            rank=column.rank,
            wraps=column.wraps,
            right=all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in known),
            cells=["-" if value is None else to_text(value) for value in values],
        )

    @property
    def natural_width(self) -> int:
        """The width at which nothing wraps."""
        return max(map(len, (self.heading, *self.cells)))

    @property
    def min_width(self) -> int:
        """The narrowest width that cuts nothing."""
        if not self.wraps:
            return self.natural_width
        return max(len(self.heading), *(len(word) for cell in self.cells for word in cell.split()), 1)


def _choose_columns(columns: Sequence[_RenderedColumn], max_width: int) -> list[_RenderedColumn]:
    """Choose the columns that fit, by rank; none at all where not even those of rank 0 fit."""
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
    """Compute column widths: wrapping columns get the room that the others leave, from left to right."""
    room = max_width - sum(column.min_width for column in columns) - len(GAP) * (len(columns) - 1)
    widths = {}
    for column in columns:
        more = min(room, column.natural_width - column.min_width)
        widths[column.name] = column.min_width + more
        room -= more
    return widths


def _table_lines(columns: Sequence[_RenderedColumn], widths: Mapping[str, int]) -> Iterator[str]:
    yield _table_line([(column, column.heading) for column in columns], widths)
    for index in range(len(columns[0].cells) if columns else 0):
        cells = [
            textwrap.wrap(column.cells[index], widths[column.name], break_long_words=False, break_on_hyphens=False)
            if column.wraps
            else [column.cells[index]]
            for column in columns
        ]
        for part in range(max(map(len, cells), default=0)):
            texts = [cell[part] if part < len(cell) else "" for cell in cells]
            yield _table_line(zip(columns, texts, strict=True), widths)


def _table_line(cells: Iterable[tuple[_RenderedColumn, str]], widths: Mapping[str, int]) -> str:
    aligned = (
        text.rjust(widths[column.name]) if column.right else text.ljust(widths[column.name]) for column, text in cells
    )
    return GAP.join(aligned).rstrip()


def _record_lines(columns: Sequence[_RenderedColumn], max_width: int) -> Iterator[str]:
    """Yield each row as a block of lines, one per column, with an empty line between rows."""
    label_width = max(len(column.heading) for column in columns)
    for index in range(len(columns[0].cells)):
        if index:
            yield ""
        for column in columns:
            yield from label_lines(column.heading, column.cells[index], label_width, max_width)


def label_lines(label: str, text: str, label_width: int, max_width: int | None) -> list[str]:
    """Return a label with its text beside it; the text wraps under itself."""
    return wrap(text or "-", max_width, first=label.ljust(label_width) + GAP, indent=" " * (label_width + len(GAP)))


def wrap(text: str, max_width: int | None, *, first: str = "", indent: str = "") -> list[str]:
    """Wrap a text between words into lines; a word longer than a line stays whole. `first` starts the first line."""
    if max_width is None:
        return [first + text]
    return textwrap.wrap(
        text, max_width, initial_indent=first, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]
