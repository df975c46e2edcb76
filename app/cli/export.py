"""The commands that export: whole lists and tables of the catalog, through the formats that the API answers with."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, BinaryIO

import typer

from app.catalog.queries.exports import (
    EXPORTABLE_TABLES,
    ColumnParams,
    Export,
    PriceExport,
    SizeExport,
    export_prices,
    export_sizes,
    export_table,
)
from app.catalog.queries.snapshot import load_snapshot
from app.cli import context, options
from app.cli.options import Command, Group, parse_params, query_options
from app.cli.output import print_note
from app.db.statements import run_plan
from app.db.streams import Stream
from app.errors import BadQuery
from app.formats.text import Csv, Ndjson, TextFormat

app = typer.Typer(cls=Group, help="Write a whole list or table as CSV, NDJSON or Parquet.", no_args_is_help=True)


class FileFormat(StrEnum):
    """The forms of a file."""

    csv = "csv"
    ndjson = "ndjson"
    parquet = "parquet"


_TEXT_FORMATS: dict[FileFormat, type[TextFormat]] = {FileFormat.csv: Csv, FileFormat.ndjson: Ndjson}
FormatOption = Annotated[FileFormat, typer.Option("--format", help="The form of the file.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="The file. (default: standard output)")]


@app.command(cls=Command)
@query_options(SizeExport, leave_out=frozenset(), choices={"sort": options.sort_keys})
def sizes(*, form: FormatOption = FileFormat.csv, output: OutputOption = None, **given: Any) -> None:
    """Write all sizes that a search finds, as GET /sizes.csv does."""
    asked = parse_params(SizeExport, given)
    with context.session() as session:
        export = export_sizes(asked, load_snapshot(session), context.today())
    _write_export("sizes", export, form, output)


@app.command(cls=Command)
@query_options(PriceExport, leave_out=frozenset())
def prices(*, form: FormatOption = FileFormat.csv, output: OutputOption = None, **given: Any) -> None:
    """Write prices: those in force, or with --history all, as GET /prices.csv does."""
    asked = parse_params(PriceExport, given)
    with context.session() as session:
        export = run_plan(session, export_prices(asked, load_snapshot(session), context.today()))
    _write_export("prices", export, form, output)


def _table_command(name: str) -> Callable[..., None]:
    @query_options(ColumnParams, leave_out=frozenset())
    def table(*, form: FormatOption = FileFormat.csv, output: OutputOption = None, **given: Any) -> None:
        export = export_table(name, parse_params(ColumnParams, given))
        with context.session():
            _write_export(name, export, form, output)

    table.__doc__ = f"Write all {name}."
    return table  # type: ignore[no-any-return]  # what the decorator gives is a command


for _name in EXPORTABLE_TABLES:
    app.command(_name, cls=Command)(_table_command(_name))


def _write_export(name: str, export: Export, form: FileFormat, output: Path | None) -> None:
    if output is not None:
        _check_output_path(output)
    count = (_write_parquet if form is FileFormat.parquet else _write_text)(export, form, output)
    if output is not None:
        print_note(f"{count} {name} written to {output}.")


def _check_output_path(output: Path) -> None:
    """Refuse a place that cannot be written before anything is read; raises BadQuestion."""
    if output.is_dir():
        raise BadQuery("--output", output, f"is a folder; name a file in it: {output / 'export'}")
    if not output.parent.is_dir():
        raise BadQuery("--output", output, f"the folder {output.parent} does not exist; make it first")
    place = output if output.exists() else output.parent
    if not os.access(place, os.W_OK):
        raise BadQuery("--output", output, f"{place} may not be written to")


def _write_text(export: Export, form: FileFormat, output: Path | None) -> int:
    text, count = _TEXT_FORMATS[form](export.columns), 0
    with _open_output(output) as file:
        file.write(text.head)
        for rows in Stream(context.engine(), export.query).blocks():
            file.write(text.write(map(export.values, rows)))
            count += len(rows)
    return count


def _write_parquet(export: Export, _form: FileFormat, output: Path | None) -> int:
    from app.formats.parquet import write_parquet  # the other forms do not need it

    blocks = Stream(context.engine(), export.query).blocks()
    with TemporaryDirectory() as folder:
        file = output or Path(folder) / "export.parquet"
        count = write_parquet(file, export.columns, (map(export.values, rows) for rows in blocks))
        if output is None:
            with file.open("rb") as made:
                shutil.copyfileobj(made, sys.stdout.buffer)
    return count


@contextmanager
def _open_output(output: Path | None) -> Iterator[BinaryIO]:
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        with output.open("wb") as file:
            yield file
