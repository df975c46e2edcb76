"""Progress shown during long work."""

import io

from rich.console import Console

from app.cli.jobs import progress


class Clock:
    """A clock that only advances by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_short_work_prints_nothing() -> None:
    clock, out = Clock(), io.StringIO()
    with progress(Console(file=out), clock) as report:
        report("prices", 0.1, 1_000)
        clock.now += 4.9
        report("prices", 1.0, 2_000)
        report("offers", None)
    assert out.getvalue() == ""


def test_long_work_prints_its_progress_every_few_seconds() -> None:
    clock, out = Clock(), io.StringIO()
    with progress(Console(file=out), clock) as report:
        for number in range(13):
            report("prices", number / 13, 100_000 * number)
            clock.now += 1
        report("writing prices", None, 1_200_000)
        clock.now += 1
        report("offers", None)
    assert out.getvalue().splitlines() == [
        "prices: 500,000 rows, 100,000 rows/s, 38%, 8 s left",
        "prices: 1,000,000 rows, 100,000 rows/s, 77%, 3 s left",
        "writing prices: 1,200,000 rows",
        "offers",
    ]


def test_what_is_counted_has_its_name() -> None:
    clock, out = Clock(), io.StringIO()
    with progress(Console(file=out), clock, "pages") as report:
        report("writing about 40 pages", 0.0, 0)
        clock.now += 5
        report("writing about 40 pages", 0.25, 10)
    assert out.getvalue() == "writing about 40 pages: 10 pages, 2 pages/s, 25%, 15 s left\n"


def test_a_terminal_gets_a_live_line_that_is_gone_afterwards() -> None:
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, legacy_windows=False)
    with progress(console, clock) as report:
        report("prices", 0.0, 0)
        clock.now += 2
        report("prices", 0.5, 600_000)
    assert "prices: 600,000 rows, 300,000 rows/s, 2 s left" in out.getvalue()
    assert out.getvalue().rstrip().endswith("\x1b[2K")
