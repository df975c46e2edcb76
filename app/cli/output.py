"""What a command prints: a table for people, JSON or CSV for programs."""

import csv
import inspect
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from difflib import get_close_matches
from enum import StrEnum
from functools import cache, wraps
from typing import Annotated, Any, TextIO

import typer

from app.cli.tables import Column, Record, format_table, format_value, terminal_width, wrap
from app.errors import BadQuery
from app.formats.text import LIST_SEPARATOR, escape_formula

_PIPED_WIDTH = 240


class Format(StrEnum):
    """The forms an answer can take."""

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
    """How rows are asked to be shown: their form, and which columns."""

    format: Format
    wide: bool = False
    columns: tuple[str, ...] = ()


def output_options(*, as_json: bool, as_csv: bool, wide: bool = False, columns: str | None = None) -> OutputOptions:
    """Read the options of output; raises BadParameter for two that contradict each other."""
    form = choose_format(as_json=as_json, as_csv=as_csv)
    if wide and (as_json or as_csv or columns is not None):
        raise typer.BadParameter("--wide is of the table: it cannot be given with --json, --csv or --columns")
    names = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    if columns is not None and not names:
        raise typer.BadParameter("--columns needs names: --columns name,gpu_model")
    return OutputOptions(format=form, wide=wide, columns=names)


def with_output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options of output; it gets them as one `View`, its parameter `how`."""
    options = inspect.signature(_options_of_output).parameters.values()
    own = [one for one in inspect.signature(command).parameters.values() if one.name != "output"]
    rest = [own.pop()] if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD else []

    @wraps(command)
    def run(*, wide: bool, columns: str | None, as_json: bool, as_csv: bool, **given: Any) -> Any:
        return command(output=output_options(as_json=as_json, as_csv=as_csv, wide=wide, columns=columns), **given)

    signature = inspect.Signature([*own, *options, *rest])
    run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads the options from
    run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
    return run


def _options_of_output(
    *, wide: Wide = False, columns: Columns = None, as_json: Json = False, as_csv: Csv = False
) -> None:
    """The options of output, as Typer reads them."""


def choose_format(*, as_json: bool, as_csv: bool) -> Format:
    """Choose the form; raises BadParameter for both at once."""
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv cannot be given together")
    return Format.json if as_json else Format.csv if as_csv else Format.table


def print_rows(
    rows: Sequence[Record],
    columns: Mapping[str, Column],
    output: OutputOptions,
    *,
    json_value: Any = None,
    objects: Sequence[Record] = (),
) -> None:
    """Show rows as they are asked for.

    People get the columns that fit, programs every field or the chosen ones. `whole` is what JSON gives in place of the
    rows, `inside` are the objects in which `--columns` finds what the rows do not have.
    """
    if output.columns:
        rows = _select_columns(rows, objects or rows, output.columns)
        columns = {name: Column(heading=name) for name in output.columns}
    if output.format is Format.json:
        write_json(json_value if json_value is not None and not output.columns else rows)
    elif output.format is Format.csv:
        write_csv(rows)
    elif rows:
        _print_table(rows, columns, output)


def _print_table(rows: Sequence[Record], columns: Mapping[str, Column], output: OutputOptions) -> None:
    most = None if output.wide or output.columns else terminal_width()
    lines, left_out = format_table(rows, columns, most)
    emphasize = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    for index, line in enumerate(lines):
        print_line(f"\033[1m{line}\033[0m" if index == 0 and emphasize else line)
    if left_out:
        print_note(f"Left out at {most} columns: {', '.join(left_out)}. --wide shows all, --columns chooses.")


def _select_columns(rows: Sequence[Record], inside: Sequence[Record], names: Sequence[str]) -> list[dict[str, Any]]:
    found = [{name: _get_path(name, row, whole) for name in names} for row, whole in zip(rows, inside, strict=True)]
    return [{name: _known_or_refused(name, value, rows[0]) for name, value in row.items()} for row in found]


_MISSING = object()


def _get_path(name: str, row: Record, whole: Record) -> Any:
    """A field by its name or its path."""
    if name in row:
        return row[name]
    value: Any = whole
    for step in name.split("."):
        if not isinstance(value, Mapping):
            return None if value is None else _MISSING
        if step not in value:
            return _MISSING
        value = value[step]
    return value


def _known_or_refused(name: str, value: Any, row: Record) -> Any:
    if value is _MISSING:
        check_column(name, row)
    return value


def check_column(name: str, known: Collection[str]) -> None:
    """Refuse a field that an answer does not have; raises BadQuestion naming the nearest."""
    if name not in known:
        near = get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
        raise BadQuery("--columns", name, f"there is no such field; {hint}")


def print_line(text: str = "") -> None:
    """Print a line of an answer as it is."""
    sys.stdout.write(f"{text}\n")


def print_text(text: str, *, first: str = "", indent: str = "") -> None:
    """Print a text of an answer, wrapped between words where a person reads it."""
    for line in wrap(text, terminal_width(), first=first, indent=indent):
        print_line(line)


def print_note(text: str) -> None:
    """Print a remark on standard error, so that what is piped is the answer alone."""
    _write_wrapped(sys.stderr, text)


def print_next_cursor(cursor: str) -> None:
    """Say how to get the next page; a cursor is copied, so it stays whole beside its option."""
    sys.stdout.flush()
    sys.stderr.write(f"More: --cursor {cursor}\n")


def print_error(text: str) -> None:
    """Print an error on standard error."""
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    _write_wrapped(sys.stderr, text, first="\033[1;31merror:\033[0m " if colour else "error: ", counted=len("error: "))


def _write_wrapped(stream: TextIO, text: str, *, first: str = "", counted: int = 0) -> None:
    sys.stdout.flush()
    most = terminal_width() if stream.isatty() else None
    start, *rest = wrap(text, most, first=" " * counted)
    stream.write("\n".join((first + start[counted:], *rest)) + "\n")


def write_json(value: Any) -> None:
    """Write indented JSON with plain numbers."""
    sys.stdout.write(json.dumps(value, default=to_json_value, indent=2, ensure_ascii=False) + "\n")


def write_csv(rows: Sequence[Record]) -> None:
    """Write CSV with a header; a list is joined by `; `, an unknown value is empty, nothing is run as a formula."""
    if not rows:
        return
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in rows)


def to_json_value(value: object) -> Any:
    """Turn what JSON does not know into what it knows."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _csv_cell(value: object) -> object:
    cell = _cell(value)
    return escape_formula(cell) if isinstance(value, str | list) else cell


def _cell(value: object) -> Any:
    if isinstance(value, list):
        return LIST_SEPARATOR.join(str(part) for part in value)
    if isinstance(value, bool):
        return str(value).lower()
    return format_value(value) if isinstance(value, Decimal) else value


@cache
def get_console(name: str) -> Any:
    """A console of Rich, `out` or `err`, for live lines and colours; what only prints answers does not load it."""
    from rich.console import Console

    if name == "err":
        return Console(stderr=True)
    return Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)


def __getattr__(name: str) -> Any:
    if name in ("out", "err"):
        return get_console(name)
    raise AttributeError(name)
