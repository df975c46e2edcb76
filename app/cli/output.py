"""Prints what a command found: a table that fits the terminal for people, JSON or CSV for programs.

Amounts in the currency of `--currency` stand in the place of those in US dollars.

A table never cuts a value: columns that do not fit are left out by rank, and below the width of the most important
ones each row becomes a block of lines. This module must not load Rich: short commands would start noticeably later.
"""

import csv
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from app.catalog.fields import SHOWN_FIELDS, field_heading
from app.catalog.price_notes import flatten_adjustments, price_note
from app.cli.options import with_options
from app.errors import BadData, BadQuery
from app.formats.text import LIST_SEPARATOR, escape_cell
from app.nearest import did_you_mean, nearest
from app.validation import check_encodable, decode_text

Record = Mapping[str, Any]
"""A row of output: values by field name."""

EXIT_OK, EXIT_NOT_FOUND, EXIT_USAGE, EXIT_BAD_DATA, EXIT_NOT_READY = 0, 1, 2, 3, 4
"""Exit codes: 0 success; 1 nothing found; 2 a bad option or setting; 3 bad data; 4 no catalog or no database,
or another command writes to it."""

GAP = "  "
_PIPED_WIDTH = 240
_MIN_TERMINAL_WIDTH = 20
_CONTROL = dict.fromkeys((*range(32), *range(127, 160)), "�")
"""Control characters are replaced: a source document could otherwise send escape sequences to the terminal."""
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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
        help="Print these fields, in this order: names as in the JSON (of estimate and cost as in the CSV), `a.b` for b"
        " inside a.",
        rich_help_panel="Output",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """The output options of a command: the format, and which columns to print (none: the command's own)."""

    format: Format
    wide: bool = False
    columns: tuple[str, ...] = ()


@with_options("output")
def with_output_options(
    *, wide: Wide = False, columns: Columns = None, as_json: Json = False, as_csv: Csv = False
) -> OutputOptions:
    """Add --wide, --columns, --json and --csv to a command, which gets them as its parameter `output`.

    Raises BadParameter for two that contradict each other.
    """
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


_HEADINGS = {
    "usd_per_month": "USD/month",
    "usd_per_job": "USD/job",
    "on_demand_usd_per_hour": "USD/h",
    "spot_usd_per_hour": "spot USD/h",
    "list_usd_per_hour": "list USD/h",
    "usd_per_million_tokens": "USD/M tokens",
    "price_as_of": "as of",
    "on_demand_as_of": "as of",
    "price_age_days": "days old",
    "seen_until": "last seen",
    "valid_from": "from",
    "created_at": "at",
    "source_id": "source",
    "source_ids": "sources",
    "source_url": "source",
    "os": "OS",
    "url": "URL",
}
"""The heads of columns that neither the table of fields has nor the name of the field is."""
_WRAPPED = frozenset(
    {
        *("accepted_value", "value", "corrected_value", "raw", "reason", "old", "new", "what", "sources", "warnings"),
        *("lost", "title", "from", "filters", "error", "evidence", "adjustments", "note"),
    }
)
"""Fields whose texts may be long."""


