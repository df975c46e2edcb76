"""What a command prints: a table for people, JSON or CSV for programs."""

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from app.formats.text import BETWEEN, harmless

Row = Mapping[str, Any]

_PIPED_WIDTH = 240

out = Console(width=None if sys.stdout.isatty() else _PIPED_WIDTH)
err = Console(stderr=True)


class Format(StrEnum):
    """The forms an answer can take."""

    table = "table"
    json = "json"
    csv = "csv"


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


def chosen(*, as_json: bool, as_csv: bool) -> Format:
    """Choose the form; raises BadParameter for both at once."""
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv cannot be given together")
    return Format.json if as_json else Format.csv if as_csv else Format.table


def show_rows(rows: Sequence[Row], columns: Mapping[str, str], form: Format, *, title: str | None = None) -> None:
    """Show rows: people get the chosen columns under readable headings, programs every column."""
    if form is Format.json:
        write_json(rows)
    elif form is Format.csv:
        write_csv(rows)
    else:
        _table(rows, columns, title)


def write_json(value: Any) -> None:
    """Write indented JSON with plain numbers."""
    sys.stdout.write(json.dumps(value, default=plain, indent=2, ensure_ascii=False) + "\n")


def write_csv(rows: Sequence[Row]) -> None:
    """Write CSV with a header; a list is joined by `; `, an unknown value is empty, nothing is run as a formula."""
    if not rows:
        return
    writer = csv.DictWriter(sys.stdout, fieldnames=list(rows[0]), lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({name: _csv_cell(value) for name, value in row.items()} for row in rows)


def plain(value: object) -> Any:
    """Turn what JSON does not know into what it knows."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _csv_cell(value: object) -> object:
    cell = _cell(value)
    return harmless(cell) if isinstance(value, str | list) else cell


def _cell(value: object) -> Any:
    if isinstance(value, list):
        return BETWEEN.join(str(part) for part in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value.normalize():f}" if isinstance(value, Decimal) else value


def _table(rows: Iterable[Row], columns: Mapping[str, str], title: str | None) -> None:
    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    shown = list(rows)
    for name, heading in columns.items():
        values = [row[name] for row in shown if row[name] is not None]
        numeric = all(isinstance(value, int | float | Decimal) and not isinstance(value, bool) for value in values)
        table.add_column(heading, justify="right" if numeric else "left", no_wrap=name in ("name", "size", "id"))
    for row in shown:
        table.add_row(*(_text(row[name]) for name in columns))
    out.print(table)


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.10g}"
    return str(_cell(value))
