"""What commands that write to the catalog share: progress, what an ingest did, and repetition at an interval."""

import logging
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from app.catalog.price_checks import REFUSAL_REASONS
from app.catalog.readings import Progress, Reading, Report, no_progress
from app.cli import context
from app.cli.options import Wait, with_options
from app.cli.output import EXIT_OK, Json, get_console, print_json
from app.validation import plural

if TYPE_CHECKING:
    from rich.console import Console

    from app.ingest.run import IngestOptions, IngestOutcome

_log = logging.getLogger(__name__)

# Progress

INTERVAL = 5.0
"""Seconds between two lines of progress, and before the first: short work prints none."""

_LONG = 100.0
"""Seconds from which on the time left is shown in minutes."""

Clock = Callable[[], float]


def progress(
    console: "Console | None" = None, clock: Clock = time.monotonic, unit: str = "rows"
) -> AbstractContextManager[Progress]:
    """Show the progress of long work on standard error: a live line on a terminal, else a line every few seconds.

    `unit` is what is counted.
    """
    console = console or get_console("err")
    rate = _Rate(clock, unit)
    return _live_line(console, rate) if console.is_terminal else _lines(console, clock, rate)


@contextmanager
def _live_line(console: "Console", rate: "_Rate") -> Iterator[Progress]:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)

        def report(doing: str, share: float | None, rows: int = 0) -> None:
            text = f"{rate.describe(doing, rows)}{rate.time_left(share)}"
            bar.update(task, description=text, completed=share or 0.0, total=None if share is None else 1.0)

        yield report


@contextmanager
def _lines(console: "Console", clock: Clock, rate: "_Rate") -> Iterator[Progress]:
    last_time, last_step = clock(), ""
    quiet_until = last_time + INTERVAL

    def report(doing: str, share: float | None, rows: int = 0) -> None:
        nonlocal last_time, last_step
        text, left, now = rate.describe(doing, rows), rate.time_left(share), clock()
        if now >= quiet_until and (now - last_time >= INTERVAL or doing != last_step):
            last_time, last_step = now, doing
            percent = "" if share is None else f", {share:.0%}"
            console.print(f"{text}{percent}{left}", markup=False, soft_wrap=True)

    yield report


class _Rate:
    """Measures the units per second of a step, and the time that it will take, from the moment it began."""

    def __init__(self, clock: Clock, unit: str) -> None:
        self._clock, self._unit, self._step, self._began, self._first_rows = clock, unit, "", 0.0, 0
        self._first_share: float | None = None

    def describe(self, step: str, rows: int) -> str:
        """Return the step, with its rows and their rate where it has any."""
        now = self._clock()
        if step != self._step:
            self._step, self._began, self._first_rows, self._first_share = step, now, rows, None
        if not rows:
            return step
        seconds = now - self._began
        done = rows - self._first_rows
        rate = f", {done / seconds:,.0f} {self._unit}/s" if seconds > 0 and done > 0 else ""
        return f"{step}: {rows:,} {self._unit}{rate}"

    def time_left(self, share: float | None) -> str:
        """Return how long the rest of the step will take if it goes on as it began; empty where that is unknown."""
        if share is None:
            return ""
        if self._first_share is None:
            self._first_share = share
        done = share - self._first_share
        if done <= 0 or share >= 1:
            return ""
        seconds = (self._clock() - self._began) * (1 - share) / done
        return f", {seconds:.0f} s left" if seconds < _LONG else f", {seconds / 60:.0f} min left"


# Ingests

