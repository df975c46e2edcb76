"""Commands that fill and check the catalog: `vmsizes ingest …`, `sources`, `forget`, `revisions`, `audit`.

`ingest` has a command for each kind of source.
"""

import csv
import json
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.catalog.fields import FIELDS, to_text
from app.catalog.queries.freshness import load_freshness
from app.catalog.readings import Reading, SourceKind
from app.catalog.store.revisions import find_sources_taken_in, list_revisions, list_sources
from app.cli import context
from app.cli.jobs import DryRun, RunOptions, print_outcome, print_reports, print_tables, progress, with_run_options
from app.cli.options import Command, Group, Wait
from app.cli.output import (
    Format,
    Json,
    OutputOptions,
    get_console,
    make_columns,
    print_json,
    print_note,
    print_rows,
    with_output_options,
)
from app.db.writing import check_schema
from app.errors import BadData, BadQuery
from app.ingest.registry import CSV_SOURCES, parse_clouds, read_csv_source, read_pages, read_seeds, relative_to
from app.ingest.run import forget as forget_sources
from app.ingest.run import has_catalog, ingest, to_json_line
from app.validation import plural

if TYPE_CHECKING:
    from app.ingest.audit import Judgement


app = typer.Typer()
ingest_app = typer.Typer(
    cls=Group,
    help="Read documents, prices and other figures into the catalog: all of it, or nothing.",
    no_args_is_help=True,
)
app.add_typer(ingest_app, name="ingest")

NewSizes = Annotated[
    bool, typer.Option("--new-sizes", help="Add sizes that are not in the catalog yet instead of refusing them.")
]
Limit = Annotated[int | None, typer.Option(min=1, help="How many rows to list at most. (default: all)")]
SOURCE_COLUMNS = make_columns(
    {"id": "source"}, id=0, kind=3, published_on=2, newest_day=2, facts=1, prices=1, others=4, title=5
)
REVISION_COLUMNS = make_columns(
    {"number": "revision"}, number=0, created_at=0, facts=2, sizes=2, prices=2, **{"from": 1}
)


@ingest_app.command(cls=Command)
@with_run_options
def documents(
    paths: Annotated[list[Path], typer.Argument(help="Markdown pages, or folders of them.")],
    *,
    kind: Annotated[
        SourceKind | None, typer.Option(help="Kind of source of pages that do not state it. (default: third_party)")
    ] = None,
    run: RunOptions,
) -> None:
    """Read documentation pages: tables, feature lists and stated figures become facts."""
    with progress() as step:
        reading = read_pages(paths, context.settings().seeds, kind=kind, progress=step)
    if run.dry_run:
        _dry_run_pages(reading, run)
    else:
        _ingest(reading, run)


@ingest_app.command(cls=Command)
@with_run_options
def seeds(
    folder: Annotated[Path | None, typer.Argument(help="The folder of seeds. (default: VMSIZES_SEEDS)")] = None,
    *,
    run: RunOptions,
) -> None:
    """Read a whole folder of sources, regions, GPUs, series, documents, prices …; by default the project's own."""
    check_schema(context.engine())  # before seconds of reading
    _ingest(read_all_seeds(folder), run)


def read_all_seeds(folder: Path | None = None) -> Reading:
    """Read the seeds of the clouds that the settings name."""
    settings = context.settings()
    folder = folder or settings.seeds
    with progress() as step:
        seeds = read_seeds(folder, clouds=parse_clouds(settings.clouds, folder), progress=step)
    return relative_to(folder, seeds)


Sources = Annotated[Path | None, typer.Option(help="List of the sources it cites. (default: sources.csv beside it)")]
File = Annotated[Path, typer.Argument(help="The CSV file.")]


def _csv_command(name: str) -> Callable[..., None]:
    @with_run_options
    def read(path: File, *, sources: Sources = None, run: RunOptions) -> None:
        _ingest(read_csv_source(name, path, sources), run)

    return read


