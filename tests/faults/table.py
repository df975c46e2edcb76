"""`python -m tests.faults.table`: bring every fault about and print what clients saw, as docs/faults.md has it.

With words as arguments only the faults whose names contain one of them.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TypeVar

from tests.faults import postgresql, sqlite_files, worlds
from tests.faults.observe import Fault, Outcome, observe
from tests.processes import ServiceProcess

W = TypeVar("W")

HEADINGS = (
    *("fault", "kept answer", "other answers", "slowest refusal", "/readyz says", "recovered after", "catalog after"),
    *("slowest /healthz", "log: begin + end"),
)


def outcomes(
    faults: Sequence[Fault[W]],
    world: W,
    serve: Callable[[W, Path], AbstractContextManager[ServiceProcess]],
    before_each: Callable[[W], None] = lambda _: None,
) -> Iterator[Outcome]:
    """Yield what was seen of each fault, each with a service of its own."""
    with tempfile.TemporaryDirectory() as folder:
        for number, fault in enumerate(faults):
            before_each(world)
            log = Path(folder) / f"{number}.log"
            with serve(world, log) as service:
                yield observe(fault, world, service, log)


def main(words: Sequence[str]) -> int:
    """Print a table for each database; returns 1 where something was not as it should be."""
    wrong = 0
    with ExitStack() as stack:
        sqlite, server = stack.enter_context(worlds.sqlite_file()), stack.enter_context(worlds.postgresql_server())
        tables: tuple[tuple[str, Iterator[Outcome]], ...] = (
            ("SQLite", outcomes(_chosen(sqlite_files.FAULTS, words), sqlite, worlds.sqlite_service, worlds.restore)),
            ("PostgreSQL", outcomes(_chosen(postgresql.FAULTS, words), server, worlds.postgresql_service)),
        )
        for title, rows in tables:
            _say(f"\n### {title}\n\n| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}")
            for outcome in rows:
                _say(_row(outcome))
                for problem in outcome.problems:
                    wrong += 1
                    print(f"  !! {outcome.name}: {problem}", file=sys.stderr, flush=True)  # noqa: T201
    _say(f"\nLoad of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")
    return 1 if wrong else 0


def _chosen(faults: Sequence[Fault[W]], words: Sequence[str]) -> list[Fault[W]]:
    return [fault for fault in faults if not words or any(word in fault.name for word in words)]


def _row(outcome: Outcome) -> str:
    slowest = f"{outcome.slowest_refusal_seconds:.2f} s" if outcome.slowest_refusal_seconds else "-"
    cells = (
        *(outcome.name, outcome.kept, outcome.uncached, slowest, outcome.ready),
        *(f"{outcome.recovered_seconds:.1f} s", "the same" if outcome.same_catalog else "the new one"),
        *(f"{1000 * outcome.slowest_health_seconds:.0f} ms", outcome.logged),
    )
    return f"| {' | '.join(cells)} |"


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201  # this is what the command is for


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