def make_columns(headings: Mapping[str, str] | None = None, /, **ranks: int) -> dict[str, Column]:
    """Return columns of fields by name, each with its rank; `headings` are those of this table only."""
    names = {name: field_heading(name) if name in SHOWN_FIELDS else name.replace("_", " ") for name in ranks}
    names |= _HEADINGS | dict(headings or {})
    return {name: Column(heading=names[name], rank=rank, wraps=name in _WRAPPED) for name, rank in ranks.items()}


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
        selected = [
            {name: _get_path(name, row, full) for name in output.columns}
            for row, full in zip(rows, originals, strict=True)
        ]
        for row in selected:
            for name, value in row.items():
                if value is _MISSING:
                    check_column(name, rows[0])
        rows = selected
        columns = {name: Column(heading=name) for name in output.columns}
    if output.format is Format.json:
        print_json(json_value if json_value is not None and not output.columns else rows)
    elif output.format is Format.csv:
        print_csv(rows, columns)
    elif rows:
        marked = []
        for shown, full in zip(rows, originals, strict=True):
            name = "name" if "name" in shown else "size"
            unverified = full.get("verified") is False or "UNVERIFIED" in full.get("warnings", ())
            marked.append({**shown, name: mark_unverified(shown[name])} if unverified and name in shown else shown)
        max_width = None if output.wide or output.columns else terminal_width()
        lines, left_out = format_table(marked, columns, max_width)
        emphasize = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        for index, line in enumerate(lines):
            print_line(f"\033[1m{line}\033[0m" if index == 0 and emphasize else line)
        if marked != list(rows):
            print_text(UNVERIFIED_NOTE)
        if left_out:
            print_note(f"Left out at {max_width} columns: {', '.join(left_out)}. --wide shows all, --columns chooses.")


def print_page(
    page: Record,
    columns: Mapping[str, Column],
    output: OutputOptions,
    *,
    rows: Sequence[Record] | None = None,
    detail: str = "",
    remark: str = ".",
    notes: Iterable[str] = (),
    nothing: str = "Nothing matches.",
) -> None:
    """Print a page of the API, how many items there are in all, and how to get the next page.

    `rows` are its items as the table has them, `detail` a text below the table, `remark` ends the line of the total.
    Exits with 1 for no items.
    """
    items, total = page["items"], page["total"]
    print_rows(items if rows is None else rows, columns, output, json_value=items, objects=items)
    for note in notes:
        print_note(note)
    if not total:
        exit_with_nothing(nothing)
    if output.format is Format.table:
        if detail:
            print_line()
            print_text(detail)
        print_line()
        print_text(f"{len(items)} of {total}{remark}")
        print_exchange_rate(page.get("exchange_rate"))
    if page["next_cursor"]:
        print_next_cursor(page["next_cursor"])


def exit_with_nothing(note: str = "Nothing matches.") -> NoReturn:
    """Say that a list is empty, and exit with 1."""
    print_note(note)
    raise typer.Exit(EXIT_NOT_FOUND)


UNVERIFIED_NOTE = "* Not verified: no vendor page names the size, or it is withdrawn."


def mark_unverified(size: str) -> str:
    """Return the name of a size that is not verified as tables have it; UNVERIFIED_NOTE stands below them."""
    return f"{size}*"


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


def check_column(name: str, columns: Collection[str]) -> None:
    """Raise BadQuery, naming the nearest field, for a field that is not among the known ones."""
    if name not in columns:
        hint = did_you_mean(nearest(name, columns)) or f"there are {', '.join(columns)}"
        raise BadQuery("--columns", name, f"there is no such field; {hint}")


def print_json(value: Any) -> None:
    """Print indented JSON; decimals become numbers, dates ISO texts."""
    sys.stdout.write(json.dumps(value, default=_to_json_value, indent=2, ensure_ascii=False) + "\n")


def _to_json_value(value: object) -> Any:
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def print_csv(rows: Sequence[Record], columns: Iterable[str]) -> None:
    """Print CSV with the fields of all rows: lists joined by `; `, unknown values empty, formulas escaped.

    Without rows, whose fields are then unknown, the header has the columns of the table.
    """
    names = list(dict.fromkeys(name for row in rows for name in row) or columns)
    writer = csv.DictWriter(sys.stdout, fieldnames=names, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in rows)


def _csv_cell(value: object) -> object:
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return escape_cell(LIST_SEPARATOR.join(map(str, value)))
    if isinstance(value, str):
        return escape_cell(value)
    if isinstance(value, bool):
        return str(value).lower()
    return format_value(value) if isinstance(value, Decimal) else value


# Amounts in the currency of `--currency`

USD = "USD"


