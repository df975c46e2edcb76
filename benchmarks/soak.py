"""`python -m benchmarks.soak`: hours of a service in minutes, with faults.

Two workers serve a mix of questions and exports over 24 connections, which come and go, while beside them prices are
ingested, workers are killed, workers are restarted one after the other, slow and half-sent connections are opened, and
clients leave in the middle of exports. Printed at the end: requests, errors by kind, the 99th percentile, the worst
/healthz, and the memory of the workers at the start and at the end.

Expected errors: requests on the connections of a worker that was killed. Everything else fails the run (exit code 1).
"""

import argparse
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Lock, Thread

import psutil

from benchmarks.overload import SLOW_CLIENTS, VMSIZES, catalog, questions, served, slow_clients
from benchmarks.ratios import percentile
from benchmarks.servers import Server

CONNECTIONS = 24
WORKERS = 2
TIMEOUT = 30.0  # seconds
SETTINGS = {
    "VMSIZES_WORKERS": str(WORKERS),
    "VMSIZES_HEADER_SECONDS": "3",
    "VMSIZES_BODY_SECONDS": "3",
    "VMSIZES_WRITE_SECONDS": "3",
    "VMSIZES_KEEP_ALIVE_SECONDS": "10",
}
PRICES = "size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source\n"
EXPORTS = ("/sizes.csv", "/sizes.ndjson", "/sizes.parquet", "/prices.csv?region=eastus", "/conflicts?limit=500")
GROWTH_MIB = 120
"""How much a worker may hold more at the end than after its first minute of life: caches fill, allocators keep."""


class SharedTargets:
    """An iterator that several threads share."""

    def __init__(self, targets: Iterator[str]) -> None:
        self._targets, self._lock = targets, Lock()

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        with self._lock:
            return next(self._targets)


@dataclass(slots=True)
class Soak:
    """What is counted; `kills` has the times at which workers were killed."""

    port: int
    over: Event = field(default_factory=Event)
    took: list[float] = field(default_factory=list)
    healthz: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    kills: list[float] = field(default_factory=list)

    def ask(self, targets: Iterator[str], seed: int) -> None:
        """Send one request after the other, over connections of 1 to 200 requests."""
        chance, connection = random.Random(seed), None
        left = 0
        while not self.over.is_set():
            if connection is None:
                connection, left = HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT), chance.randint(1, 200)
            target = chance.choice(EXPORTS) if chance.random() < 0.005 else next(targets)
            begun = time.monotonic()
            try:
                connection.request("GET", target)
                answer = connection.getresponse()
                answer.read()
            except (OSError, HTTPException) as error:
                self._note_error(error, begun)
                connection.close()
                connection = None
                continue
            self.took.append(1000 * (time.monotonic() - begun))
            self.statuses[answer.status] += 1
            left -= 1
            if left <= 0 or answer.will_close:
                connection.close()
                connection = None

    def _note_error(self, error: Exception, begun: float) -> None:
        was_killed = any(begun - 1 <= killed <= time.monotonic() for killed in self.kills)
        self.errors["worker was killed" if was_killed else f"{type(error).__name__}: {error}"] += 1

    def probe(self) -> None:
        """Ask /healthz over a new connection, ten times a second."""
        while not self.over.wait(0.1):
            begun = time.monotonic()
            connection = HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
            try:
                connection.request("GET", "/healthz")
                if connection.getresponse().read() != b'{"status":"ok"}':
                    self.errors["/healthz is not ok"] += 1
                self.healthz.append(1000 * (time.monotonic() - begun))
            except (OSError, HTTPException) as error:
                self._note_error(error, begun)
            finally:
                connection.close()


def workers_of(server: Server) -> list[psutil.Process]:
    """Return the workers of a supervisor, the oldest first."""
    found = []
    for child in server.process.children():
        with suppress(psutil.NoSuchProcess):
            if any("spawn_main" in word for word in child.cmdline()):
                found.append(child)
    return sorted(found, key=lambda worker: worker.create_time())


def memory_mib(server: Server) -> list[int]:
    """Return the memory of each worker."""
    return [round(worker.memory_info().rss / 2**20) for worker in workers_of(server)]


