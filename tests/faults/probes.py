"""Clients that ask a service all the time, and what they saw before, during and after a fault."""

import json
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from itertools import count

from tests.waiting import LONGEST_SECONDS

KEPT, UNCACHED, THREADS, FIT, READY, HEALTH = "kept", "uncached", "in threads", "fit", "/readyz", "/healthz"
NOT_ANSWERED = 0
_PAUSE_SECONDS = 0.1
_TIMEOUT_SECONDS = LONGEST_SECONDS

PATHS: dict[str, Callable[[int], str]] = {
    KEPT: lambda _: "/sizes?limit=1",
    UNCACHED: lambda number: f"/sizes?limit=2&min_memory={number}e-6",
    THREADS: lambda number: f"/sizes/standard_x{1 + number % 120}/prices?limit={1 + number // 120 % 100}",
    FIT: lambda number: f"/fit?min_gpu_mem={number}e-6",
    READY: lambda _: "/readyz",
    HEALTH: lambda _: "/healthz",
}
"""What is asked: `kept` is in the cache of the service, the others but the probes never are."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: when it came, its status (0: none), how long it took, and what it says of the database."""

    at: float
    status: int
    seconds: float
    detail: str
    stale: bool


@dataclass(slots=True)
class Observation:
    """All answers by what was asked, and the beginning and the end of the fault."""

    answers: dict[str, list[Answer]] = field(default_factory=lambda: {name: [] for name in PATHS})
    began: float = 0.0
    ended: float = 0.0

    def during(self, name: str, settled_seconds: float = 0.0) -> list[Answer]:
        """Return the answers to what was asked during the fault, and so long after its beginning."""
        first, last = self.began + settled_seconds, self.ended or time.monotonic()
        return [answer for answer in self.answers[name] if first <= answer.at - answer.seconds < last]

    def statuses(self, name: str, settled_seconds: float = 0.0) -> Counter[int]:
        """Count the answers during the fault by status."""
        return Counter(answer.status for answer in self.during(name, settled_seconds))

    def slowest_seconds(self, name: str) -> float:
        """Return the longest time of any answer."""
        return max((answer.seconds for answer in self.answers[name]), default=0.0)

    def recovered_seconds(self) -> float:
        """Return how long after the end of the fault the last answer came that was no 200; 0 where none did."""
        failed = [answer.at for each in self.answers.values() for answer in each if answer.status != 200]
        return max(0.0, max(failed, default=0.0) - self.ended)

    def has_recovered(self) -> bool:
        """Whether each client has had three answers with 200 in a row after the fault."""
        latest = [[one for one in answers[-3:] if one.at > self.ended] for answers in self.answers.values()]
        return all(len(each) == 3 and all(one.status == 200 for one in each) for each in latest)

    def reasons(self) -> Counter[str]:
        """Count what /readyz said during the fault."""
        return Counter(answer.detail for answer in self.during(READY) if answer.detail)


def ask(connection: HTTPConnection, path: str) -> Answer:
    """Ask once, and again on a new connection at the next time where this one breaks."""
    begun = time.monotonic()
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        status, told = answer.status, answer.headers.get("cache-status", "")
    except (OSError, HTTPException) as error:
        connection.close()
        status, body, told = NOT_ANSWERED, json.dumps({"detail": repr(error)}).encode(), ""
    now = time.monotonic()
    detail = ""
    if status != 200:
        with suppress(ValueError):
            detail = str(json.loads(body).get("detail", ""))
    return Answer(now, status, now - begun, detail, re.search("ttl=-", told) is not None)


_NUMBERS = count(1)

_ASK_ALWAYS = """
import sys, threading, time
from http.client import HTTPConnection, HTTPException
port, path, pause = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
connection = HTTPConnection("127.0.0.1", port, timeout=60)
while not stop.is_set():
    begun = time.monotonic()
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        status = answer.status
    except (OSError, HTTPException):
        connection.close()
        status = 0
    now = time.monotonic()
    print(now, status, now - begun, flush=True)
    stop.wait(pause)
"""
"""Prints a line for each answer: when it came, its status and how long it took; ends with its standard input."""


@contextmanager
def asking(port: int) -> Iterator[Observation]:
    """Ask everything all the time, each from a client of its own, until the context ends."""
    seen, stop = Observation(), threading.Event()

    def ask_always(name: str) -> None:
        connection = HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)
        while not stop.is_set():
            seen.answers[name].append(ask(connection, PATHS[name](next(_NUMBERS))))
            stop.wait(_PAUSE_SECONDS)
        connection.close()

    threads = [threading.Thread(target=ask_always, args=(name,), daemon=True) for name in PATHS if name != HEALTH]
    with asking_health(port) as seen.answers[HEALTH]:
        for thread in threads:
            thread.start()
        try:
            yield seen
        finally:
            stop.set()
            for thread in threads:
                thread.join(_TIMEOUT_SECONDS + 5)


@contextmanager
def asking_health(port: int) -> Iterator[list[Answer]]:
    """Ask /healthz from a process of its own, which waits for nothing that the tests do; yields the answers."""
    answers: list[Answer] = []

    def read_answers() -> None:
        assert prober.stdout is not None
        for line in prober.stdout:
            at, status, seconds = line.split()
            answers.append(Answer(float(at), int(status), float(seconds), "", stale=False))

    command = [sys.executable, "-S", "-c", _ASK_ALWAYS, str(port), PATHS[HEALTH](0), str(_PAUSE_SECONDS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as prober:
        reader = threading.Thread(target=read_answers, daemon=True)
        reader.start()
        try:
            yield answers
        finally:
            assert prober.stdin is not None
            prober.stdin.close()
            reader.join(_TIMEOUT_SECONDS + 5)
