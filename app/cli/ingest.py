"""The commands that receive: `vmsizes ingest …`, one for each kind of source."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from app.catalog.fields import FIELDS, to_text
from app.catalog.readings import Reading, Report, SourceKind
from app.cli import context
from app.cli.options import Group
from app.cli.output import Json, err, out, write_json
from app.cli.progress import progress
from app.errors import BadData
from app.ingest.registry import CSV_SOURCES, read_csv_source, read_pages, read_seeds, relative_to
from app.ingest.run import IngestOutcome, has_catalog, ingest, to_json_line

app = typer.Typer(
    cls=Group, help="Take in documents, prices and other figures: all of it, or nothing.", no_args_is_help=True
)

Strict = Annotated[bool, typer.Option("--strict", help="Fail, and write nothing, if anything cannot be read.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and write nothing.")]
NewSizes = Annotated[
    bool, typer.Option("--new-sizes", help="Let a size that nobody knows yet become one, instead of refusing it.")
]


@app.command()
def documents(
    paths: Annotated[list[Path], typer.Argument(help="Markdown pages, or folders of them.")],
    *,
    kind: Annotated[
        SourceKind | None, typer.Option(help="What the pages are, where they do not say so. (default: third_party)")
    ] = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Read documentation pages: their tables, feature lists and stated figures become facts."""
    with progress() as step:
        reading = read_pages(paths, context.settings().seeds, kind=kind, progress=step)
    if dry_run:
        _dry_run_pages(reading, strict=strict, as_json=as_json)
    else:
        _ingest(reading, strict=strict, as_json=as_json)


@app.command()
def seeds(
    folder: Annotated[Path | None, typer.Argument(help="The folder of seeds. (default: VMSIZES_SEEDS)")] = None,
    *,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Read a whole folder: sources, regions, GPUs, series, documents, prices … The project's own by default."""
    folder = folder or context.settings().seeds
    with progress() as step:
        reading = relative_to(folder, read_seeds(folder, progress=step))
    _ingest(reading, strict=strict, as_json=as_json, dry_run=dry_run)


Sources = Annotated[Path | None, typer.Option(help="The list of sources it cites. (default: sources.csv beside it)")]
File = Annotated[Path, typer.Argument(help="The CSV file.")]


def _add_feed(name: str, help_text: str) -> None:
    def feed(
        path: File, *, sources: Sources = None, dry_run: DryRun = False, strict: Strict = False, as_json: Json = False
    ) -> None:
        _ingest(read_csv_source(name, path, sources), strict=strict, as_json=as_json, dry_run=dry_run)

    app.command(name, help=help_text)(feed)


def prices(
    path: File,
    *,
    sources: Sources = None,
    new_sizes: NewSizes = False,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Read a price list."""
    reading = read_csv_source("prices", path, sources, new_sizes=new_sizes)
    _ingest(reading, strict=strict, as_json=as_json, dry_run=dry_run)


for _name, _feed in CSV_SOURCES.items():
    if _name == "prices":
        app.command(_name, help=_feed.help)(prices)
    else:
        _add_feed(_name, _feed.help)


def _ingest(reading: Reading, *, strict: bool, as_json: bool, dry_run: bool = False) -> None:
    with progress() as step:
        outcome = ingest(context.engine(), reading, now=context.now(), strict=strict, dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)


def print_outcome(outcome: IngestOutcome, *, as_json: bool) -> None:
    """Print what an ingest did, or would do: what was not read on standard error, then table by table."""
    _print_reports(outcome.summary.reports)
    if as_json:
        write_json(_summary(outcome))
    else:
        _print_tables(outcome, out)
    if not outcome.written:
        err.print("Nothing was written.", highlight=False)


def _summary(outcome: IngestOutcome) -> dict[str, object]:
    return {
        "revision": outcome.revision["number"],
        "digest": outcome.revision["digest"],
        "new_revision": outcome.new_revision,
        "written": outcome.written,
        "reports": len(outcome.summary.reports),
        "tables": {
            name: {kind: getattr(change, kind) for kind in ("added", "changed", "unchanged", "removed")}
            for name, change in outcome.summary.changes.items()
        },
    }


def _print_reports(reports: Iterable[Report]) -> None:
    for report in reports:
        err.print(f"[yellow]not read:[/] {escape(str(report))}", highlight=False, soft_wrap=True)


def _print_tables(outcome: IngestOutcome, to: Console) -> None:
    for name, change in outcome.summary.changes.items():
        done = [f"{getattr(change, kind)} {kind}" for kind in ("added", "changed", "removed") if getattr(change, kind)]
        if done or change.unchanged:
            to.print(f"{name:12} {', '.join([*done, f'{change.unchanged} unchanged'])}", highlight=False)
    told = "new" if outcome.new_revision else "unchanged"
    told = told if outcome.written else f"{told}, not written"
    to.print(
        f"revision {outcome.revision['number']} ({told}), digest {outcome.revision['digest']}",
        highlight=False,
        soft_wrap=True,
    )


def _dry_run_pages(reading: Reading, *, strict: bool, as_json: bool) -> None:
    """Print what pages say; then, where there is a catalog, what an ingest of them would do: with JSON beside it."""
    _print_facts(reading, as_json=as_json)
    engine = context.engine()
    if has_catalog(engine):
        outcome = ingest(engine, reading, now=context.now(), dry_run=True)
        _print_reports(outcome.summary.reports)
        _print_tables(outcome, err if as_json else out)
    else:
        _print_reports(reading.reports)
    facts, files = _plural(len(reading.facts), "fact"), _plural(len(reading.sources), "file")
    reports = _plural(len(reading.reports), "report")
    err.print(f"{facts} from {files}, {reports}; nothing was written.", highlight=False)
    _fail_on_reports(reading, strict=strict)


def _print_facts(reading: Reading, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.writelines(json.dumps(to_json_line(statement)) + "\n" for statement in reading.facts)
    else:
        for statement in reading.facts:
            said = f"{statement.subject}: {statement.field} = {to_text(statement.value)}"
            unit = FIELDS[statement.kind][statement.field].unit
            out.print(
                f"{said}{f' {unit}' if unit not in (None, 'count') else ''}  ({statement.file}:{statement.line})",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )


def _plural(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _fail_on_reports(reading: Reading, *, strict: bool) -> None:
    if strict and reading.reports:
        first = reading.reports[0]
        raise BadData(first.detail, file=first.file, line=first.line, column=first.column)
