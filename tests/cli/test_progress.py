"""What is told of long work while it lasts."""

import io

from rich.console import Console

from app.cli.ingest import progress


class Clock:
    """A clock that goes on when it is told to."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_what_is_quick_says_nothing() -> None:
    clock, out = Clock(), io.StringIO()
    with progress(Console(file=out), clock) as tell:
        tell("prices", 0.1, 1_000)
        clock.now += 4.9
        tell("prices", 1.0, 2_000)
        tell("offers", None)
    assert out.getvalue() == ""


def test_what_is_long_says_how_far_it_is_every_few_seconds() -> None:
    clock, out = Clock(), io.StringIO()
    with progress(Console(file=out), clock) as tell:
        for number in range(13):
            tell("prices", number / 13, 100_000 * number)
            clock.now += 1
        tell("writing prices", None, 1_200_000)
        clock.now += 1
        tell("offers", None)
    assert out.getvalue().splitlines() == [
        "prices: 500,000 rows, 100,000 rows/s, 38%",
        "prices: 1,000,000 rows, 100,000 rows/s, 77%",
        "writing prices: 1,200,000 rows",
        "offers",
    ]


def test_a_person_sees_a_live_line_that_is_gone_afterwards() -> None:
    clock, out = Clock(), io.StringIO()
    console = Console(file=out, force_terminal=True, width=100, legacy_windows=False)
    with progress(console, clock) as tell:
        tell("prices", 0.0, 0)
        clock.now += 2
        tell("prices", 0.5, 600_000)
    assert "prices: 600,000 rows, 300,000 rows/s" in out.getvalue()
    assert out.getvalue().rstrip().endswith("\x1b[2K")
