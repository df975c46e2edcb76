"""Commands that fill the catalog and show what filled it: `vmsizes ingest …`, `sources`, `forget`, `revisions`.

`ingest` has a command for each kind of source. Long work shows its progress on standard error.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from app.catalog.fields import FIELDS, to_text
from app.catalog.readings import Progress, Reading, Report, SourceKind
from app.catalog.store.revisions import list_revisions, list_sources
from app.cli import context
from app.cli.options import Group
from app.cli.output import Column, Format, Json, OutputOptions, get_console, print_json, print_rows, with_output_options
from app.errors import BadData
from app.ingest.registry import CSV_SOURCES, read_csv_source, read_pages, read_seeds, relative_to
from app.ingest.run import IngestOutcome, has_catalog, ingest, to_json_line
from app.ingest.run import forget as forget_source

app = typer.Typer()
ingest_app = typer.Typer(
    cls=Group,
    help="Read documents, prices and other figures into the catalog: all of it, or nothing.",
    no_args_is_help=True,
)
app.add_typer(ingest_app, name="ingest")

Strict = Annotated[bool, typer.Option("--strict", help="Fail and write nothing if anything cannot be read.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done and write nothing.")]
NewSizes = Annotated[
    bool, typer.Option("--new-sizes", help="Add sizes that are not in the catalog yet instead of refusing them.")
]
SOURCE_COLUMNS = {
    "id": Column(heading="source"),
    "kind": Column(heading="kind", rank=3),
    "published_on": Column(heading="published on", rank=2),
    "facts": Column(heading="facts", rank=1),
    "prices": Column(heading="prices", rank=1),
    "others": Column(heading="others", rank=4),
    "title": Column(heading="title", rank=5, wraps=True),
}
REVISION_COLUMNS = {
    "number": Column(heading="revision"),
    "created_at": Column(heading="at"),
    "facts": Column(heading="facts", rank=2),
    "sizes": Column(heading="sizes", rank=2),
    "prices": Column(heading="prices", rank=2),
    "from": Column(heading="from", rank=1, wraps=True),
}


@ingest_app.command()
def documents(
    paths: Annotated[list[Path], typer.Argument(help="Markdown pages, or folders of them.")],
    *,
    kind: Annotated[
        SourceKind | None, typer.Option(help="Kind of source of pages that do not state it. (default: third_party)")
    ] = None,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Read documentation pages: tables, feature lists and stated figures become facts."""
    with progress() as step:
        reading = read_pages(paths, context.settings().seeds, kind=kind, progress=step)
    if dry_run:
        _dry_run_pages(reading, strict=strict, as_json=as_json)
    else:
        _ingest(reading, strict=strict, as_json=as_json)


