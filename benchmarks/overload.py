"""`python -m benchmarks.overload`: what a worker does under more than it can take, and with clients that are slow.

One worker with the catalog of the seeds is asked a mix of questions, nearly all of them different, over more
connections than it can serve; then 1,500 slow clients of each kind hold connections beside ordinary ones. For each
case: served and refused requests, the 99th percentile of the served, the worst /healthz over a connection of its own,
the greatest memory and number of open files; and after each, what the same worker does with the load that it could
sustain before.
"""

import argparse
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psutil

from benchmarks.build import seeded_catalog
from benchmarks.crowd import HOST, ask, probing
from benchmarks.servers import Command, Server, running
from tests.postgres import postgres_running

VMSIZES = str(Path(sys.executable).with_name("vmsizes"))
SUSTAINED = 16
"""Connections of the load that one worker sustains."""
SLOW = 1500
TIME_OUTS = {f"VMSIZES_{name}_SECONDS": "5" for name in ("HEADER", "BODY", "WRITE", "KEEP_ALIVE")}
"""The time-outs of the cases with slow clients, which would else take as long as theirs: 10 to 30 seconds."""

_HEAD = b"GET /sizes HTTP/1.1\r\nHost: localhost\r\n"
_BODY = b"POST /fit HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
SLOW_CLIENTS = {
    "silent": b"",
    "half headers": _HEAD,
    "half bodies": _BODY,
    "slow readers of a list": _HEAD.replace(b"/sizes", b"/sizes?limit=500") + b"\r\n",
    "slow readers of an export": _HEAD.replace(b"/sizes", b"/prices.csv") + b"\r\n",
}
Row = dict[str, Any]


def questions() -> Iterator[str]:
    """Yield questions of the kinds that a service gets, each fifth of them asked before."""
    for number in count():
        vcpus, memory = 1 + number % 97, 1 + number % 89
        yield from (
            f"/sizes?min_vcpus={vcpus}&min_memory={memory}&region=westeurope&sort=usd_per_hour",
            f"/sizes?gpu=A100,H100&max_usd_per_hour={1 + number % 9973}",
            f"/sizes/nd40rs_v2/facts?limit={1 + number % 499}",
            "/sizes?limit=20",
            f"/fit?min_gpu_mem={1 + number % 991}&region=eastus",
            f"/conflicts?limit={1 + number % 499}",
            f"/prices?size=d4s_v5&limit={1 + number % 499}",
            f"/sizes?q=nd&min_memory={1 + number % 997}",
            f"/facets?min_vcpus={1 + number % 991}",
            "/regions",
        )


@contextmanager
def slow_clients(port: int, sent: bytes, number: int) -> Iterator[list[socket.socket]]:
    """Open connections that send something and then neither send nor read."""
    opened = []
    for _ in range(number):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect((HOST, port))
        if sent:
            one.sendall(sent)
        opened.append(one)
    try:
        yield opened
    finally:
        for one in opened:
            one.close()


def is_open(one: socket.socket) -> bool:
    """Whether the server has not closed a connection."""
    return one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) == b"\x01"  # ESTABLISHED


class Worker:
    """The server under load."""

    def __init__(self, server: Server) -> None:
        self.server = server
        children = [
            child for child in server.process.children(recursive=True) if "vmsizes" in " ".join(child.cmdline())
        ]
        self.process = children[0] if children else server.process
        self.targets = questions()

    def measure(self, what: str, connections: int, seconds: float, slow: bytes | None = None) -> Row:
        """Load the worker, beside SLOW clients that send `slow`, and describe what came of it."""
        closed: Row = {}
        with probing(self.server.port) as probes, sampling(self.process) as samples, ExitStack() as stack:
            time.sleep(1)
            begun = time.monotonic()
            opened = [] if slow is None else stack.enter_context(slow_clients(self.server.port, slow, SLOW))
            answers = ask(self.server.port, self.targets, connections=connections, seconds=seconds)
            if slow is not None:
                while any(map(is_open, opened)) and time.monotonic() < begun + 60:
                    time.sleep(0.1)
                closed = {
                    "closed_after_s": round(time.monotonic() - begun, 1),
                    "never_closed": sum(map(is_open, opened)),
                }
        others = {name: number for name, number in answers.statuses.items() if name not in ("200", "503")}
        return {
            "case": what,
            "connections": connections,
            "served_per_second": round(answers.served / seconds, 1),
            "refused_per_second": round(answers.statuses["503"] / seconds, 1),
            "other": others,
            "p99_ms": round(answers.p99_ms()),
            "slowest_refusal_ms": round(max(answers.refused, default=0)),
            "worst_healthz_ms": round(max(probes, default=-1)),
            "rss_mib": round(max(memory for memory, _ in samples)),
            "open_files": max(files for _, files in samples),
            **closed,
        }


