"""What the refresh of each feed did, and how `vmsizes refresh` tells it."""

import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.cli import context
from app.cli.outcomes import outcome_json, print_reports, print_tables
from app.cli.output import get_console, print_json, print_note
from app.ingest.run import IngestOutcome


@dataclass(slots=True, kw_only=True)
class FeedResult:
    """What the refresh of one feed did: lines to print, details for JSON, and what was refused with what to do."""

    feed: str
    headline: str
    lines: list[str] = field(default_factory=list)
    details: dict[str, object] = field(default_factory=dict)
    outcome: IngestOutcome | None = None
    refused: dict[str, Sequence[str]] = field(default_factory=dict)
    hints: list[str] = field(default_factory=list)


def summarize(results: Sequence[FeedResult]) -> str:
    """Return what a refresh did as one line: the headline of each feed, what it refused, and the newest revision."""
    parts = []
    for result in results:
        refused = [f"{', '.join(names)}: {'; '.join(reasons)}" for reasons, names in _by_reasons(result)]
        parts.append(" | refused: ".join([result.headline, *refused]))
    outcomes = [result.outcome for result in results if result.outcome]
    state = f"revision {outcomes[-1].revision['number']}" if outcomes else "nothing was written"
    failed = any(result.refused for result in results)
    return f"{'failed' if failed else 'refreshed'}: {'; '.join(parts)}; {state}"


def _by_reasons(result: FeedResult) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return each list of reasons with the names of what was refused for them."""
    names: dict[tuple[str, ...], list[str]] = {}
    for name, reasons in result.refused.items():
        names.setdefault(tuple(reasons), []).append(name)
    return list(names.items())


def finish(results: Sequence[FeedResult], *, as_json: bool) -> None:
    """Print what each feed did and deliver it to webhooks; exit with the code for bad data if anything was refused."""
    for result in results:
        print_reports(result.outcome.summary.reports if result.outcome else ())
        level = logging.ERROR if result.refused else logging.INFO
        context.log_result("refreshed", _result_json(result), level=level)
    if as_json:
        print_json({"feeds": [_result_json(result) for result in results]})
    else:
        for result in results:
            _print_result(result)
    for result in results:
        for reasons, names in _by_reasons(result):
            print_note(f"refused: {', '.join(names)}: {'; '.join(reasons)}")
        for hint in result.hints:
            print_note(hint)
        if result.outcome is None or not result.outcome.written:
            print_note(f"{result.feed}: nothing was written.")
    if any(result.outcome and result.outcome.written for result in results):
        for text in deliver():
            print_note(text)
    if any(result.refused for result in results):
        sys.exit(context.EXIT_BAD_DATA)


def deliver() -> list[str]:
    """Send webhooks what is due, and return a line about it; one that fails does not make the refresh fail."""
    from app.cli.webhooks import deliver_after_refresh

    return deliver_after_refresh()


def _print_result(result: FeedResult) -> None:
    console = get_console("out")
    for line in (result.headline, *result.lines):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    if result.outcome:
        print_tables(result.outcome, console)


def _result_json(result: FeedResult) -> dict[str, object]:
    return {
        "feed": result.feed,
        **result.details,
        "refused": [{"name": name, "reasons": [*reasons]} for name, reasons in result.refused.items()],
        "ingest": outcome_json(result.outcome) if result.outcome else None,
    }
