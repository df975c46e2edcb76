"""`python -m tests.fuzz --minutes 20 [--database sqlite] [--seed 1] [STRATEGY ...]`: random hostile files and requests.

Every file must be taken or refused with an error of the program, within HANG_SECONDS of CPU time, and every request
answered by less than 500, within REQUEST_SECONDS. The first input of each crash is written to build/fuzz. Prints a
table, and exits with 1 if there was a crash or a hang.
"""

import argparse
import json
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from app.db import migrations
from app.db.engines import make_engine
from app.settings import PROJECT
from tests.databases import START
from tests.fuzz.inputs import STRATEGIES, Input
from tests.fuzz.requests import REQUESTS
from tests.fuzz.target import Outcome, fill, run, send
from tests.processes import run_service
from tests.seeded import seeded_url

ALL: Mapping[str, Callable[[], st.SearchStrategy[Input]]] = {**STRATEGIES, **REQUESTS}
FOUND = PROJECT / "build" / "fuzz"
BATCH = 200
"""Inputs of one strategy before the next one has its turn."""


class Findings:
    """Counts outcomes, and keeps the slowest input and the first one of each signature."""

    def __init__(self, database: str) -> None:
        self.database, self.counts = database, Counter[tuple[str, str]]()
        self.signatures = Counter[str]()
        self.slowest: dict[str, tuple[float, int]] = {}

    def add(self, strategy: str, given_input: Input, outcome: Outcome) -> None:
        self.counts[strategy, outcome.kind] += 1
        if outcome.seconds > self.slowest.get(strategy, (0.0, 0))[0]:
            self.slowest[strategy] = (outcome.seconds, len(given_input.data))
            self._keep(f"slowest-{strategy}", given_input, "")
        if outcome.signature:
            self.signatures[outcome.signature] += 1
            if self.signatures[outcome.signature] == 1:
                print(f"{outcome.kind}: {outcome.signature} ({given_input.kind})", flush=True)
                self._keep(re.sub(r"[^\w.]+", "-", outcome.signature), given_input, outcome.trace)

    def _keep(self, name: str, given_input: Input, trace: str) -> None:
        folder = FOUND / f"{self.database}-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / given_input.name).write_bytes(given_input.data)
        (folder / "kind").write_text(given_input.kind)
        if trace:
            (folder / "trace").write_text(trace)

    def print_table(self) -> None:
        print(
            f"{'database':<11}{'strategy':<16}{'inputs':>8}{'taken':>8}{'refused':>9}{'crashes':>9}{'hangs':>7} slowest"
        )
        for strategy in dict.fromkeys(strategy for strategy, _ in self.counts):
            kinds = {kind: self.counts[strategy, kind] for kind in ("taken", "refused", "crash", "hang")}
            seconds, size = self.slowest.get(strategy, (0.0, 0))
            taken, refused, crash, hang = kinds.values()
            print(
                f"{self.database:<11}{strategy:<16}{sum(kinds.values()):>8}{taken:>8}{refused:>9}{crash:>9}{hang:>7}"
                f" {seconds:.2f} s ({size:,} bytes)"
            )
        print(json.dumps(self.signatures.most_common()))


def fuzz(
    run_one: Callable[[str, Input], Outcome],
    findings: Findings,
    names: Sequence[str],
    *,
    minutes: float,
    first_seed: int,
) -> None:
    """Run the strategies in turn until the time is over."""
    deadline = time.monotonic() + minutes * 60
    number = first_seed
    while time.monotonic() < deadline:
        for name in names:
            for each in inputs_of(name, number, BATCH):
                if time.monotonic() > deadline:
                    return
                findings.add(name, each, run_one(name, each))
        number += 1


def inputs_of(name: str, number: int, examples: int) -> list[Input]:
    """Return inputs of a strategy; the same for the same number."""
    drawn: list[Input] = []

    @seed(number)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ALL[name]())
    def draw(each: Input) -> None:
        drawn.append(each)

    draw()
    return drawn


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--database", choices=sorted(START), default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("strategies", nargs="*", metavar="STRATEGY", help=f"of {', '.join(ALL)}; default: all")
    arguments = parser.parse_args()
    findings = Findings(arguments.database)
    with tempfile.TemporaryDirectory() as temporary, START[arguments.database](Path(temporary)) as databases:
        engine = make_engine(databases.create())
        migrations.upgrade(engine)
        fill(engine)
        folder = Path(temporary) / "input"
        with run_service(seeded_url(databases), Path(temporary) / "log") as service:

            def run_one(name: str, each: Input) -> Outcome:
                return send(service, each) if name in REQUESTS else run(engine, folder, each)

            names = arguments.strategies or list(ALL)
            fuzz(run_one, findings, names, minutes=arguments.minutes, first_seed=arguments.seed)
        engine.dispose()
    findings.print_table()
    return 1 if findings.signatures else 0


if __name__ == "__main__":
    sys.exit(main())
