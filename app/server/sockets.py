"""Listens, and accepts connections: in batches under load, each worker its part, none over the limit.

A worker that has little to do accepts one connection in each iteration of its event loop, as uvloop does. All workers
wait for the same sockets, and the first one that wakes up could take all of a few connections: one that has more of
them than another leaves the next to that one. Under load an iteration takes as long as the requests that it starts, and
new connections, health checks among them, would wait for seconds. Those over the limit are refused before they cost
anything.
"""

import asyncio
import errno
import multiprocessing
import socket
import sys
import time
from collections.abc import Callable, MutableSequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from app.server.protocol import FIRST_BYTE, REFUSING, BoundedProtocol, is_reset

BACKLOG = 2048
"""Connections that the system keeps until a worker accepts them."""

UNSENT_BYTES = 128 * 1024
"""What the system buffers of a response beyond what is on its way, so that slow readers hold little memory."""

BATCH = 64
"""Connections that are accepted in one iteration under load; others wait for the next, or for another worker."""

BUSY_SECONDS = 0.002
"""An iteration that takes longer is one under load."""

PAUSE_SECONDS = 0.1
"""Nothing is accepted for so long where the process cannot open a file more."""

LEAVING_SECONDS = 0.005
"""So long a connection is left to workers that have fewer: an idle one accepts it sooner, and one that hangs never."""

PROBE_SECONDS = 0.05
"""How long the first byte of a response, sent to a client that has ended its side, may take to be answered."""

_CLOSE_WAIT = 8
"""The state of TCP on Linux of a connection whose client has ended its side."""

_ACCEPTS_NONE = -1


def bind(host: str, port: int) -> list[socket.socket]:
    """Bind to every address of a host; raises OSError if none is available.

    Connections are refused until the caller calls `listen(BACKLOG)`.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    unavailable: OSError | None = None
    for family, address in dict.fromkeys((family, address) for family, _, _, _, address in addresses):
        try:
            listeners.append(_bind(family, address))
        except OSError as error:
            # localhost may stand for an address of IPv6 that the machine does not have
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                unavailable = error
                continue
            for listener in listeners:
                listener.close()
            raise
    if not listeners and unavailable is not None:
        raise unavailable
    return listeners


def _bind(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        with suppress(AttributeError, OSError):  # Linux and macOS; connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


@dataclass(slots=True)
class ConnectionCounts:
    """The connections of all workers, of which one is at `place`; can be pickled for its process."""

    open: MutableSequence[int]
    place: int
    has_ended: bool = False

    @classmethod
    def of_workers(cls, workers: int) -> "list[ConnectionCounts]":
        """Return the counts for each of the workers, none of which accepts connections yet."""
        shared = multiprocessing.get_context("spawn").RawArray("i", [_ACCEPTS_NONE] * workers)
        return [cls(shared, place) for place in range(workers)]

    def note(self, count: int) -> None:
        """Tell the others how many connections this worker has."""
        if not self.has_ended:
            self.open[self.place] = count

    def end(self) -> None:
        """Tell the others that this worker accepts no more."""
        self.has_ended = True
        self.forget()

    def forget(self) -> None:
        """Tell the others that there is no worker here, for one that has died without a word."""
        self.open[self.place] = _ACCEPTS_NONE

    def is_above_another(self, count: int) -> bool:
        """Check whether another worker accepts connections and has fewer than this one with `count`."""
        return any(_ACCEPTS_NONE < open_ < count for place, open_ in enumerate(self.open) if place != self.place)


def _has_ended(connection: socket.socket) -> bool:
    """Check whether the client has ended its side before its connection was accepted, as far as the system knows."""
    if sys.platform != "linux" or connection.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == _CLOSE_WAIT


async def _is_waiting(connection: socket.socket) -> bool:
    """Check whether a client that has ended its side has sent a request and waits for the response.

    Under overload many clients have stopped waiting; computing their answers would be wasted work.
    """
    try:
        if not connection.recv(1, socket.MSG_PEEK):
            return False
        connection.send(FIRST_BYTE)
    except OSError:
        return False
    await asyncio.sleep(PROBE_SECONDS)
    return not is_reset(connection)


class Acceptor:
    """Accepts the connections of one listening socket until it is closed; `count` says how many are open.

    `refuse` notes that one more is over the limit, and returns what it is sent.
    `counts` are those of all workers, where there are several.
    """

    def __init__(
        self,
        listener: socket.socket,
        make_protocol: Callable[[], BoundedProtocol],
        count: Callable[[], int],
        max_connections: int,
        refuse: Callable[[], bytes],
        *,
        counts: ConnectionCounts | None = None,
    ) -> None:
        self._listener, self._make_protocol, self._count = listener, make_protocol, count
        self._make_refusal, self._counts = refuse, counts
        self._most = max_connections + REFUSING
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[object]] = set()
        self._batch = 1
        self._is_closed = self._has_waited = False
        listener.setblocking(False)
        self._loop.add_reader(listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more; the socket itself belongs to others."""
        self._is_closed = True
        self._loop.remove_reader(self._listener.fileno())

    def _accept(self) -> None:
        self._loop.call_soon(self._choose_batch, time.monotonic())
        for _ in range(self._batch):
            if self._leaves_the_next():
                self._pause(LEAVING_SECONDS)
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no file descriptor, or no memory
                self._pause(PAUSE_SECONDS)
                return
            connection.setblocking(False)
            if self._count() + len(self._opening) >= self._most:
                self._refuse(connection)
                continue
            opening = self._loop.create_task(self._open(connection))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)
            if self._counts is not None:
                self._counts.note(self._count() + len(self._opening))

    async def _open(self, connection: socket.socket) -> None:
        """Serve a connection, unless its client has left."""
        protocol = self._make_protocol()
        if is_reset(connection):
            connection.close()
            return
        if _has_ended(connection):
            if not await _is_waiting(connection):
                connection.close()
                return
            protocol.has_begun = True
        await self._loop.connect_accepted_socket(lambda: protocol, connection)

    def _leaves_the_next(self) -> bool:
        """Check whether another worker has fewer connections, unless it did not accept one in LEAVING_SECONDS."""
        if self._counts is None:
            return False
        leaves = not self._has_waited and self._counts.is_above_another(self._count() + len(self._opening))
        self._has_waited = leaves
        return leaves

    def _pause(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener.fileno())
        self._loop.call_later(seconds, self._resume)

    def _choose_batch(self, begun: float) -> None:
        """Choose how many connections the next iteration accepts, by how long one has taken."""
        self._batch = BATCH if time.monotonic() - begun > BUSY_SECONDS else 1

    def _resume(self) -> None:
        if not self._is_closed:
            self._loop.add_reader(self._listener.fileno(), self._accept)

    def _refuse(self, connection: socket.socket) -> None:
        """Send 503; what has arrived is read first, since a socket with unread bytes is reset when it is closed."""
        refusal = self._make_refusal()
        with connection:
            with suppress(OSError):
                connection.recv(65_536)
            with suppress(OSError):
                connection.send(refusal)
                connection.shutdown(socket.SHUT_WR)
