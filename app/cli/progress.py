"""How far long work is: a live line where a person looks on, else a line every few seconds; always on stderr."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from app.catalog.readings import Progress
from app.cli.output import get_console

INTERVAL = 5.0
"""Seconds between two lines, and before the first: what is quick says nothing."""

Clock = Callable[[], float]


def progress(console: Console | None = None, clock: Clock = monotonic) -> AbstractContextManager[Progress]:
    """Tell whoever runs a command how far it is; on standard error by default."""
    console = console or get_console("err")
    return _live(console, clock) if console.is_terminal else _lines(console, clock)


@contextmanager
def _live(console: Console, clock: Clock) -> Iterator[Progress]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bar(*columns, console=console, transient=True) as bar:
        task, pace = bar.add_task("starting", total=1.0), _Rate(clock)

        def tell(doing: str, share: float | None, rows: int = 0) -> None:
            said = pace.describe(doing, rows)
            bar.update(task, description=said, completed=share or 0.0, total=None if share is None else 1.0)

        yield tell


@contextmanager
def _lines(console: Console, clock: Clock) -> Iterator[Progress]:
    pace, last, last_doing = _Rate(clock), clock(), ""
    quick_until = last + INTERVAL

    def tell(doing: str, share: float | None, rows: int = 0) -> None:
        nonlocal last, last_doing
        said, now = pace.describe(doing, rows), clock()
        if now >= quick_until and (now - last >= INTERVAL or doing != last_doing):
            last, last_doing = now, doing
            done = "" if share is None else f", {share:.0%}"
            console.print(f"{said}{done}", highlight=False, markup=False, soft_wrap=True)

    yield tell


class _Rate:
    """How many rows a second what is being done goes through, since it began."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._doing, self._since, self._before = clock, "", 0.0, 0

    def describe(self, doing: str, rows: int) -> str:
        """Say what is done, with its rows and their rate, where it has rows."""
        now = self._clock()
        if doing != self._doing:
            self._doing, self._since, self._before = doing, now, rows
        if not rows:
            return doing
        seconds = now - self._since
        rate = f", {(rows - self._before) / seconds:,.0f} rows/s" if seconds > 0 and rows > self._before else ""
        return f"{doing}: {rows:,} rows{rate}"
