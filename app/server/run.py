"""Serves the application: uvicorn's server with bounded connections and a shutdown that ends, in one or more processes.

The parent of several workers replaces those that die, restarts them one after the other, and ends them all. SIGTERM and
SIGINT end the workers. SIGHUP restarts them: each is asked to end only when another one accepts connections in its
place. They share the listening sockets, so no connection waits at a worker that ends; each knows how many the others
have.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import connection as pipes
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.config import STARTUP_FAILURE

from app.server.protocol import BoundedProtocol, Limits, count_refusal, make_problem, to_bytes
from app.server.sockets import Acceptor, ConnectionCounts

_log = logging.getLogger("uvicorn.error")

CHECK_TICKS = 5
"""Connections are checked at each fifth tick of uvicorn's main loop: twice a second."""

CLOSE_SECONDS = 2.0
"""What a shutdown may take beyond `Limits.shutdown_seconds`, before the process is ended as it is."""

APPLICATION = "app.asgi:service"

START_SECONDS = 60.0
"""How long a worker may take until it accepts connections."""
MAX_PAUSE_SECONDS = 30.0
"""The longest pause before another worker is started, where each dies soon after its start."""
LONG_LIFE_SECONDS = 10.0
"""A worker that lived so long is replaced at once when it dies."""

_processes = multiprocessing.get_context("spawn")


