"""Measures whom the slowest questions delay: `python -m benchmarks.stalls` over 100,000 sizes.

Clients ask different questions that look at every size, as fast as they are answered. Beside them one client asks for
a stored page and for /healthz in turn, and each answer is timed: first alone, then with the others.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.build import CACHE_FOLDER, sqlite_catalog
from benchmarks.catalogs import MANY
from benchmarks.mixed import fetch
from benchmarks.ratios import percentile
from benchmarks.servers import Server, running, uvicorn

KEPT = ("/sizes?region=eastus&sort=usd_per_hour", "/healthz")
SLOW: dict[str, Callable[[int], str]] = {
    "facets": lambda number: f"/facets?min_vcpus=2&max_memory={5000 + number}",
    "rare words": lambda number: f"/sizes?q=nothing{number}",
    "facts": lambda number: f"/sizes/s000500_v2/facts?limit={number % 500 + 1}",
    "conflicts": lambda number: f"/conflicts?limit={number % 500 + 1}",
    "fit": lambda number: f"/fit?min_vcpus={number + 1}",
}
PAUSE = 0.005  # seconds between two answers of the client that is timed


async def _ask(
    port: int, slow: Callable[[int], str], clients: int, seconds: float
) -> tuple[list[list[float]], Counter[int]]:
    took: list[list[float]] = [[] for _ in KEPT]
    statuses: Counter[int] = Counter()
    ends, numbers = time.perf_counter() + seconds, iter(range(10**9))

    async def load() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < ends:
            status, _ = await fetch(reader, writer, slow(next(numbers)))
            statuses[status] += 1
        writer.close()

    async def probe() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < ends:
            for times, target in zip(took, KEPT, strict=True):
                times.append((await fetch(reader, writer, target))[1])
            await asyncio.sleep(PAUSE)
        writer.close()

    loads = [asyncio.create_task(load()) for _ in range(clients)]
    await probe()
    await asyncio.wait(loads, timeout=60) if loads else None
    for one in loads:
        one.cancel()
    return took, statuses


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """How long a stored page and /healthz took beside clients of one kind of slow question, and what these got."""

    question: str
    clients: int
    page_ms: list[float]
    healthz_ms: list[float]
    statuses: Counter[int]


def measure(server: Server, seconds: float, crowds: Sequence[int] = (0, 8, 64)) -> Iterator[Stall]:
    """Time a stored page and /healthz beside each number of clients of each kind of slow question."""
    for name, slow in SLOW.items():
        for clients in crowds:
            (page, healthz), statuses = asyncio.run(_ask(server.port, slow, clients, seconds))
            yield Stall(question=name, clients=clients, page_ms=page, healthz_ms=healthz, statuses=statuses)


def _line(one: Stall) -> str:
    figures = (
        f"{name} p50 {percentile(times, 50):.1f} p99 {percentile(times, 99):.1f} ms"
        for name, times in (("/sizes", one.page_ms), ("/healthz", one.healthz_ms))
    )
    return f"{one.question:10} {one.clients:2} clients: {', '.join(figures)}; answers {dict(one.statuses)}"


def main() -> None:
    """Measure and print a line for each kind of question and number of clients."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stalls", description="Whom slow questions delay.")
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--database", help="the URL of another catalog")
    options = parser.parse_args()
    database = options.database or sqlite_catalog(MANY, lambda text: print(text, file=sys.stderr), CACHE_FOLDER)
    with tempfile.TemporaryDirectory(prefix="vmsizes-stalls-") as name:
        command = uvicorn("app.asgi:service", VMSIZES_DATABASE_URL=database)
        with running(command, Path(name) / "log", ready="/sizes?limit=1") as server:
            for one in measure(server, options.seconds):
                print(_line(one), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