@with_run_options
def prices(path: File, *, sources: Sources = None, new_sizes: NewSizes = False, run: RunOptions) -> None:
    """Read a price list."""
    _ingest(read_csv_source("prices", path, sources, new_sizes=new_sizes), run)


for _name, _source in CSV_SOURCES.items():
    ingest_app.command(_name, cls=Command, help=_source.help)(prices if _name == "prices" else _csv_command(_name))


def _ingest(reading: Reading, run: RunOptions) -> None:
    context.use_wait(run.wait)
    print_outcome(run.ingest(reading), as_json=run.as_json)


def _dry_run_pages(reading: Reading, run: RunOptions) -> None:
    """Print the facts of pages and, where there is a catalog, what an ingest of them would change.

    With --json the facts go to standard output, one object a line, and everything else to standard error.
    """
    err = get_console("err")
    if run.as_json:
        sys.stdout.writelines(json.dumps(to_json_line(fact)) + "\n" for fact in reading.facts)
    for fact in () if run.as_json else reading.facts:
        unit = FIELDS[fact.kind][fact.field].unit
        value = to_text(fact.value) if unit in (None, "count") else f"{to_text(fact.value)} {unit}"
        line = f"{fact.subject}: {fact.field} = {value}  ({fact.file}:{fact.line})"
        get_console("out").print(line, markup=False, soft_wrap=True)
    engine = context.engine()
    if has_catalog(engine):
        outcome = ingest(engine, reading, now=context.now(), dry_run=True)
        print_reports(outcome.summary.reports)
        print_tables(outcome, err if run.as_json else get_console("out"))
    else:
        print_reports(reading.reports)
    facts, files = plural(len(reading.facts), "fact"), plural(len(reading.sources), "file")
    reports = plural(len(reading.reports), "report")
    err.print(f"{facts} from {files}, {reports}; nothing was written.")
    if run.strict and reading.reports:
        first = reading.reports[0]
        raise BadData(first.detail, file=first.file, line=first.line, column=first.column)


# Sources and revisions


@app.command(cls=Command)
@with_output_options
def sources(*, limit: Limit = None, output: OutputOptions) -> None:
    """List the sources of the catalog, how many facts and prices each gave, and the newest day of its prices."""
    with context.session() as session:
        freshness = load_freshness(session, context.today())
        rows = [row | {"newest_day": freshness.newest_day_of(row["id"])} for row in list_sources(session)[:limit]]
    print_rows(rows, SOURCE_COLUMNS, output)


@app.command(cls=Command)
def forget(
    source: Annotated[
        str | None, typer.Argument(help="The id of the source, as `vmsizes sources` lists it.", show_default=False)
    ] = None,
    *,
    revision: Annotated[
        int | None,
        typer.Option(help="All sources that this ingest was the first to read, by its number in `vmsizes revisions`."),
    ] = None,
    dry_run: DryRun = False,
    wait: Wait = None,
    as_json: Json = False,
) -> None:
    """Remove a source, or those of an ingest, in a new revision: facts that no other states go."""
    if (source is None) == (revision is None):
        raise BadQuery("SOURCE", source, "give either the id of a source or --revision")
    context.use_wait(wait)
    with context.session() as session:
        sources, earlier = ([source], {}) if source else find_sources_taken_in(session, revision or 0)
    if not sources:
        raise BadQuery(
            "revision",
            revision,
            f"none of the sources that it was the first to read is left. {_stay(earlier)}".rstrip(),
        )
    with progress() as step:
        outcome = forget_sources(context.engine(), *sources, now=context.now(), dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)
    if earlier:
        print_note(_stay(earlier))


def _stay(earlier: Mapping[str, int]) -> str:
    """Return a sentence about sources that an earlier revision had read; empty if there are none."""
    stay = ", ".join(f"{source} (revision {number})" for source, number in earlier.items())
    return stay and f"Sources of earlier revisions stay as they are: {stay}; read their earlier files again."