DryRun = Annotated[bool, typer.Option("--dry-run", help="Print what would be done and write nothing.")]
Strict = Annotated[bool, typer.Option("--strict", help="Write nothing if anything cannot be read or is refused.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How a command writes; a quiet run shows no progress."""

    dry_run: bool = False
    strict: bool = False
    wait: float | None = None
    as_json: bool = False
    quiet: bool = False

    @contextmanager
    def writing(self) -> Iterator["IngestOptions"]:
        """Show the progress of what is done inside; yield the options that each ingest takes."""
        with nullcontext(no_progress) if self.quiet else progress() as step:
            yield {"now": context.now(), "strict": self.strict, "dry_run": self.dry_run, "progress": step}

    def ingest(self, reading: Reading) -> "IngestOutcome":
        """Write a reading, or show what would be written."""
        from app.ingest.run import ingest

        with self.writing() as options:
            return ingest(context.engine(), reading, **options)


@with_options("run")
def with_run_options(
    *, dry_run: DryRun = False, strict: Strict = False, wait: Wait = None, as_json: Json = False
) -> RunOptions:
    """Add --dry-run, --strict, --wait and --json to a command, which gets them as its parameter `run`."""
    return RunOptions(dry_run=dry_run, strict=strict, wait=wait, as_json=as_json)


def print_outcome(outcome: "IngestOutcome", *, as_json: bool) -> None:
    """Print what an ingest did or would do, table by table; what could not be read goes to standard error."""
    print_reports(outcome.summary.reports)
    console = get_console("err")
    if number := outcome.summary.linux_at_windows_price:
        text = "equal the Windows price there: right with the Azure Hybrid Benefit only."
        console.print(f"[yellow]note:[/] {plural(number, 'Linux price')} {text}", soft_wrap=True)
    if number := outcome.summary.undated_spot_prices:
        text = "without a day: kept, but no offers; add a column valid_from (YYYY-MM-DD)."
        console.print(f"[yellow]note:[/] {plural(number, 'spot price')} {text}", soft_wrap=True)
    result = outcome_json(outcome)
    context.log_result("ingested", result)
    if as_json:
        print_json(result)
    else:
        print_tables(outcome, get_console("out"))
    if not outcome.written:
        console.print("Nothing was written.")


def outcome_json(outcome: "IngestOutcome") -> dict[str, object]:
    """Return an outcome as a JSON object."""
    return {
        "revision": outcome.revision["number"],
        "digest": outcome.revision["digest"],
        "new_revision": outcome.new_revision,
        "written": outcome.written,
        "reports": len(outcome.summary.reports),
        "linux_at_windows_price": outcome.summary.linux_at_windows_price,
        "undated_spot_prices": outcome.summary.undated_spot_prices,
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
    from rich.markup import escape

    for report in reports:
        text = f"[yellow]not read:[/] {escape(str(report))}"
        get_console("err").print(text, soft_wrap=True)


def print_tables(outcome: "IngestOutcome", console: "Console") -> None:
    """Print what changed in each table, and the revision."""
    for name, change in outcome.summary.changes.items():
        done = [f"{getattr(change, kind)} {kind}" for kind in ("added", "changed", "removed") if getattr(change, kind)]
        if done or change.unchanged:
            console.print(f"{name:12} {', '.join([*done, f'{change.unchanged} unchanged'])}")
    for (source, rule), number in sorted(outcome.summary.refused.items()):
        text = f"refused: {plural(number, 'price')} of {source}, {REFUSAL_REASONS[rule]}"
        console.print(text, soft_wrap=True)
    if outcome.summary.refused:
        console.print("`vmsizes refused-prices` lists them with their evidence.", soft_wrap=True)
    state = ("new" if outcome.new_revision else "unchanged") + ("" if outcome.written else ", not written")
    text = f"revision {outcome.revision['number']} ({state}), digest {outcome.revision['digest']}"
    console.print(text, soft_wrap=True)


# Repetition

JITTER = 0.05
"""A wait is longer or shorter by up to this share, so that many catalogs do not ask the vendor at the same moment."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INTERVAL = re.compile(r"(\d+)([smhd])")


def parse_interval(text: str) -> int:
    """Return the seconds of an interval as people write it: `90s`, `30m`, `24h`, `7d`."""
    match = _INTERVAL.fullmatch(text.strip())
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if not 1 <= seconds <= 366 * 86400:
        raise typer.BadParameter(
            f"{text!r} is not an interval: write a whole number with s, m, h or d, from 1s to 366d, such as 24h"
        )
    return seconds


def repeat(run: Callable[[], str], every_seconds: int) -> NoReturn:
    """Call `run` now and again at the interval, and print one line for each call: when, its text or error, how long.

    The interval is from start to start, so that the hour of the day stays about the same; calls never overlap. A call
    that fails is printed and the next one comes at its time. SIGTERM exits with code 0, also in the middle of a call:
    an ingest is one transaction, so that the catalog is then as it was before.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(EXIT_OK))
    while True:
        started, began_at = time.monotonic(), context.now()
        text = _outcome_of(run)
        # An idle connection would keep the write-ahead log of SQLite, or a connection of PostgreSQL, for a day.
        context.engine().dispose()
        context.database().dispose()
        took = time.monotonic() - started
        failed = text.startswith("failed")
        level = logging.ERROR if failed else logging.INFO
        if not context.log_result("run ended", {"result": text, "duration_s": round(took, 3)}, level=level):
            print(f"{began_at:%Y-%m-%dT%H:%M:%SZ} {text}; took {took:.1f} s", flush=True)  # noqa: T201  # the log
        # No secret depends on this chance.
        wait = every_seconds * random.uniform(1 - JITTER, 1 + JITTER) - took  # noqa: S311
        time.sleep(max(0.0, wait))


def _outcome_of(run: Callable[[], str]) -> str:
    try:
        return run()
    except Exception as error:  # noqa: BLE001  # the next run may succeed
        message = context.error_message(error)
        if message is None:  # a fault of this program, whose place the log should have
            _log.exception("a run failed")
            message = f"{type(error).__name__}: {error}"
        return f"failed: {' '.join(message.split())}"