@ingest_app.command()
def seeds(
    folder: Annotated[Path | None, typer.Argument(help="The folder of seeds. (default: VMSIZES_SEEDS)")] = None,
    *,
    dry_run: DryRun = False,
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Read a whole folder of sources, regions, GPUs, series, documents, prices …; by default the project's own."""
    folder = folder or context.settings().seeds
    with progress() as step:
        reading = relative_to(folder, read_seeds(folder, progress=step))
    _ingest(reading, strict=strict, as_json=as_json, dry_run=dry_run)


Sources = Annotated[Path | None, typer.Option(help="List of the sources it cites. (default: sources.csv beside it)")]
File = Annotated[Path, typer.Argument(help="The CSV file.")]


def _csv_command(name: str) -> Callable[..., None]:
    def read(
        path: File, *, sources: Sources = None, dry_run: DryRun = False, strict: Strict = False, as_json: Json = False
    ) -> None:
        _ingest(read_csv_source(name, path, sources), strict=strict, as_json=as_json, dry_run=dry_run)

    return read


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


for _name, _source in CSV_SOURCES.items():
    ingest_app.command(_name, help=_source.help)(prices if _name == "prices" else _csv_command(_name))


def _ingest(reading: Reading, *, strict: bool, as_json: bool, dry_run: bool = False) -> None:
    with progress() as step:
        outcome = ingest(context.engine(), reading, now=context.now(), strict=strict, dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)


def _dry_run_pages(reading: Reading, *, strict: bool, as_json: bool) -> None:
    """Print the facts of pages and, where there is a catalog, what an ingest of them would change.

    With --json the facts go to standard output, one object a line, and everything else to standard error.
    """
    err = get_console("err")
    _print_facts(reading, as_json=as_json)
    engine = context.engine()
    if has_catalog(engine):
        outcome = ingest(engine, reading, now=context.now(), dry_run=True)
        _print_reports(outcome.summary.reports)
        _print_tables(outcome, err if as_json else get_console("out"))
    else:
        _print_reports(reading.reports)
    facts, files = _plural(len(reading.facts), "fact"), _plural(len(reading.sources), "file")
    reports = _plural(len(reading.reports), "report")
    err.print(f"{facts} from {files}, {reports}; nothing was written.", highlight=False)
    if strict and reading.reports:
        first = reading.reports[0]
        raise BadData(first.detail, file=first.file, line=first.line, column=first.column)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _print_facts(reading: Reading, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.writelines(json.dumps(to_json_line(fact)) + "\n" for fact in reading.facts)
        return
    for fact in reading.facts:
        unit = FIELDS[fact.kind][fact.field].unit
        value = to_text(fact.value) if unit in (None, "count") else f"{to_text(fact.value)} {unit}"
        line = f"{fact.subject}: {fact.field} = {value}  ({fact.file}:{fact.line})"
        get_console("out").print(line, highlight=False, markup=False, soft_wrap=True)


def print_outcome(outcome: IngestOutcome, *, as_json: bool) -> None:
    """Print what an ingest did or would do, table by table; what could not be read goes to standard error."""
    _print_reports(outcome.summary.reports)
    if as_json:
        print_json(_to_json(outcome))
    else:
        _print_tables(outcome, get_console("out"))
    if not outcome.written:
        get_console("err").print("Nothing was written.", highlight=False)


def _to_json(outcome: IngestOutcome) -> dict[str, object]:
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
        text = f"[yellow]not read:[/] {escape(str(report))}"
        get_console("err").print(text, highlight=False, soft_wrap=True)


def _print_tables(outcome: IngestOutcome, console: Console) -> None:
    for name, change in outcome.summary.changes.items():
        done = [f"{getattr(change, kind)} {kind}" for kind in ("added", "changed", "removed") if getattr(change, kind)]
        if done or change.unchanged:
            console.print(f"{name:12} {', '.join([*done, f'{change.unchanged} unchanged'])}", highlight=False)
    state = ("new" if outcome.new_revision else "unchanged") + ("" if outcome.written else ", not written")
    text = f"revision {outcome.revision['number']} ({state}), digest {outcome.revision['digest']}"
    console.print(text, highlight=False, soft_wrap=True)


# Sources and revisions


@app.command()
@with_output_options
def sources(*, output: OutputOptions) -> None:
    """List the sources of the catalog, and how many facts and prices each gave."""
    with context.session() as session:
        rows = list_sources(session)
    print_rows(rows, SOURCE_COLUMNS, output)


@app.command()
def forget(
    source: Annotated[str, typer.Argument(help="The id of the source, as `vmsizes sources` lists it.")],
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove a source in a new revision: facts that only it states go, others are decided again without it."""
    with context.session(), progress() as step:
        outcome = forget_source(context.engine(), source, now=context.now(), dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)


@app.command()
@with_output_options
def revisions(*, output: OutputOptions) -> None:
    """List the ingests that changed the catalog, the newest first."""
    with context.session() as session:
        rows = list_revisions(session)
    if output.format is Format.table and not output.columns:
        rows = [_short_revision(row) for row in rows]
    print_rows(rows, REVISION_COLUMNS, output)


def _short_revision(row: dict[str, object]) -> dict[str, object]:
    """Return a revision as one row: how many facts, sizes and prices, from which sources."""
    counts, ids = row["counts"], row["source_ids"]
    assert isinstance(counts, dict)  # noqa: S101  # tells the type checker
    assert isinstance(ids, list)  # noqa: S101
    origin = ids[0] if len(ids) == 1 else f"{len(ids)} sources"
    moment = str(row["created_at"]).partition(".")[0].replace("+00:00", "")
    return {
        "number": row["number"], "created_at": moment, "from": origin,
        **{f"{name}s": counts.get(name) for name in ("fact", "size", "price")},
    }  # fmt: skip


# Progress

INTERVAL = 5.0
"""Seconds between two lines of progress, and before the first: short work prints none."""

Clock = Callable[[], float]


def progress(console: Console | None = None, clock: Clock = monotonic) -> AbstractContextManager[Progress]:
    """Show the progress of long work on standard error: a live line on a terminal, else a line every few seconds."""
    console = console or get_console("err")
    return _live_line(console, clock) if console.is_terminal else _lines(console, clock)


@contextmanager
def _live_line(console: Console, clock: Clock) -> Iterator[Progress]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task, rate = bar.add_task("starting", total=1.0), _Rate(clock)

        def report(doing: str, share: float | None, rows: int = 0) -> None:
            text = rate.describe(doing, rows)
            bar.update(task, description=text, completed=share or 0.0, total=None if share is None else 1.0)

        yield report


@contextmanager
def _lines(console: Console, clock: Clock) -> Iterator[Progress]:
    rate, last_time, last_step = _Rate(clock), clock(), ""
    quiet_until = last_time + INTERVAL

    def report(doing: str, share: float | None, rows: int = 0) -> None:
        nonlocal last_time, last_step
        text, now = rate.describe(doing, rows), clock()
        if now >= quiet_until and (now - last_time >= INTERVAL or doing != last_step):
            last_time, last_step = now, doing
            percent = "" if share is None else f", {share:.0%}"
            console.print(f"{text}{percent}", highlight=False, markup=False, soft_wrap=True)

    yield report


class _Rate:
    """Measures the rows per second of a step, from the moment it began."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._step, self._began, self._first_rows = clock, "", 0.0, 0

    def describe(self, step: str, rows: int) -> str:
        """Return the step, with its rows and their rate where it has any."""
        now = self._clock()
        if step != self._step:
            self._step, self._began, self._first_rows = step, now, rows
        if not rows:
            return step
        seconds = now - self._began
        done = rows - self._first_rows
        rate = f", {done / seconds:,.0f} rows/s" if seconds > 0 and done > 0 else ""
        return f"{step}: {rows:,} rows{rate}"
