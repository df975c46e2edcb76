"""Measures whom the slowest questions delay: `python -m benchmarks.stalls` over 10,000 sizes.

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
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import count
from multiprocessing import get_context
from pathlib import Path

from benchmarks.build import CACHE_FOLDER, sqlite_catalog
from benchmarks.catalogs import PROMISED, name_of
from benchmarks.mixed import fetch
from benchmarks.ratios import percentile
from benchmarks.servers import Server, running, uvicorn

KEPT = ("/sizes?region=eastus&sort=usd_per_hour", "/healthz")
CONFLICT_FIELDS = ("kind", "subject", "field", "unit", "name", "value", "raw", "reason", "file", "line")


def _conflicts(number: int) -> str:
    """Ask for different fields of different pages: a question that was asked before is answered from the cache."""
    page, combination = number % 500, number // 500
    fields = [name for place, name in enumerate(CONFLICT_FIELDS) if combination >> place & 1]
    return f"/conflicts?limit={page + 1}" + (f"&fields={','.join(fields)}" if fields else "")


SLOW: dict[str, Callable[[int], str]] = {
    "facets": lambda number: f"/facets?min_vcpus=2&max_memory={5000 + number}",
    "rare words": lambda number: f"/sizes?q=nothing{number}",
    "facts": lambda number: f"/sizes/{name_of(number % PROMISED.sizes)}/facts?limit={number % 500 + 1}",
    "conflicts": _conflicts,
    "fit": lambda number: f"/fit?min_vcpus={number + 1}",
}
PAUSE = 0.005  # seconds between two answers of the client that is timed


def _load(port: int, question: str, clients: int, seconds: float) -> Counter[int]:
    """Ask questions of a kind from some clients; return how often each status was the answer."""
    slow, statuses, numbers = SLOW[question], Counter[int](), count()
    ends = time.perf_counter() + seconds

    async def ask() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < ends:
            status, _ = await fetch(reader, writer, slow(next(numbers)))
            statuses[status] += 1
        writer.close()

    async def ask_all() -> None:
        await asyncio.gather(*(ask() for _ in range(clients)))

    asyncio.run(ask_all())
    return statuses


async def _probe(port: int, seconds: float) -> list[list[float]]:
    """Return the milliseconds that each answer to KEPT took."""
    took: list[list[float]] = [[] for _ in KEPT]
    ends = time.perf_counter() + seconds
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < ends:
        for times, target in zip(took, KEPT, strict=True):
            times.append((await fetch(reader, writer, target))[1])
        await asyncio.sleep(PAUSE)
    writer.close()
    return took


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
    # In a process of their own, so that the client that is timed waits for the service alone.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as others:
        others.submit(_load, server.port, next(iter(SLOW)), 0, 0).result()  # until it has started
        asyncio.run(_probe(server.port, PAUSE))  # stores the page: its first answer is not what is timed
        for name in SLOW:
            for clients in crowds:
                asked = others.submit(_load, server.port, name, clients, seconds)
                page, healthz = asyncio.run(_probe(server.port, seconds))
                yield Stall(question=name, clients=clients, page_ms=page, healthz_ms=healthz, statuses=asked.result())


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
    database = options.database or sqlite_catalog(PROMISED, lambda text: print(text, file=sys.stderr), CACHE_FOLDER)
    with tempfile.TemporaryDirectory(prefix="vmsizes-stalls-") as name:
        command = uvicorn("app.asgi:service", VMSIZES_DATABASE_URL=database)
        with running(command, Path(name) / "log", ready="/sizes?limit=1") as server:
            for one in measure(server, options.seconds):
                print(_line(one), flush=True)
    print(f"load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
