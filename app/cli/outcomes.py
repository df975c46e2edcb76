"""Prints what an ingest did, or would do."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape

from app.catalog.price_checks import REFUSAL_REASONS
from app.catalog.readings import Report
from app.cli.context import log_result
from app.cli.output import get_console, print_json
from app.ingest.run import IngestOutcome


def print_outcome(outcome: IngestOutcome, *, as_json: bool) -> None:
    """Print what an ingest did or would do, table by table; what could not be read goes to standard error."""
    print_reports(outcome.summary.reports)
    if number := outcome.summary.linux_at_windows_price:
        text = (
            f"{plural(number, 'Linux price')} equal the Windows price there: right with the Azure Hybrid Benefit only."
        )
        get_console("err").print(f"[yellow]note:[/] {text}", highlight=False, soft_wrap=True)
    log_result("ingested", outcome_json(outcome))
    if as_json:
        print_json(outcome_json(outcome))
    else:
        print_tables(outcome, get_console("out"))
    if not outcome.written:
        get_console("err").print("Nothing was written.", highlight=False)


def outcome_json(outcome: IngestOutcome) -> dict[str, object]:
    """Return an outcome as a JSON object."""
    return {
        "revision": outcome.revision["number"],
        "digest": outcome.revision["digest"],
        "new_revision": outcome.new_revision,
        "written": outcome.written,
        "reports": len(outcome.summary.reports),
        "linux_at_windows_price": outcome.summary.linux_at_windows_price,
        "refused_prices": [
            {"source": source, "rule": rule, "prices": number}
            for (source, rule), number in sorted(outcome.summary.refused.items())
        ],
        "tables": {
            name: {kind: getattr(change, kind) for kind in ("added", "changed", "unchanged", "removed")}
            for name, change in outcome.summary.changes.items()
        },
    }


def print_reports(reports: Iterable[Report]) -> None:
    """Print what could not be read to standard error."""
    for report in reports:
        text = f"[yellow]not read:[/] {escape(str(report))}"
        get_console("err").print(text, highlight=False, soft_wrap=True)


def print_tables(outcome: IngestOutcome, console: Console) -> None:
    """Print what changed in each table, and the revision."""
    for name, change in outcome.summary.changes.items():
        done = [f"{getattr(change, kind)} {kind}" for kind in ("added", "changed", "removed") if getattr(change, kind)]
        if done or change.unchanged:
            console.print(f"{name:12} {', '.join([*done, f'{change.unchanged} unchanged'])}", highlight=False)
    for (source, rule), number in sorted(outcome.summary.refused.items()):
        text = f"refused: {plural(number, 'price')} of {source}, {REFUSAL_REASONS[rule]}"
        console.print(text, highlight=False, soft_wrap=True)
    if outcome.summary.refused:
        console.print("`vmsizes refused-prices` lists them with their evidence.", highlight=False, soft_wrap=True)
    state = ("new" if outcome.new_revision else "unchanged") + ("" if outcome.written else ", not written")
    text = f"revision {outcome.revision['number']} ({state}), digest {outcome.revision['digest']}"
    console.print(text, highlight=False, soft_wrap=True)


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number} {noun}" if number == 1 else f"{number:,} {noun}s"