def in_currency(columns: Mapping[str, Column], currency: str | None, prefix: str = "price") -> dict[str, Column]:
    """Return columns with amounts in a currency: `price_per_hour`, headed EUR/h, for `usd_per_hour`, headed USD/h.

    `prefix` is what converted amounts are called: a price, or a cost.
    """
    if currency in (None, USD):
        return dict(columns)
    return {
        name.replace("usd_per", f"{prefix}_per"): replace(
            column, heading=column.heading.replace(USD, currency), format=column.format or format_amount
        )
        if USD in column.heading
        else column
        for name, column in columns.items()
    }


def format_amount(amount: float) -> str:
    """Format a converted amount for people."""
    return f"{amount:.4f}"


def format_cents(amount: float) -> str:
    """Format an amount of a month or more for people."""
    return f"{Decimal(repr(amount)):,.2f}"


def flatten_converted(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its amounts in the currency as fields of its own; one without any stays as it is."""
    return {**{name: value for name, value in row.items() if name != "converted"}, **row.get("converted", {})}


def with_list_prices(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Column], prefix: str = ""
) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Return rows with list prices as fields of their own, and their columns, if rules changed the price of any row."""
    name = f"{prefix}adjustment"
    if not any(name in row for row in rows):
        return [dict(row) for row in rows], dict(columns)
    headings = {
        f"{prefix}{field}": replace(column, heading=f"{prefix.replace('_', ' ')}{column.heading}")
        for field, column in make_columns(list_usd_per_hour=1, adjustments=5).items()
    }
    return flatten_adjustments(rows, prefix), {**columns, **headings}


def with_price_notes(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Column], prefix: str = ""
) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Return rows with a word on prices that are unusual or disputed, and its column, if any row has such a price."""
    name = f"{prefix}note"
    noted = [dict(row) | {name: price_note(row, prefix)} for row in rows]
    if not any(row[name] for row in noted):
        return [dict(row) for row in rows], dict(columns)
    return noted, {**columns, name: Column(heading="note", rank=1, wraps=True)}


def with_notes(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Column]
) -> tuple[list[dict[str, Any]], dict[str, Column]]:
    """Return rows with list price, rules, formula and note of a price in columns of their own, if any row has them."""
    listed, shown = with_list_prices(rows, columns)
    noted, shown = with_price_notes(listed, shown)
    if any("estimate" in row for row in noted):
        noted = [row | {"estimate_formula": row.pop("estimate", {}).get("formula")} for row in noted]
    return noted, shown


def print_commitment(hours: int | None) -> None:
    """Print that a commitment is billed for the whole month, if any amount is for one."""
    if hours is not None:
        print_text(f"A reservation or savings plan is paid for {hours} hours of each month, used or not.")


def print_exchange_rate(rate: Mapping[str, Any] | None) -> None:
    """Print the rate that the amounts of an answer are converted by, if they are."""
    if rate is not None and rate["currency"] != USD:
        print_text(
            f"1 USD = {rate['units_per_usd']:.6g} {rate['currency']} by the rates of {rate['day']} "
            f"({rate['source_id']})."
        )


# Input


def read_text_file(path: Path) -> str:
    """Return the text of a file, which must not be empty; raises BadQuery and BadData."""
    try:
        text = decode_text(path.read_bytes())
        check_encodable(text)
    except OSError as error:
        raise BadQuery(str(path), None, f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise BadData(f"is not text in UTF-8: {error}", file=str(path)) from None
    if not text.strip():
        raise BadQuery(str(path), None, "is empty")
    return text


# Lines and notes


def print_line(text: str = "") -> None:
    """Print one line to standard output as it is."""
    sys.stdout.write(f"{text}\n")


def print_text(text: str, *, first: str = "", indent: str = "") -> None:
    """Print a text to standard output, wrapped between words on a terminal."""
    for line in wrap(text, terminal_width(), first=first, indent=indent):
        print_line(line)


def print_no_price(answer: Mapping[str, Any]) -> None:
    """Print where prices are known, if an answer has none, to standard error: no format of rows has a place for it."""
    if "no_price" in answer:
        print_note(f"{answer['no_price']['detail']}.")


def print_next_cursor(cursor: str) -> None:
    """Print the option that gets the next page to standard error; never wrapped, so that it can be copied."""
    sys.stdout.flush()
    sys.stderr.write(f"More: --cursor {cursor}\n")


def print_note(text: str, label: str = "") -> None:
    """Print a remark to standard error, so that a pipe gets the result alone; a label stands before it, in red.

    It may quote anything: control characters are shown escaped.
    """
    sys.stdout.flush()
    text = _UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)
    # The label is wrapped without its colour, since escape sequences would count as characters.
    start, *rest = wrap(text, terminal_width() if sys.stderr.isatty() else None, first=" " * len(label))
    colour = label and sys.stderr.isatty() and "NO_COLOR" not in os.environ
    styled = f"\033[1;31m{label.rstrip()}\033[0m " if colour else label
    sys.stderr.write("\n".join((styled + start[len(label) :], *rest)) + "\n")


@cache
def get_console(name: str) -> Any:
    """Return Rich's console for standard output ("out") or standard error ("err"); loads Rich at the first call."""
    from rich.console import Console

    if name == "err":
        return Console(stderr=True, emoji=False, highlight=False)
    width = None if sys.stdout.isatty() else _PIPED_WIDTH
    return Console(width=width, emoji=False, highlight=False)  # `:cat:` is text


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
    written = (json.dumps(item) if isinstance(item, dict) else str(item) for item in values)
    text = LIST_SEPARATOR.join(written) or "-"
    return text.translate(_CONTROL)


