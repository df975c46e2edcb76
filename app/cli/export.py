"""Commands for files: `vmsizes export …` writes whole lists and tables, `vmsizes verify` checks a receipt."""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from pydantic_core import PydanticCustomError

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
from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.cli import context, options
from app.cli.options import Command, Group, parse_params, query_options
from app.cli.output import EXIT_NOT_FOUND, print_line, print_note
from app.db.executors import Stream
from app.errors import BadData, BadQuery, NotReady
from app.formats.text import Csv, Ndjson, TextFormat
from app.settings import check_public_url
from app.validation import plural

app = typer.Typer()
export_app = typer.Typer(cls=Group, help="Write a whole list or table as CSV, NDJSON or Parquet.", no_args_is_help=True)
app.add_typer(export_app, name="export")


class FileFormat(StrEnum):
    """Formats of an exported file."""

    csv = "csv"
    ndjson = "ndjson"
    parquet = "parquet"


FormatOption = Annotated[FileFormat, typer.Option("--format", help="The format of the file.")]
OutputOption = Annotated[Path | None, typer.Option("--output", "-o", help="The file. (default: standard output)")]


@export_app.command(cls=Command)
@query_options(SizeExport, leave_out=frozenset(), choices={"sort": options.sort_keys})
def sizes(*, file_format: FormatOption = FileFormat.csv, output: OutputOption = None, **values: Any) -> None:
    """Write all sizes that a search finds, as GET /sizes.csv does."""
    params = parse_params(SizeExport, values)
    with context.reader() as reader:
        export = export_sizes(params, load_snapshot(reader), context.today())
    _write_export("sizes", export, file_format, output)


@export_app.command(cls=Command)
@query_options(PriceExport, leave_out=frozenset())
def prices(*, file_format: FormatOption = FileFormat.csv, output: OutputOption = None, **values: Any) -> None:
    """Write prices: those in force, or with --history all that are kept, as GET /prices.csv does."""
    params = parse_params(PriceExport, values)
    with context.reader() as reader:
        export = export_prices(load_catalog(reader, context.today()), params)
    _write_export("prices", export, file_format, output)


def _table_command(name: str) -> Callable[..., None]:
    @query_options(ColumnParams, leave_out=frozenset())
    def table(*, file_format: FormatOption = FileFormat.csv, output: OutputOption = None, **values: Any) -> None:
        export = export_table(name, parse_params(ColumnParams, values))
        with context.reader():
            _write_export(name, export, file_format, output)

    table.__doc__ = f"Write all {'GPUs' if name == 'gpus' else name.replace('_', ' ')}."
    return table  # type: ignore[no-any-return]  # query_options is not typed


for _name in EXPORTABLE_TABLES:
    export_app.command(_name.replace("_", "-"), cls=Command)(_table_command(_name))


def _write_export(name: str, export: Export, file_format: FileFormat, output: Path | None) -> None:
    if output is not None:
        # A path that cannot be written is reported before anything is read.
        if output.is_dir():
            raise BadQuery("--output", output, f"is a folder; name a file in it: {output / 'export'}")
        if not output.parent.is_dir():
            raise BadQuery("--output", output, f"the folder {output.parent} does not exist; make it first")
        existing = output if output.exists() else output.parent
        if not os.access(existing, os.W_OK):
            raise BadQuery("--output", output, f"no permission to write to {existing}")
    if file_format is FileFormat.parquet:
        count = _write_parquet(export, output)
    else:
        count = _write_text(export, Csv if file_format is FileFormat.csv else Ndjson, output)
    if output is not None:
        print_note(f"{count} {name} written to {output}.")


def _write_text(export: Export, text_format: type[TextFormat], output: Path | None) -> int:
    text, count = text_format(export.columns), 0
    with _whole_file(output) as path, path.open("wb") if path else nullcontext(sys.stdout.buffer) as file:
        file.write(text.head)
        for rows in Stream(context.database(), export.query).blocks():
            file.writelines(map(text.write, export.blocks(rows)))
            count += len(rows)
        file.flush()
    return count


def _write_parquet(export: Export, output: Path | None) -> int:
    from app.formats.parquet import write_parquet  # pyarrow takes long to load, and only Parquet needs it

    with TemporaryDirectory() as folder, _whole_file(output) as path:
        is_renamed = path is not None and path != output  # a pipe or a device would be replaced by a file
        file = path if path is not None and is_renamed else Path(folder) / "export.parquet"
        count = write_parquet(file, export, Stream(context.database(), export.query).blocks())
        if not is_renamed:
            with file.open("rb") as finished, path.open("wb") if path else nullcontext(sys.stdout.buffer) as target:
                shutil.copyfileobj(finished, target)
    return count


