"""Measures what a second worker adds: `python -m benchmarks.workers` over the seeds.

`vmsizes serve` with one worker and with two are loaded in turn, A B A B, by wrk on the same machine. It takes a part of
the cores, which is printed, since two workers cannot have that: only costly requests leave nearly all to them.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.build import seeded_catalog
from benchmarks.fits import FIT
from benchmarks.load import MISSING, Burst, burst, is_installed
from benchmarks.ratios import Spread, paired
from benchmarks.servers import Command, LoadRequest, Server, running
from benchmarks.sides import COLD

CONNECTIONS, WARM_UP = 16, 100
PAGE = LoadRequest(targets=("/sizes?region=eastus&min_gpu_mem=80&sort=usd_per_hour",))
FIT_MODEL = LoadRequest(
    targets=("/fit",), method="POST", headers=(("Content-Type", "application/json"),), body=json.dumps(FIT)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What workers are asked, and the settings that they run with."""

    request: LoadRequest
    settings: Mapping[str, str] = field(default_factory=dict)


CASES = {
    "a stored page": Work(request=PAGE),
    "a page without the cache": Work(request=PAGE, settings=COLD),
    "POST /fit without the cache": Work(request=FIT_MODEL, settings=COLD),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How many times the requests two workers answer, of those of one.

    `ratio` is of those a second, `cpu_ratio` of those for each second of CPU of the workers, of which wrk takes none.
    """

    ratio: Spread
    cpu_ratio: Spread
    cores_of_wrk: float


def main() -> int:
    """Measure and print a line for each kind of request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description="What a second worker adds.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if not is_installed():
        print(MISSING, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="vmsizes-workers-") as temporary:
        folder = Path(temporary)
        database = seeded_catalog(folder)
        for name, work in CASES.items():
            gain = measure(database, folder, work, pairs=options.pairs, seconds=options.seconds)
            print(
                f"{name}: {_text(gain.ratio)} times the requests a second, {_text(gain.cpu_ratio)} times those for "
                f"each second of CPU; wrk took {gain.cores_of_wrk:.2f} cores",
                flush=True,
            )
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; wrk ran on the same machine")
    return 0


def measure(database: str, folder: Path, work: Work, *, pairs: int, seconds: float) -> Gain:
    """Load one worker and two in turn, with files in a folder."""
    request = work.request
    with ExitStack() as stack:
        one, two = (
            stack.enter_context(running(_serve(database, workers, work.settings), folder / f"{workers}.log"))
            for workers in (1, 2)
        )
        for server in (one, two):
            for _ in range(WARM_UP):  # each by a new connection, which any of the workers may take
                server.request(request, request.targets[0])
        before = _seconds_of_wrk()
        rounds = [[_load(server, request, folder, seconds) for server in (one, two)] for _ in range(pairs)]
        cores_of_wrk = (_seconds_of_wrk() - before) / (2 * pairs * seconds)
    ones, twos = zip(*rounds, strict=True)
    return Gain(
        ratio=paired([each.per_second for each in twos], [each.per_second for each in ones]),
        cpu_ratio=paired([each.cpu_microseconds for each in ones], [each.cpu_microseconds for each in twos]),
        cores_of_wrk=cores_of_wrk,
    )


def _text(ratio: Spread) -> str:
    return f"{ratio.median:.2f} ({ratio.min:.2f} - {ratio.max:.2f})"


def _load(server: Server, request: LoadRequest, folder: Path, seconds: float) -> Burst:
    return burst(server, request, seconds=seconds, connections=CONNECTIONS, folder=folder)


def _serve(database: str, workers: int, settings: Mapping[str, str]) -> Command:
    program = str(Path(sys.executable).with_name("vmsizes"))
    return Command(
        words=(program, "serve", "--port", "{port}", "--workers", str(workers)),
        environment={"VMSIZES_DATABASE_URL": database, **settings},
    )


def _seconds_of_wrk() -> float:
    """Return the CPU seconds of the programs that were waited for: those of wrk, as the servers still run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
