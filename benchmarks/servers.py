"""Starts and stops the servers under measurement: one process each, on a free loopback port."""

import http.client
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from benchmarks.responses import RecordedResponse

START_TIMEOUT = 30.0  # seconds
RESPONSE_TIMEOUT = 60.0  # seconds
IDLE_TIMEOUT = 30.0  # seconds
IDLE_SECONDS = 0.3
"""A process that takes less than a tenth of this long of CPU time in it has nothing left to do."""
UVICORN = (
    *(sys.executable, "-m", "uvicorn", "--host", "127.0.0.1", "--port", "{port}", "--workers", "1"),
    *("--loop", "uvloop", "--no-access-log", "--log-level", "warning"),
)
PROTOCOLS = {"app.asgi:service": "app.server.protocol:BoundedProtocol"}
"""The HTTP protocol of a factory, as `vmsizes serve` chooses it; references have uvicorn's own, without bounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """A request for one or more targets in turn, with the same method, headers and body.

    A `fresh` request continues with its targets where it stopped, so that a server never gets one twice.
    """

    targets: tuple[str, ...]
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    fresh: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """The command line of a server; `{port}` in a word is its port."""

    words: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Server:
    """A running server; `used` targets of a fresh request were sent."""

    port: int
    process: psutil.Process
    used: int = 1

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that the process and its workers have used so far."""
        return sum(map(seconds_used, [self.process, *self.process.children(recursive=True)]))

    def wait_until_idle(self) -> None:
        """Return once the process computes nothing: what it loads behind its answers would be counted with others."""
        deadline = time.monotonic() + IDLE_TIMEOUT
        while time.monotonic() < deadline:
            before = self.cpu_seconds()
            time.sleep(IDLE_SECONDS)
            if self.cpu_seconds() - before < IDLE_SECONDS / 10:
                return

    def memory_mb(self) -> float:
        """Return the memory that no other process shares (USS), in millions of bytes."""
        return self.process.memory_full_info().uss / 1e6

    def request(self, question: LoadRequest, target: str) -> RecordedResponse:
        """Send one request and return the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=RESPONSE_TIMEOUT)
        try:
            connection.request(question.method, target, body=question.body, headers=dict(question.headers))
            response = connection.getresponse()
            body = response.read()
            headers = [(name.lower(), value) for name, value in response.getheaders()]
            kept = [pair for pair in headers if pair[0] not in SERVER_HEADERS]
            return RecordedResponse(status=response.status, headers=tuple(kept), body=body)
        finally:
            connection.close()


SERVER_HEADERS = {"date", "content-length", "transfer-encoding", "connection"}
"""Headers that the server adds; all others are the application's."""


def uvicorn(factory: str, **environment: str) -> Command:
    """Return the command that serves an ASGI factory as the project does: uvloop, httptools, one worker."""
    protocol = PROTOCOLS.get(factory, "httptools")
    return Command(words=(*UVICORN, "--http", protocol, "--factory", factory), environment=environment)


@contextmanager
def running(command: Command, log: Path, *, ready: str = "/") -> Iterator[Server]:
    """Run a server until the block ends; yields it once `ready` gets a response of any status."""
    port = _free_port()
    with log.open("wb") as out:
        process = _start(command, port, out)
        try:
            _wait(process, port, ready, log)
            yield Server(port, psutil.Process(process.pid))
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def seconds_to_first_answer(command: Command, log: Path, target: str) -> float:
    """Return the seconds from the start of a process to its first response."""
    started = time.perf_counter()
    with running(command, log, ready=target):
        return time.perf_counter() - started


def seconds_used(process: psutil.Process) -> float:
    """Return the CPU seconds of a process, on Linux to the nanosecond: psutil counts in hundredths of a second there.

    The number of the clock of another process is what clock_getcpuclockid(3) returns.
    """
    if platform.system() == "Linux":
        return time.clock_gettime(~process.pid << 3 | 2)
    times = process.cpu_times()
    return times.user + times.system


def cpu_seconds(command: Command) -> float:
    """Return the CPU seconds, user and system, of a command; raises RuntimeError if it fails."""
    environment = {**os.environ, **command.environment}
    with subprocess.Popen(
        command.words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command.words)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def _start(command: Command, port: int, out: IO[bytes]) -> "subprocess.Popen[bytes]":
    words = [word.replace("{port}", str(port)) for word in command.words]
    environment = {**os.environ, **command.environment}
    return subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait(process: "subprocess.Popen[bytes]", port: int, target: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=RESPONSE_TIMEOUT)
        try:
            connection.request("GET", target)
            connection.getresponse().read()
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.005)
        else:
            return
        finally:
            connection.close()
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")