@contextmanager
def _whole_file(output: Path | None) -> Iterator[Path | None]:
    """Yield a path beside `output` that gets its name when all is written, so that no truncated export has it.

    Where a name is no place for a file (a pipe, /dev/stdout) or no other file may be in its folder, yield itself.
    """
    if output is None or not _can_be_replaced(output):
        yield output
        return
    target = output.resolve()
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield partial
        if target.exists():
            shutil.copymode(target, partial)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _can_be_replaced(output: Path) -> bool:
    """Check whether a path names a file, or none yet, in a folder where others may be made."""
    folder = output.parent.resolve()
    is_descriptor = folder == Path("/dev") or folder.is_relative_to("/proc")
    if is_descriptor or (output.exists() and not output.is_file()):
        return False
    return os.access(output.resolve().parent, os.W_OK)


# Receipts


@app.command(cls=Command)
def publish(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A new or empty folder, or that of an earlier site.")
    ],
    *,
    base_url: Annotated[
        str, typer.Option(help="Where the site will be, for its sitemap: `https://sizes.example.org`.")
    ] = "",
) -> None:
    """Write the catalog as a static site: the page of each size, lists, files for other programs, and a sitemap."""
    from app.cli.jobs import progress

    try:
        check_public_url(base_url)
    except PydanticCustomError as error:
        raise BadQuery("--base-url", base_url, error.message()) from None
    context.require_catalog()
    settings = context.settings().model_copy(update={"public_url": base_url})
    # By its name: it runs the service, which other commands start without.
    module = import_module("app.publish")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # as shells name it, with nothing left
    with progress(unit="pages") as step:
        pages = module.publish(folder, settings, step)
    print_line(f"{folder}: {pages} pages")
    if not base_url:
        print_note("There is no sitemap, which needs --base-url.")


@app.command(cls=Command)
def verify(
    receipt: Annotated[Path, typer.Argument(metavar="FILE", help="A receipt: JSON.", exists=True, dir_okay=False)],
    database: Annotated[
        str | None, typer.Option(help="The catalog to compute it from. (default: VMSIZES_DATABASE_URL)")
    ] = None,
) -> None:
    """Compute the answers of a receipt again, and say whether they and what they rest on are equal."""
    # It may be inside the `_meta` of a reply.
    try:
        data = json.loads(receipt.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadData(f"is not a receipt: {error}", file=str(receipt), line=getattr(error, "lineno", None)) from None
    data = data.get("_meta", data) if isinstance(data, dict) else data
    data = data.get("vmsizes/receipt", data) if isinstance(data, dict) else data
    if not isinstance(data, dict) or "receipt" not in data:
        raise BadData("is not a receipt: there is no field `receipt`", file=str(receipt))
    if not isinstance(data.get("rests_on"), dict):
        raise BadData("is not a receipt: `rests_on` must be an object", file=str(receipt))
    questions = data.get("questions")
    if not isinstance(questions, list) or not all(isinstance(question, dict) for question in questions):
        raise BadData("is not a receipt: `questions` must be a list of objects", file=str(receipt))
    differences, remarks = _check_receipt(data, database)
    for line in differences:
        print_line(line)
    if differences:
        print_note(f"{plural(len(differences), 'difference')}.")
        raise typer.Exit(EXIT_NOT_FOUND)
    rests_on = data["rests_on"]
    print_line(
        f"Equal: {plural(len(questions), 'answer')} of {data['day']}, from {plural(rests_on['fact_count'], 'fact')} "
        f"and {plural(rests_on['price_count'], 'price')} of {plural(len(rests_on['sources']), 'source')}."
    )
    for line in remarks:
        print_note(f"{line}.")


def _check_receipt(data: dict[str, Any], database: str | None) -> tuple[list[str], list[str]]:
    """Return what differs, and where the receipt is from another program or revision."""
    from datetime import date

    from app.catalog.store.revisions import compute_digest
    from app.db.engines import make_engine, read_session
    from app.db.schema import refuse_older, schema_revision
    from app.receipts import check_receipt, other_origin

    try:
        day = date.fromisoformat(str(data.get("day")))
    except ValueError:
        return [f"day: {data.get('day')!r} is not a day"], []
    engine = context.engine() if database is None else make_engine(database)
    try:
        with read_session(engine) as session:
            refuse_older(schema_revision(session))
            snapshot = load_snapshot(session)
            if not snapshot.revision:
                raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
            catalog = Catalog(session, snapshot, day)
            return check_receipt(catalog, data, compute_digest(session)[0]), other_origin(catalog, data)
    finally:
        if database is not None:
            engine.dispose()