def serve(sockets: list[socket.socket], limits: Limits, *, workers: int, **options: Any) -> None:
    """Serve on listening sockets until a signal ends it; `options` are uvicorn's.

    Exits with 3 if the service cannot be started.
    """
    config = ServerConfig(APPLICATION, factory=True, limits=limits, workers=workers, log_level="info", **options)
    handle_other_signals()
    if workers > 1:
        sys.exit(Supervisor(config, sockets).run())
    config.load_app()
    server = BoundedServer(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    if not server.started:
        sys.exit(STARTUP_FAILURE)


class ServerConfig(uvicorn.Config):
    """uvicorn's configuration with the limits of a worker; can be pickled for worker processes."""

    def __init__(self, app: str, *, limits: Limits, **options: Any) -> None:
        self.limits = limits
        super().__init__(app, http=BoundedProtocol, ws="none", server_header=False, access_log=False, **options)


class BoundedServer(uvicorn.Server):
    """A server whose connections end in time; `on_ready` is called when it accepts connections.

    `counts` are the connections of all workers, where it is one of several.
    """

    def __init__(
        self,
        config: ServerConfig,
        on_ready: Callable[[], None] | None = None,
        counts: ConnectionCounts | None = None,
    ) -> None:
        super().__init__(config)
        self._limits, self._on_ready, self._counts = config.limits, on_ready, counts
        self._acceptors: list[Acceptor] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup([])
        if not self.started:
            return
        state = self.server_state
        idle: dict[BoundedProtocol, None] = {}

        note_count = None if self._counts is None else self._counts.note

        def make_protocol() -> BoundedProtocol:
            return BoundedProtocol(self.config, state, self.lifespan.state, idle=idle, note_count=note_count)

        def refuse() -> bytes:
            count_refusal(self.lifespan.state, 503)
            return to_bytes(503, *make_problem(self.lifespan.state, 503))

        most, counts = self._limits.max_connections, self._counts
        self._acceptors = [
            Acceptor(sock, make_protocol, lambda: len(state.connections), most, refuse, counts=counts)
            for sock in sockets or []
        ]
        if counts is not None:
            counts.note(0)
        if self._on_ready is not None:
            self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Check the connections twice a second."""
        if counter % CHECK_TICKS == 0:
            self.check_connections()
        return await super().on_tick(counter)

    def check_connections(self) -> None:
        """Close the connections whose time is over."""
        now = asyncio.get_running_loop().time()
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.enforce(now)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting, let requests end for `shutdown_seconds`, break the others, release what the app holds.

        A response that is broken lacks its end, so that no client takes it for complete.
        """
        end_process_after(self._limits.shutdown_seconds + CLOSE_SECONDS)
        _log.info("Shutting down")
        for acceptor in self._acceptors:
            acceptor.close()
        if self._counts is not None:
            self._counts.end()
        for listener in sockets or []:
            listener.close()
        state = self.server_state
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.shutdown_seconds
        self._end_connections()
        await asyncio.sleep(0.05)  # connections that are being accepted are there then
        while (state.connections or state.tasks) and loop.time() < deadline:
            # Nothing is waited for after a second Ctrl-C, and after one while no request is being answered.
            if self.force_exit or (signal.SIGINT in self._captured_signals and not state.tasks):
                break
            self._end_connections()
            await asyncio.sleep(0.05)
            self.check_connections()
        broken = sum(isinstance(protocol, BoundedProtocol) and protocol.is_responding for protocol in state.connections)
        if broken:
            _log.warning("Requests that did not end in time: %d; their connections are closed", broken)
            _log.addFilter(_is_no_cancellation)
        for connection in tuple(state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.abort()
        for task in tuple(state.tasks):
            task.cancel()
        if state.tasks:
            await asyncio.wait(tuple(state.tasks), timeout=CLOSE_SECONDS / 4)
        await self.lifespan.shutdown()

    def _end_connections(self) -> None:
        """Have each connection end with its next response; one may have been accepted after the last call."""
        for connection in tuple(self.server_state.connections):
            if isinstance(connection, BoundedProtocol) and not connection.is_last:
                connection.shutdown()


def _is_no_cancellation(record: logging.LogRecord) -> bool:
    """Filter out the traceback of requests that a shutdown cancels: their number has been logged."""
    return record.exc_info is None or record.exc_info[0] is not asyncio.CancelledError


def handle_other_signals() -> None:
    """Ignore SIGHUP, SIGUSR1 and SIGUSR2 with a line in the log, and end at SIGQUIT as at SIGTERM.

    Each of them would end the process at once, in the middle of responses.
    """

    def ignore(number: int, _frame: FrameType | None) -> None:
        text = "%s is ignored. SIGTERM ends the service; SIGHUP of the parent of several workers restarts them"
        _log.warning(text, signal.Signals(number).name)

    if sys.platform != "win32":
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
            signal.signal(number, ignore)
        signal.signal(signal.SIGQUIT, lambda *_: signal.raise_signal(signal.SIGTERM))


def end_process_after(seconds: float) -> None:
    """End this process after a time unless it has ended by then, whatever its threads are doing."""

    def end() -> None:
        _log.error("The shutdown did not end in time; the process ends now.")
        os._exit(1)

    watchdog = threading.Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()


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
                    worker.is_ready = self._was_ready = True
                    spare = sum(not other.is_ending for other in self._workers) > self._config.workers
                    if self._outdated and spare:
                        self._outdated.pop(0).end()
                worker.ready.close()
            if not worker.process.is_alive():
                self._note_death(worker)
            elif not worker.is_ready and time.monotonic() > worker.started_at + START_SECONDS:
                _log.error("Worker [%s] did not start in %d s and is ended", worker.process.pid, START_SECONDS)
                worker.process.kill()

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
        then = "another one starts" + (f" in {pause:.0f} s" if pause else "")
        if self._outdated and not worker.is_ready:
            then = f"the restart is given up, and the {len(self._outdated)} others stay as they were"
            self._outdated.clear()
        _log.error("Worker [%s] died with exit code %s; %s", worker.process.pid, worker.process.exitcode, then)

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
    """Serve in this process until it is asked to end, or its parent has died."""
    config.configure_logging()
    handle_other_signals()

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            pipes.wait([parent.sentinel])
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, name="parent", daemon=True).start()
    with suppress(KeyboardInterrupt):
        BoundedServer(config, on_ready=lambda: ready.send(True), counts=counts).run(sockets)
