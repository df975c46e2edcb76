"""The command that judges the file of another catalog: `vmsizes audit`."""

import csv
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli import context
from app.cli.options import Command
from app.cli.output import Json, get_console, print_json, print_note

if TYPE_CHECKING:
    from app.ingest.audit import Audit, Judgement

app = typer.Typer()

COLUMNS = ("line", "size", "region", "field", "says", "verdict", "expected", "evidence")
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
    from app.ingest.audit import VERDICTS, audit_file, share_that_agrees
    from app.ingest.peer_formats import PEER_FORMATS

    if as_ not in PEER_FORMATS:
        formats = "; ".join(f"{name} ({peer.title})" for name, peer in PEER_FORMATS.items())
        raise typer.BadParameter(f"{as_!r} is no format; the formats are {formats}", param_hint="--as")
    with context.session() as session:
        found = audit_file(session, file, PEER_FORMATS[as_], today=context.today(), day=day.date() if day else None)
    if csv_file:
        _write(csv_file, found)
    summary = {
        name: {**{verdict: counts[verdict] for verdict in VERDICTS}, "agrees_percent": share_that_agrees(counts)}
        for name, counts in found.counts.items()
    }
    wrong = [judgement for judgement in found.judgements if judgement.verdict == "wrong"]
    if as_json:
        print_json(
            {
                "format": as_,
                "fields": summary,
                "wrong": [dict(zip(COLUMNS, _cells(each), strict=True)) for each in wrong],
            }
        )
        return
    console = get_console("out")
    for name, counts in summary.items():
        share = counts["agrees_percent"]
        figures = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in VERDICTS)
        judged = "none could be judged" if share is None else f"{share} % of those judged agree"
        console.print(f"{name}: {figures}; {judged}", highlight=False, markup=False, soft_wrap=True)
    for each in wrong[:_SHOWN]:
        line, size, region, name, says, _, expected, evidence = _cells(each)
        place = " ".join(filter(None, (size, region)))
        text = f"wrong: line {line}: {place} {name} {says}; {expected}, {evidence}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
    if len(wrong) > _SHOWN:
        print_note(f"{len(wrong) - _SHOWN:,} more are wrong: --csv FILE writes all")


def _cells(judgement: "Judgement") -> tuple[str, ...]:
    claim = judgement.claim
    place = (str(claim.line), claim.size, claim.region or "", claim.meaning.field)
    return (*place, claim.cell, judgement.verdict, judgement.expected, judgement.evidence)


def _write(path: Path, found: "Audit") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(_cells, found.judgements))