@contextmanager
def sampling(process: psutil.Process) -> Iterator[list[tuple[float, int]]]:
    """Note the memory in MiB and the open files of a process, ten times a second."""
    samples: list[tuple[float, int]] = []
    over = Event()

    def sample() -> None:
        while not over.is_set():
            samples.append((process.memory_info().rss / 2**20, process.num_fds()))
            over.wait(0.1)

    sampler = Thread(target=sample)
    sampler.start()
    try:
        yield samples
    finally:
        over.set()
        sampler.join()


def overloads(url: str, log: Path, seconds: float) -> Iterator[Row]:
    """Load one worker with what it sustains, and with more and more; yields a row for each."""
    with served(url, log) as worker:
        worker.measure("", SUSTAINED, seconds / 2)  # loads what the first requests load
        yield worker.measure("sustained", SUSTAINED, seconds)
        for what, connections in (("4x", 4 * SUSTAINED), ("20x", 20 * SUSTAINED), ("", 2_000), ("", 10_000)):
            yield worker.measure(what or f"{connections:,} connections", connections, seconds)
            time.sleep(2)
            yield worker.measure("  afterwards", SUSTAINED, seconds / 2)


def slow_cases(url: str, log: Path) -> Iterator[Row]:
    """Hold 1,500 slow connections of each kind until the worker has closed them; yields a row for each."""
    with served(url, log, **TIME_OUTS) as worker:
        worker.measure("", SUSTAINED, 2)
        for what, sent in SLOW_CLIENTS.items():
            yield worker.measure(f"{SLOW:,} {what}", SUSTAINED, 5, sent)
        yield worker.measure("  afterwards", SUSTAINED, 3)


def few_files(url: str, log: Path, seconds: float) -> Iterator[Row]:
    """Open 2,000 connections to a worker that may open 1,024 files."""
    with served(url, log, 1024) as worker:
        worker.measure("", SUSTAINED, 2)
        yield worker.measure("2,000 connections, ulimit -n 1024", 2_000, seconds)
        yield worker.measure("  afterwards", SUSTAINED, seconds / 2)


@contextmanager
def served(url: str, log: Path, open_files: int | None = None, /, **settings: str) -> Iterator[Worker]:
    """Run the service as `vmsizes serve` does."""
    words: tuple[str, ...] = (VMSIZES, "serve", "--port", "{port}")
    if open_files:
        words = ("sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh", *words)
    command = Command(words=words, environment={"VMSIZES_DATABASE_URL": url, **settings})
    with running(command, log, ready="/readyz") as server:
        yield Worker(server)


@contextmanager
def catalog(kind: str) -> Iterator[str]:
    """A database with the seeds."""
    if kind == "sqlite":
        yield seeded_catalog()
        return
    with postgres_running() as url:
        environment = {**os.environ, "VMSIZES_DATABASE_URL": url}
        for words in (("migrate",), ("ingest", "seeds")):
            subprocess.run([VMSIZES, *words], env=environment, check=True, capture_output=True)
        yield url


COLUMNS = (
    ("case", "case"), ("served/s", "served_per_second"), ("refused/s", "refused_per_second"), ("p99 ms", "p99_ms"),
    ("slowest 503 ms", "slowest_refusal_ms"), ("worst /healthz ms", "worst_healthz_ms"), ("RSS MiB", "rss_mib"),
    ("files", "open_files"), ("closed after s", "closed_after_s"), ("other", "other"),
)  # fmt: skip


def to_line(found: Row) -> str:
    """Return a row of the table in Markdown."""
    values = [found.get(name, "") for _, name in COLUMNS]
    return "| " + " | ".join(str(value) if value != {} else "" for value in values) + " |"


def main() -> None:
    options = _options()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    found: list[Row] = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in options.database or ("sqlite", "postgresql"):
            url = stack.enter_context(catalog(kind))
            print(f"\n{kind}, load of the machine {os.getloadavg()[0]:.1f}\n")
            print("| " + " | ".join(name for name, _ in COLUMNS) + " |\n" + "| --- " * len(COLUMNS) + "|")
            cases = {
                "load": lambda url=url: overloads(url, folder / "log", options.seconds),
                "slow": lambda url=url: slow_cases(url, folder / "log"),
                "files": lambda url=url: few_files(url, folder / "log", options.seconds),
            }
            for name in options.only or cases:
                for one in cases[name]():
                    print(to_line(one), flush=True)
                    found.append({"database": kind} | one)
                log = (folder / "log").read_text()
                print(
                    f"<!-- {name}: {log.count('Traceback')} tracebacks in the log -->" if "Traceback" in log else "",
                    end="",
                )
                if options.keep_log:
                    options.keep_log.write_text(log)
    if options.json:
        print(json.dumps(found, indent=1))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overload", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8, help="how long each load lasts (8)")
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"), help="default: both")
    parser.add_argument("--only", action="append", choices=("load", "slow", "files"), help="default: all")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON, too")
    parser.add_argument("--keep-log", type=Path, help="where the service's log is copied to")
    return parser.parse_args()


if __name__ == "__main__":
    main()
