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
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks.build import seeded_catalog
from benchmarks.fits import FIT
from benchmarks.load import MISSING, Burst, burst, is_installed
from benchmarks.ratios import paired
from benchmarks.servers import Command, LoadRequest, Server, running
from benchmarks.sides import COLD

CONNECTIONS, WARM_UP = 16, 100
PAGE = LoadRequest(targets=("/sizes?region=eastus&min_gpu_mem=80&sort=usd_per_hour",))
FIT_MODEL = LoadRequest(
    targets=("/fit",), method="POST", headers=(("Content-Type", "application/json"),), body=json.dumps(FIT)
)
CASES = {
    "a stored page": (PAGE, {}),
    "a page without the cache": (PAGE, COLD),
    "POST /fit without the cache": (FIT_MODEL, COLD),
}


def main() -> int:
    """Measure and print a line for each kind of request."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.workers", description="What a second worker adds.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    options = parser.parse_args()
    if not is_installed():
        print(MISSING, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="vmsizes-workers-") as name:
        folder = Path(name)
        database = seeded_catalog(folder)
        for line in _lines(database, folder, options.pairs, options.seconds):
            print(line, flush=True)
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}; wrk ran on the same machine")
    return 0


def _lines(database: str, folder: Path, pairs: int, seconds: float) -> Iterator[str]:
    for case, (request, settings) in CASES.items():
        with ExitStack() as stack:
            one, two = (
                stack.enter_context(running(_serve(database, workers, settings), folder / f"{workers}.log"))
                for workers in (1, 2)
            )
            for server in (one, two):
                for _ in range(WARM_UP):  # each by a new connection, which any of the workers may take
                    server.request(request, request.targets[0])
            before = _seconds_of_wrk()
            rounds = [[_load(server, request, folder, seconds) for server in (one, two)] for _ in range(pairs)]
            cores_of_wrk = (_seconds_of_wrk() - before) / (2 * pairs * seconds)
        ones, twos = zip(*rounds, strict=True)
        ratio = paired([each.per_second for each in twos], [each.per_second for each in ones])
        yield (
            f"{case}: {ratio.median:.2f} ({ratio.min:.2f} - {ratio.max:.2f}) times the requests a second; "
            f"wrk took {cores_of_wrk:.2f} cores"
        )


def _load(server: Server, request: LoadRequest, folder: Path, seconds: float) -> Burst:
    return burst(server, request, seconds=seconds, connections=CONNECTIONS, folder=folder)


def _serve(database: str, workers: int, settings: dict[str, str]) -> Command:
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
