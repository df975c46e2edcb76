"""Shows the progress of long work on standard error: a live line on a terminal, else a line every few seconds."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from app.catalog.readings import Progress
from app.cli.output import get_console

INTERVAL = 5.0
"""Seconds between two lines of progress, and before the first: short work prints none."""

_LONG = 100.0
"""Seconds from which on the time left is told in minutes."""

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
            text = f"{rate.describe(doing, rows)}{rate.time_left(share)}"
            bar.update(task, description=text, completed=share or 0.0, total=None if share is None else 1.0)

        yield report


@contextmanager
def _lines(console: Console, clock: Clock) -> Iterator[Progress]:
    rate, last_time, last_step = _Rate(clock), clock(), ""
    quiet_until = last_time + INTERVAL

    def report(doing: str, share: float | None, rows: int = 0) -> None:
        nonlocal last_time, last_step
        text, left, now = rate.describe(doing, rows), rate.time_left(share), clock()
        if now >= quiet_until and (now - last_time >= INTERVAL or doing != last_step):
            last_time, last_step = now, doing
            percent = "" if share is None else f", {share:.0%}"
            console.print(f"{text}{percent}{left}", highlight=False, markup=False, soft_wrap=True)

    yield report


class _Rate:
    """Measures the rows per second of a step, and the time that it will take, from the moment it began."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._step, self._began, self._first_rows = clock, "", 0.0, 0
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
        rate = f", {done / seconds:,.0f} rows/s" if seconds > 0 and done > 0 else ""
        return f"{step}: {rows:,} rows{rate}"

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
