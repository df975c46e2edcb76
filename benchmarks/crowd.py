"""Many clients in one process: connections that ask without a pause, and one that probes /healthz meanwhile."""

import asyncio
import multiprocessing
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvloop

from benchmarks.ratios import percentile

HOST = "127.0.0.1"
REFUSED_PAUSE = 0.25
"""Seconds that a refused client waits before it asks again; `retry-after` says more, most clients wait less."""
PROBE_SECONDS = 0.02
PROBE_TIMEOUT = 60.0


@dataclass(slots=True)
class Answers:
    """What clients got; `took` has the milliseconds of served requests, `refused` those of answers with 503."""

    statuses: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)

    @property
    def served(self) -> int:
        """Requests with the answer that was asked for."""
        return len(self.took)

    def p99_ms(self) -> float:
        """The 99th percentile of served requests."""
        return percentile(self.took, 99) if self.took else 0.0


class Client(asyncio.Protocol):
    """One connection that asks for one target after the other until the time is over."""

    def __init__(self, crowd: "Crowd") -> None:
        self._crowd = crowd
        self._transport: Any = None
        self._received, self._expected, self._begun, self._status = b"", -1, 0.0, ""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._expected < 0:
            head, found, _ = self._received.partition(b"\r\n\r\n")
            if not found:
                return
            self._status = head[9:12].decode()
            _, length, rest = head.lower().partition(b"content-length:")
            self._expected = len(head) + 4 + int(rest.split(b"\r\n", 1)[0]) if length else 0
        if len(self._received) >= self._expected if self._expected else self._received.endswith(b"0\r\n\r\n"):
            self._note()

    def connection_lost(self, _error: Exception | None) -> None:
        self._crowd.open.discard(self)
        if self._begun:
            self._crowd.answers.statuses["no answer"] += 1
        if not self._crowd.is_over:
            asyncio.get_running_loop().call_later(REFUSED_PAUSE, self._crowd.connect)

    @property
    def is_waiting(self) -> bool:
        return self._begun > 0

    def close(self) -> None:
        self._begun = 0.0
        if self._transport is not None:
            self._transport.abort()

    def _ask(self) -> None:
        if self._crowd.is_over or self._transport is None or self._transport.is_closing():
            return
        self._received, self._expected, self._begun = b"", -1, time.perf_counter()
        self._transport.write(next(self._crowd.requests))

    def _note(self) -> None:
        took, self._begun = 1000 * (time.perf_counter() - self._begun), 0.0
        answers = self._crowd.answers
        answers.statuses[self._status] += 1
        (answers.took if self._status[0] in "23" else answers.refused).append(took)
        if self._status == "503":
            asyncio.get_running_loop().call_later(REFUSED_PAUSE, self._ask)
        else:
            self._ask()


class Crowd:
    """Connections that ask in turn for the targets of an iterator."""

    def __init__(self, port: int, targets: Iterator[str]) -> None:
        self._port, self.answers, self.is_over = port, Answers(), False
        self.requests = (f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() for target in targets)
        self.open: set[Client] = set()
        self._connecting: set[asyncio.Task[None]] = set()

    def connect(self) -> None:
        """Open another connection, which begins to ask."""
        task = asyncio.get_running_loop().create_task(self._connect())
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def run(self, connections: int, seconds: float) -> Answers:
        """Send requests over `connections` for `seconds`; count those without an answer by then."""
        for number in range(connections):
            self.connect()
            if number % 100 == 99:
                await asyncio.sleep(0.005)
        await asyncio.sleep(seconds)
        self.is_over = True
        waiting = sum(client.is_waiting for client in self.open)
        if waiting:
            self.answers.statuses["unanswered at the end"] = waiting
        for client in tuple(self.open):
            client.close()
        for task in tuple(self._connecting):
            task.cancel()
        await asyncio.sleep(0.1)
        return self.answers

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            _, client = await loop.create_connection(lambda: Client(self), HOST, self._port)
            self.open.add(client)
        except OSError:
            self.answers.statuses["not connected"] += 1
            if not self.is_over:
                loop.call_later(REFUSED_PAUSE, self.connect)


def ask(port: int, targets: Iterator[str], *, connections: int, seconds: float) -> Answers:
    """Load a server for some seconds."""
    return uvloop.run(Crowd(port, targets).run(connections, seconds))


@contextmanager
def probing(port: int) -> Iterator[list[float]]:
    """Ask /healthz over one connection, in a process of its own; the list has the milliseconds after the block."""
    found: list[float] = []
    reader, writer = multiprocessing.Pipe(duplex=False)
    over = multiprocessing.Event()
    prober = multiprocessing.Process(target=_probe, args=(port, over, writer), daemon=True)
    prober.start()
    try:
        yield found
    finally:
        over.set()
        if reader.poll(PROBE_TIMEOUT):
            found.extend(reader.recv())
        prober.join(PROBE_TIMEOUT)


def _probe(port: int, over: Any, results: Any) -> None:
    uvloop.run(_probe_until(port, over, results))


async def _probe_until(port: int, over: Any, results: Any) -> None:
    took = []
    reader, writer = await asyncio.open_connection(HOST, port)
    while not over.is_set():
        begun = time.perf_counter()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PROBE_TIMEOUT)
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]))
        took.append(1000 * (time.perf_counter() - begun))
        await asyncio.sleep(PROBE_SECONDS)
    writer.close()
    results.send(took)
