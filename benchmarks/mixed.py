"""Measures questions that differ: `python -m benchmarks.mixed`, or with `--against FOLDER` beside another checkout.

A worker is sent 2,000 different questions of a filter panel over 16 connections, then the same again, then others until
its memory is told. With `--against` the same is done alternately with the service of another folder, so that both meet
the same noise: compare the ratio of CPU. Every figure is the median of the rounds with the least and the greatest.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.build import CACHE_FOLDER, sqlite_catalog
from benchmarks.catalogs import FEW
from benchmarks.questions import panel_questions, random_questions
from benchmarks.ratios import percentile, spread
from benchmarks.servers import Command, LoadRequest, Server, running, uvicorn

CONNECTIONS = 16
PROBE_SECONDS = 0.005
Figures = dict[str, float]
_METRICS = LoadRequest(targets=("/metrics",))


@dataclass(slots=True)
class Answers:
    """How long each answer took, in milliseconds, and how often each status came."""

    took: list[float]
    statuses: Counter[int]
    probes: list[float]


def ask(server: Server, targets: Sequence[str], connections: int = CONNECTIONS) -> Answers:
    """Send each target once over some connections, while /healthz is probed over one more."""
    return asyncio.run(_ask(server.port, targets, connections))


async def _ask(port: int, targets: Sequence[str], connections: int) -> Answers:
    answers, left = Answers([], Counter(), []), iter(targets)

    async def work() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for target in left:
            status, took = await fetch(reader, writer, target)
            answers.took.append(took)
            answers.statuses[status] += 1
        writer.close()

    async def probe() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            _, took = await fetch(reader, writer, "/healthz")
            answers.probes.append(took)
            await asyncio.sleep(PROBE_SECONDS)

    probing = asyncio.create_task(probe())
    await asyncio.gather(*(work() for _ in range(connections)))
    probing.cancel()
    with suppress(asyncio.CancelledError):
        await probing
    return answers


async def fetch(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: str) -> tuple[int, float]:
    """Send a request and read its answer; returns the status, and the milliseconds."""
    begun = time.perf_counter()
    writer.write(f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = re.search(rb"content-length: (\d+)", head)
    await reader.readexactly(int(length[1]) if length else 0)
    return int(head[9:12]), 1000 * (time.perf_counter() - begun)


def measure(server: Server, *, count: int, connections: int) -> Figures:
    """Return the figures of one pass over new questions, and of the same questions again."""
    targets = panel_questions(count)
    figures: Figures = {"MB at first": server.memory_mb()}
    for name in ("new", "again"):
        before, hits = server.cpu_seconds(), _hits(server)
        answers = ask(server, targets, connections)
        cpu_ms = 1000 * (server.cpu_seconds() - before) / count
        others = {status: times for status, times in answers.statuses.items() if status != 200}
        if others:
            print(f"    statuses: {others}", file=sys.stderr)
        figures |= {
            f"{name}: CPU ms": cpu_ms,
            f"{name}: p50 ms": percentile(answers.took, 50),
            f"{name}: p99 ms": percentile(answers.took, 99),
            f"{name}: max ms": max(answers.took),
            f"{name}: /healthz max ms": max(answers.probes),
            f"{name}: hits": _hits(server) - hits,
        }
    return figures


def memory(server: Server, targets: Sequence[str]) -> Figures:
    """Return the memory of a worker after these questions."""
    answers = ask(server, targets)
    return {"MB": server.memory_mb(), "not 200": sum(answers.statuses.values()) - answers.statuses[200]}


def _hits(server: Server) -> float:
    text = server.request(_METRICS, "/metrics").body.decode()
    (found,) = re.findall(r"^vmsizes_response_cache_hits_total (\S+)", text, re.MULTILINE)
    return float(found)


def _command(folder: Path, database: str) -> Command:
    command = uvicorn("app.asgi:service", VMSIZES_DATABASE_URL=database)
    return Command(words=(*command.words, "--app-dir", str(folder)), environment=command.environment)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed", description="Questions that differ.")
    parser.add_argument("--against", type=Path, help="the folder of another checkout, measured in turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=2_000)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--memory", action="store_true", help="measure memory after 8,000 and 25,000 questions instead")
    parser.add_argument("--database", help="the URL of another catalog")
    options = parser.parse_args()
    database = options.database or sqlite_catalog(FEW, lambda text: print(text, file=sys.stderr), CACHE_FOLDER)
    folders = {"here": Path.cwd()} | ({"against": options.against} if options.against else {})
    seen: dict[str, list[Figures]] = {name: [] for name in folders}
    with tempfile.TemporaryDirectory(prefix="vmsizes-mixed-") as name:
        for _ in range(options.rounds):
            for side, folder in folders.items():
                command = _command(folder.resolve(), database)
                if options.memory:
                    figures: Figures = {}
                    for label, targets in (
                        ("8,000 of the panel", panel_questions(8_000)),
                        ("25,000 of all", random_questions(25_000, FEW)),
                    ):
                        with running(command, Path(name) / "log", ready="/sizes?limit=1") as server:
                            figures |= {f"{label}: {key}": value for key, value in memory(server, targets).items()}
                else:
                    with running(command, Path(name) / "log", ready="/sizes?limit=1") as server:
                        figures = measure(server, count=options.count, connections=options.connections)
                seen[side].append(figures)
    spreads = {
        side: {key: spread([figures[key] for figures in each]) for key in each[0]} for side, each in seen.items()
    }
    print(f"load average {os.getloadavg()[0]:.1f}, {options.rounds} rounds")
    for key in spreads["here"]:
        print(
            f"{key:34}",
            *(
                f"{side} {each[key].median:9.3g} ({each[key].min:.3g} - {each[key].max:.3g})"
                for side, each in spreads.items()
            ),
            sep="   ",
        )


if __name__ == "__main__":
    main()
