"""One server process: uvicorn's server with checks of its connections and a shutdown that always ends."""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from threading import Timer
from types import FrameType
from typing import Any

import uvicorn

from app.server.acceptor import Acceptor
from app.server.balance import ConnectionCounts
from app.server.limits import Limits
from app.server.protocol import BoundedProtocol, count_refusal

_log = logging.getLogger("uvicorn.error")

CHECK_TICKS = 5
"""Connections are checked at each fifth tick of uvicorn's main loop: twice a second."""

CLOSE_SECONDS = 2.0
"""What a shutdown may take beyond `Limits.shutdown_seconds`, before the process is ended as it is."""


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

        def make_protocol() -> BoundedProtocol:
            return BoundedProtocol(self.config, state, self.lifespan.state, idle=idle, counts=self._counts)

        def on_refusal() -> None:
            count_refusal(self.lifespan.state, 503)

        most, counts = self._limits.max_connections, self._counts
        self._acceptors = [
            Acceptor(one, make_protocol, lambda: len(state.connections), most, on_refusal, counts=counts)
            for one in sockets or []
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
        while (state.connections or state.tasks) and not self._is_urgent() and loop.time() < deadline:
            self._end_connections()
            await asyncio.sleep(0.05)
            self.check_connections()
        broken = sum(isinstance(one, BoundedProtocol) and one.is_responding for one in state.connections)
        if broken:
            _log.warning("%d requests did not end in time; their connections are closed", broken)
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

    def _is_urgent(self) -> bool:
        """Whether nothing is waited for: after a second Ctrl-C, and after one while no request is being answered."""
        interrupted = signal.SIGINT in self._captured_signals
        return self.force_exit or (interrupted and not self.server_state.tasks)


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

    watchdog = Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()