def ingest_again(soak: Soak, url: str, folder: Path) -> None:
    """Change the price of one size, so that each ingest makes a new revision."""
    number = soak.faults["ingests"]
    rows = f"Standard_D4s_v5,westeurope,linux,on_demand,{1 + number % 7}.5,2026-08-{1 + number % 28:02},false,soak\n"
    (folder / "prices.csv").write_text(PRICES + rows)
    (folder / "sources.csv").write_text(
        "id,title,publisher,kind,url,published_on\nsoak,Soak,Soak,third_party,,2026-08-01\n"
    )
    environment = {**os.environ, "VMSIZES_DATABASE_URL": url}
    done = subprocess.run(
        [VMSIZES, "ingest", "prices", str(folder / "prices.csv")],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        soak.errors[f"ingest: {done.stderr.strip()[-200:]}"] += 1


def kill_worker(soak: Soak, server: Server) -> None:
    """Kill the worker that lives longest."""
    workers = workers_of(server)
    if len(workers) == WORKERS:
        soak.kills.append(time.monotonic())
        workers[0].kill()
        soak.kills.append(time.monotonic() + 0.5)


def restart_workers(server: Server) -> None:
    """Restart all workers, one after the other."""
    server.process.send_signal(signal.SIGHUP)


def hold_slow_connections(server: Server, chance: random.Random) -> None:
    """Open 100 slow connections of one kind, and leave them after some seconds."""
    with slow_clients(server.port, chance.choice(list(SLOW_CLIENTS.values())), 100):
        time.sleep(4)


def leave_exports(server: Server) -> None:
    """Begin 20 exports and leave."""
    with slow_clients(server.port, SLOW_CLIENTS["slow readers of an export"], 20):
        time.sleep(0.3)


def run(url: str, log: Path, seconds: float, folder: Path) -> dict[str, object]:
    """Run the service with load and faults for some seconds, and return what came of it."""
    with served(url, log, **SETTINGS) as worker, ExitStack() as stack:
        server, chance = worker.server, random.Random(5)
        soak = Soak(server.port)
        targets = SharedTargets(questions())
        threads = [Thread(target=soak.ask, args=(targets, seed)) for seed in range(CONNECTIONS)]
        threads.append(Thread(target=soak.probe))
        for thread in threads:
            thread.start()
        for thread in threads:
            stack.callback(thread.join)
        stack.callback(soak.over.set)
        begun = time.monotonic()
        time.sleep(min(15.0, seconds / 6))
        memory = {"start": memory_mib(server)}
        faults: list[tuple[str, Callable[[], None]]] = [
            ("ingests", lambda: ingest_again(soak, url, folder)),
            ("slow connections", lambda: hold_slow_connections(server, chance)),
            ("exports left", lambda: leave_exports(server)),
            ("workers killed", lambda: kill_worker(soak, server)),
            ("restarts", lambda: restart_workers(server)),
        ]
        while time.monotonic() - begun < seconds - 10:
            name, cause = faults[sum(soak.faults.values()) % len(faults)]
            cause()
            soak.faults[name] += 1
            time.sleep(min(6.0, max(1.0, seconds / 60)))
        while time.monotonic() - begun < seconds:
            time.sleep(0.2)
        memory["end"] = memory_mib(server)
    return {
        "seconds": round(seconds),
        "requests": len(soak.took),
        "statuses": dict(soak.statuses),
        "errors": dict(soak.errors),
        "faults": dict(soak.faults),
        "p99_ms": round(percentile(soak.took, 99)),
        "worst_healthz_ms": round(max(soak.healthz)),
        "p99_healthz_ms": round(percentile(soak.healthz, 99)),
        "memory_mib_of_workers": memory,
        "tracebacks_in_log": log.read_text(errors="replace").count("Traceback"),
    }


def is_failed(result: dict[str, object]) -> list[str]:
    """Return what should not have happened."""
    failures = [name for name in dict(result["errors"]) if name != "worker was killed"]  # type: ignore[call-overload]
    failures += [f"status {status}" for status in dict(result["statuses"]) if status >= 500 and status != 503]  # type: ignore[call-overload]
    memory = result["memory_mib_of_workers"]
    assert isinstance(memory, dict)
    if max(memory["end"], default=0) > max(memory["start"], default=0) + GROWTH_MIB:
        failures.append("memory grew")
    return failures


def main() -> int:
    """Run on each database; return 1 if something happened that should not."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description="A service under load, with faults.")
    parser.add_argument("--minutes", type=float, default=10, help="of both databases together (10)")
    parser.add_argument("--database", action="append", choices=("sqlite", "postgresql"), help="default: both")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    kinds = options.database or ["sqlite", "postgresql"]
    code = 0
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for kind in kinds:
            url = stack.enter_context(catalog(kind))
            result = run(url, folder / "log", 60 * options.minutes / len(kinds), folder)
            failures = is_failed(result)
            print(json.dumps({"database": kind, **result, "failures": failures}, indent=1), flush=True)
            code = code or int(bool(failures))
    return code


if __name__ == "__main__":
    sys.exit(main())