@app.command(cls=Command)
@with_output_options
def revisions(*, limit: Limit = None, output: OutputOptions) -> None:
    """List the ingests that changed the catalog, the newest first."""
    with context.session() as session:
        rows = list_revisions(session)
    shown = rows[:limit]
    if output.format is Format.table and not output.columns:
        earlier = [*rows[1:], {"counts": {}}]
        shown = [_short_revision(row, before) for row, before in zip(rows, earlier, strict=True)][:limit]
    print_rows(shown, REVISION_COLUMNS, output)


def _short_revision(row: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, object]:
    """Return a revision as one row: how many facts, sizes and prices, from which sources, or without which."""
    counts, ids = row["counts"], row["source_ids"]
    origin = ids[0] if len(ids) == 1 else f"{len(ids)} sources" if ids else None
    if counts.get("source", 0) < before["counts"].get("source", 0):  # only forgetting removes sources
        origin = f"{origin} removed"
    moment = str(row["created_at"]).partition(".")[0].replace("+00:00", "")
    return {
        "number": row["number"], "created_at": moment, "from": origin,
        **{f"{name}s": counts.get(name) for name in ("fact", "size", "price")},
    }  # fmt: skip


AUDIT_COLUMNS = ("line", "size", "region", "field", "says", "verdict", "expected", "evidence")
_SHOWN = 20


@app.command(cls=Command)
def audit(
    file: Annotated[Path, typer.Argument(help="A file of another catalog, CSV or JSON, also with .gz.")],
    *,
    as_: Annotated[str, typer.Option("--as", metavar="NAME", help="Whose format the file has; `?` lists them.")],
    day: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            metavar="YYYY-MM-DD",
            help="The day of the file's prices, where it does not state one. (default: today)",
        ),
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write every judgement to this file.")] = None,
    as_json: Json = False,
) -> None:
    """Judge what another catalog's file states: agrees, other meaning, stale, wrong, or unknown, with the evidence."""
    from app.ingest.audit import PEER_FORMATS, VERDICTS, audit_file, share_that_agrees

    if as_ not in PEER_FORMATS:
        formats = "; ".join(f"{name} ({peer.title})" for name, peer in PEER_FORMATS.items())
        raise typer.BadParameter(f"{as_!r} is not a format; the formats are {formats}", param_hint="--as")
    of_day = context.past_day(day)
    with context.session() as session:
        report = audit_file(session, file, PEER_FORMATS[as_], today=context.today(), day=of_day)
    if csv_file:
        with csv_file.open("w", encoding="utf-8", newline="") as written:
            writer = csv.writer(written, lineterminator="\n")
            writer.writerow(AUDIT_COLUMNS)
            writer.writerows(map(_cells, report.judgements))
    summary = {
        name: {**{verdict: counts[verdict] for verdict in VERDICTS}, "agrees_percent": share_that_agrees(counts)}
        for name, counts in report.counts.items()
    }
    wrong = [judgement for judgement in report.judgements if judgement.verdict == "wrong"]
    if as_json:
        print_json(
            {
                "format": as_,
                "fields": summary,
                "wrong": [dict(zip(AUDIT_COLUMNS, _cells(mismatch), strict=True)) for mismatch in wrong],
            }
        )
        return
    console = get_console("out")
    for name, counts in summary.items():
        share = counts["agrees_percent"]
        figures = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS)
        judged = "none could be judged" if share is None else f"{share} % of those judged agree"
        console.print(f"{name}: {figures}; {judged}", markup=False, soft_wrap=True)
    for mismatch in wrong[:_SHOWN]:
        line, size, region, name, says, _, expected, evidence = _cells(mismatch)
        place = " ".join(filter(None, (size, region)))
        text = f"wrong: line {line}: {place} {name} {says}; {expected}, {evidence}"
        console.print(text, markup=False, soft_wrap=True)
    if len(wrong) > _SHOWN:
        print_note(f"{len(wrong) - _SHOWN:,} more are wrong: --csv FILE writes all")


def _cells(judgement: "Judgement") -> tuple[str, ...]:
    claim = judgement.claim
    place = (str(claim.line), claim.size, claim.region or "", claim.meaning.field)
    return (*place, claim.cell, judgement.verdict, judgement.expected, judgement.evidence)