def format_table(
    rows: Sequence[Record], columns: Mapping[str, Column], max_width: int | None
) -> tuple[list[str], list[str]]:
    """Return the lines of a table of at most `max_width` characters, and the headings of the columns left out.

    Columns that no row has are skipped; one without a value is not said to be left out.
    """
    rendered = [
        _RenderedColumn(name, column, rows)
        for name, column in columns.items()
        if not rows or any(name in row for row in rows)
    ]
    if max_width is None:
        return list(_table_lines(rendered, {column.name: column.natural_width for column in rendered})), []
    chosen = _choose_columns(rendered, max_width)
    if not chosen:
        return list(_record_lines(rendered, max_width)), []
    left_out = [column.heading for column in rendered if column not in chosen and not column.is_empty]
    return list(_table_lines(chosen, _column_widths(chosen, max_width))), left_out


def min_table_width(rows: Sequence[Record], columns: Mapping[str, Column]) -> int:
    """Return the least width of a table with all these columns, in characters."""
    rendered = [_RenderedColumn(name, column, rows) for name, column in columns.items()]
    return sum(column.min_width for column in rendered) + len(GAP) * (len(rendered) - 1)


class _RenderedColumn:
    """A column with its cells formatted; numbers are aligned to the right."""

    def __init__(self, name: str, column: Column, rows: Sequence[Record]) -> None:
        self.name, self.heading, self.rank, self.wraps = name, column.heading, column.rank, column.wraps
        values = [row.get(name) for row in rows]
        present = [value for value in values if value is not None]
        self.right = all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in present)
        to_text = column.format or format_value
        self.cells = ["-" if value is None else to_text(value) for value in values]

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value here, or all have none of what is counted: the GPUs of CPU sizes."""
        return set(self.cells) <= {"-", "0"}

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
    """Choose the columns that fit, by rank; none where not even those of rank 0 fit.

    Those without a value come last, and only if every other one fits: beside a gap they would say that all is there.
    """
    chosen: set[str] = set()
    room, left_out = max_width + len(GAP), False
    for column in sorted(columns, key=lambda column: (column.rank > 0 and column.is_empty, column.rank)):
        needed = column.min_width + len(GAP)
        if needed <= room and not (left_out and column.rank > 0 and column.is_empty):
            chosen.add(column.name)
            room -= needed
        elif column.rank == 0:
            return []
        else:
            left_out = True
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
