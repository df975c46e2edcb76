"""The parent of several workers: replaces those that die, restarts them one after the other, ends them all.

SIGTERM and SIGINT end the workers. SIGHUP restarts them: each is told to end only when another one accepts connections
in its place. They share one listening socket, so no connection waits at a worker that ends; each knows how many the
others have.
"""

import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection as pipes
from multiprocessing.context import SpawnProcess
from types import FrameType

from uvicorn.config import STARTUP_FAILURE

from app.server.balance import ConnectionCounts
from app.server.worker import CLOSE_SECONDS, BoundedServer, ServerConfig, handle_other_signals

_log = logging.getLogger("uvicorn.error")

START_SECONDS = 60.0
"""How long a worker may take until it accepts connections."""
MAX_PAUSE_SECONDS = 30.0
"""The longest pause before another worker is started, where each dies soon after its start."""
LONG_LIFE_SECONDS = 10.0
"""A worker that lived so long is replaced at once when it dies."""

_processes = multiprocessing.get_context("spawn")


@dataclass(eq=False, slots=True)
class Worker:
    """A worker process; `ready` ends when it accepts connections, `counts` has its number of them."""

    process: SpawnProcess
    ready: pipes.Connection
    counts: ConnectionCounts
    started_at: float
    is_ready: bool = False
    is_ending: bool = False

    def end(self) -> None:
        """Tell the worker to finish its requests and end."""
        self.is_ending = True
        self.process.terminate()


class Supervisor:
    """Runs `config.workers` workers on sockets that are already bound."""

    def __init__(self, config: ServerConfig, sockets: list[socket.socket]) -> None:
        self._config, self._sockets = config, sockets
        self._workers: list[Worker] = []
        # During a restart there is one more worker, and one that ends.
        self._free_counts = ConnectionCounts.of_workers(config.workers + 2)
        self._outdated: list[Worker] = []
        self._start_at, self._failures, self._was_ready = 0.0, 0, False
        self._wake, self._woken = os.pipe()
        for end in (self._wake, self._woken):
            os.set_blocking(end, False)
        self._signals: list[int] = []

    def run(self) -> int:
        """Run until a signal ends it; returns the exit code: 0, or 3 if no worker could be started."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._note)
        _log.info("Started parent process [%d] of %d workers", os.getpid(), self._config.workers)
        code = 0
        while not self._signals or self._signals[0] == signal.SIGHUP:
            if self._signals:
                self._signals.clear()
                self._outdated = [worker for worker in self._workers if not worker.is_ending]
                _log.info("Restarting %d workers, one after the other", len(self._outdated))
            if self._failures and not self._was_ready:
                code = STARTUP_FAILURE
                break
            self._start_missing()
            self._wait()
            self._collect()
        self._end_all()
        _log.info("Stopped parent process [%d]", os.getpid())
        return code

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._signals.append(number)
        else:
            self._signals.insert(0, number)
        with suppress(BlockingIOError):
            os.write(self._woken, b"!")

    def _start_missing(self) -> None:
        """Start the workers that are missing, and during a restart one more than the rest needs."""
        serving = sum(not worker.is_ending for worker in self._workers)
        is_replacing = bool(self._outdated) and not any(worker.is_ending for worker in self._workers)
        wanted = self._config.workers + is_replacing
        while serving < wanted and time.monotonic() >= self._start_at:
            self._workers.append(self._start())
            serving += 1

    def _start(self) -> Worker:
        reader, writer = _processes.Pipe(duplex=False)
        counts = self._free_counts.pop()
        process = _processes.Process(target=run_worker, args=(self._config, self._sockets, writer, counts))
        process.start()
        writer.close()
        return Worker(process, reader, counts, time.monotonic())

    def _wait(self) -> None:
        """Wait until a worker starts, dies or is late, a pause ends, or a signal comes."""
        waiting = [worker for worker in self._workers if not worker.is_ready and not worker.ready.closed]
        timeout = 1.0 if waiting or self._start_at > time.monotonic() else None
        sentinels = [worker.process.sentinel for worker in self._workers]
        pipes.wait([self._wake, *sentinels, *(worker.ready for worker in waiting)], timeout)
        with suppress(BlockingIOError):
            os.read(self._wake, 1024)

    def _collect(self) -> None:
        """Note which workers are ready and which have died; go on with a restart."""
        for worker in tuple(self._workers):
            if not worker.is_ready and not worker.ready.closed and worker.ready.poll():
                with suppress(EOFError):
                    worker.ready.recv()
                    self._note_ready(worker)
                worker.ready.close()
            if not worker.process.is_alive():
                self._note_death(worker)
            elif not worker.is_ready and time.monotonic() > worker.started_at + START_SECONDS:
                _log.error("Worker [%s] did not start in %d s and is ended", worker.process.pid, START_SECONDS)
                worker.process.kill()

    def _note_ready(self, worker: Worker) -> None:
        worker.is_ready = self._was_ready = True
        spare = sum(not each.is_ending for each in self._workers) > self._config.workers
        if self._outdated and spare:
            self._outdated.pop(0).end()

    def _note_death(self, worker: Worker) -> None:
        self._workers.remove(worker)
        worker.process.join()
        worker.counts.forget()
        self._free_counts.append(worker.counts)
        if worker in self._outdated:
            self._outdated.remove(worker)
        if worker.is_ending:
            return
        lived = time.monotonic() - worker.started_at
        self._failures = 0 if worker.is_ready and lived >= LONG_LIFE_SECONDS else self._failures + 1
        pause = 0.0 if self._failures <= 1 else min(MAX_PAUSE_SECONDS, 2.0 ** (self._failures - 2))
        self._start_at = time.monotonic() + pause
        _log.error(
            "Worker [%s] died with exit code %s; another one starts%s",
            worker.process.pid, worker.process.exitcode, f" in {pause:.0f} s" if pause else "",
        )  # fmt: skip
        if self._outdated and not worker.is_ready:
            _log.error("The restart is given up; %d workers stay as they were", len(self._outdated))
            self._outdated.clear()

    def _end_all(self) -> None:
        for worker in self._workers:
            worker.end()
        deadline = time.monotonic() + self._config.limits.shutdown_seconds + CLOSE_SECONDS + 0.5
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()


def run_worker(
    config: ServerConfig, sockets: list[socket.socket], ready: pipes.Connection, counts: ConnectionCounts
) -> None:
    """Serve in this process until it is told to end, or its parent has died."""
    config.configure_logging()
    handle_other_signals()
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()
    with suppress(KeyboardInterrupt):
        BoundedServer(config, on_ready=lambda: ready.send(True), counts=counts).run(sockets)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        pipes.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
