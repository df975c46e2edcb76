"""uvicorn's HTTP protocol with bounds: how many connections there are, and how long a client may take for each part.

uvicorn closes idle connections, but waits without end for the rest of headers and bodies, and for clients that do not
read. Here a connection only notes what it waits for and until when, and the server checks all of them twice a second
(`enforce`): a timer for each part would cost every request more than that.
"""

import asyncio
import re
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from app.lifespan import (
    CLOSED_WITH,
    COUNT_REFUSAL,
    FIND_STORED,
    MAKE_PROBLEM,
    CountRefusal,
    FindStored,
    MakeProblem,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope
    from uvicorn.config import Config
    from uvicorn.server import ServerState

REFUSING = 128
"""How many connections over the limit a worker reads for a moment, to answer health checks and to refuse the others."""

OWN_FILES = 192
"""Descriptors that a worker keeps for itself: databases, exports with their files, logs."""

LEAST_CONNECTIONS = 16


class TooFewFiles(Exception):
    """The process may not open enough files to serve anyone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one worker; durations are in seconds."""

    max_connections: int = 2000
    keep_alive_seconds: float = 75
    """How long a connection stays open without a request."""
    header_seconds: float = 10
    """Within this a new connection has to send its first headers, and any other request all of its headers."""
    body_seconds: float = 30
    """Within this a request has to send all of its body, after its headers."""
    write_seconds: float = 30
    """A client that takes nothing of a response for so long is disconnected."""
    shutdown_seconds: float = 7
    """How long a shutdown waits for requests in progress."""


def fit_to_descriptors(limits: Limits) -> Limits:
    """Return limits that the process has enough file descriptors for, raising its soft limit (`ulimit -n`) if needed.

    Raises TooFewFiles where not even LEAST_CONNECTIONS are possible.
    """
    if sys.platform == "win32":
        return limits
    import resource  # noqa: PLC0415  # Windows does not have it

    needed = limits.max_connections + REFUSING + OWN_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft != unlimited and soft < needed:
        soft = needed if hard == unlimited else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == unlimited or soft >= needed:
        return limits
    possible = soft - REFUSING - OWN_FILES
    if possible < LEAST_CONNECTIONS:
        least = LEAST_CONNECTIONS + REFUSING + OWN_FILES
        raise TooFewFiles(f"a worker needs {least} open files at least, and the limit is {soft} (ulimit -n)")
    return replace(limits, max_connections=possible)


MAX_HEAD_BYTES = 64 * 1024
"""The limit of a request line and headers that are still incomplete; the service itself allows fewer and says so."""

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""The limit of a body with its chunk sizes and trailers, twice what the service reads of the longest."""

REFUSED_SECONDS = 2.0
"""How long a connection over the limit may take to send its request."""
IDLE_SHUTDOWN_SECONDS = 2.0
"""At a shutdown an idle connection gets so long to send another request, since one may be on its way."""

LEAST_IDLE_SECONDS = 5.0
"""A connection that has been idle for so long is closed where another one needs its place; docs/deploy/nginx.conf has
nginx use no connection after 4 s, so that no request is on its way then."""

PROBES = {"/healthz", "/readyz", "/metrics"}
"""Paths that connections over the limit are answered, too."""

NOTHING, HEAD, BODY = range(3)
"""What a connection is in the middle of receiving."""

HTTP_VERSIONS = {"1.0", "1.1"}
FRAMING = {b"content-length", b"transfer-encoding"}
HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?")
"""A name or an address, and maybe a port (RFC 3986, section 3.2)."""


@lru_cache(maxsize=16)
def _is_host(value: bytes) -> bool:
    """Check a value of Host; a service has few, so that most requests are spared the expression."""
    return HOST.fullmatch(value.strip()) is not None


FIRST_BYTE = b"H"
"""What every response begins with. Sent ahead to a client that has ended its side, it shows whether that is there:
TCP shows no difference between one that only sends no more and one that is gone, until something is sent to it."""

_NO_LINGERING = struct.pack("ii", 1, 0)

PROBLEMS = {
    400: ("bad-request", "Bad request", "The request is not valid HTTP."),
    408: ("request-timeout", "Request not sent in time", "The rest of the request did not arrive in time."),
    413: ("too-long", "Request body too long", "The body of the request is too long."),
    431: ("headers-too-long", "Request headers too long", "The request line and the headers are too long."),
    501: ("not-implemented", "Not implemented", "The only Transfer-Encoding that is read is chunked."),
    503: ("busy", "Too busy", "The service has as many connections as it takes. Retry in some seconds."),
    505: ("http-version", "HTTP version not supported", "HTTP/1.1 and HTTP/1.0 are supported."),
}
"""The slug, title and detail of the problems that a connection is closed with; `app.http.problems` explains them."""


def make_problem(
    state: Mapping[str, Any], status: int, scope: Mapping[str, Any] | None = None
) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Return headers and body of the problem that a connection is closed with, as the application makes its own.

    `scope` is as much of the request as there is.
    """
    slug, title, detail = PROBLEMS[status]
    make: MakeProblem | None = state.get(MAKE_PROBLEM)
    if make is None:
        return [(b"content-length", b"0"), (b"connection", b"close")], b""
    headers, body = make((status, slug, title), detail, dict(scope or {}))
    return [*headers, (b"connection", b"close")], body


def to_bytes(status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes) -> bytes:
    """Return a response as it is sent."""
    return b"".join([STATUS_LINE[status], *(b"%s: %s\r\n" % header for header in headers), b"\r\n", body])


def is_reset(connection: socket.socket) -> bool:
    """Check whether the client is gone: its system has answered what was sent to it by a reset."""
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


def count_refusal(state: Mapping[str, Any], status: int, seconds: float = 0.0) -> None:
    """Tell the application of a request that it never sees, where it wants to know."""
    count: CountRefusal | None = state.get(COUNT_REFUSAL)
    if count is not None:
        count(PROBLEMS[status][0], status, seconds)


async def refuse(
    app: "ASGI3Application", scope: "Scope", receive: "ASGIReceiveCallable", send: "ASGISendCallable"
) -> None:
    """Answer that there are too many connections; health checks are answered by the application."""
    if scope["type"] == "http" and scope["path"] in PROBES:
        await app(scope, receive, send)
        return
    count_refusal(scope["state"], 503)
    headers, body = make_problem(scope["state"], 503, scope)
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


class _BegunTransport:
    """The transport of a connection whose next response begins with FIRST_BYTE, which has been sent already."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write the rest of the first part of the response, and everything after it."""
        self.write = self._transport.write  # type: ignore[method-assign]
        self.write(data[len(FIRST_BYTE) :])

    def writelines(self, parts: list[bytes]) -> None:
        """Write parts together."""
        self.write(b"".join(parts))


class BoundedProtocol(HttpToolsProtocol):
    """One connection; `idle` has those of the server that wait for another request, the longest idle first.

    `note_count` gets how many are left when one ends. `due` is when it is closed unless it gets
    further; `begun` is when its last request began.
    """

    def __init__(
        self,
        config: "Config",
        server_state: "ServerState",
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        idle: "dict[BoundedProtocol, None] | None" = None,
        note_count: Callable[[int], None] | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.idle = {} if idle is None else idle
        self.note_count = note_count
        self.limits: Limits = getattr(config, "limits", None) or Limits()
        self.due = self.begun = 0.0
        self.receiving, self.received_bytes, self.received_of = NOTHING, 0, self.scope
        self.unsent_bytes, self.unsent_since, self.has_sent = 0, 0.0, False
        self.find_stored: FindStored | None = app_state.get(FIND_STORED)
        self.defers = False
        self.deferred: tuple[RequestResponseCycle, ASGI3Application] | None = None
        self.running: RequestResponseCycle | None = None  # of a pipeline the first without its response
        self.is_last = False  # the next response that begins says that it is the last, and ends the connection
        self.has_begun = False  # FIRST_BYTE was sent before the connection was accepted
        self.is_resuming = False  # a parser is fed what it has to know of a head that another one has parsed
        self.is_half_closed = False  # the client sends no more, and waits for its responses
        self.refused = 0  # the status for what came behind requests whose responses have to be sent before

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it where there are too many."""
        super().connection_made(_BegunTransport(transport) if self.has_begun else transport)  # type: ignore[arg-type]
        self.begun = self.loop.time()
        self.due = self.begun + self.limits.header_seconds
        over = len(self.connections) - self.limits.max_connections
        if over > 0 and self._close_longest_idle():
            over -= 1
        if over > REFUSING:
            self.close_with(503)
        elif over > 0:
            self.is_last, self.app, self.find_stored = True, partial(refuse, self.app), None
            self.due = self.loop.time() + REFUSED_SECONDS

    def _close_longest_idle(self) -> bool:
        """Close the connection that has been idle for longest, if it is for LEAST_IDLE_SECONDS."""
        longest = next(iter(self.idle), None)
        if longest is None or longest.transport.get_write_buffer_size():  # `enforce` closes those that do not read
            return False
        if longest.due - self.limits.keep_alive_seconds > self.begun - LEAST_IDLE_SECONDS:
            return False
        del self.idle[longest]
        self.connections.discard(longest)
        longest.transport.close()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection; uvicorn says so to the last request of a pipeline, and not to the one that runs."""
        self.idle.pop(self, None)
        if self.running is not None:
            self.running.disconnected = True
            self.running.message_event.set()
        super().connection_lost(exc)
        if self.note_count is not None:
            self.note_count(len(self.connections))

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep the connection of a client that sends no more until it has its responses, unless it is gone.

        `enforce` finds out what has become of the first byte of the response.
        """
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is None or cycle.response_complete or cycle.more_body:
            if self.has_begun and (cycle is None or not cycle.response_started):
                self.close_with(400)  # what begins with FIRST_BYTE has to be a response
            return False
        self.is_half_closed, self.receiving, cycle.keep_alive = True, NOTHING, False
        if not self.pipeline and not cycle.response_started and not isinstance(self.transport, _BegunTransport):
            self.transport.write(FIRST_BYTE)
            self.transport = cycle.transport = _BegunTransport(self.transport)  # type: ignore[assignment]
        return True

    def on_headers_complete(self) -> None:
        """Begin with a request, or refuse one whose host, length or version two readers may understand differently.

        RFC 9112, sections 2.3, 3.2 and 6.1.
        """
        if self.is_resuming:
            return
        version, hosts, codings, is_host = self.parser.get_http_version(), 0, [], True
        for name, value in self.headers:
            if name == b"host":
                hosts += 1
                is_host = _is_host(value)
            elif name == b"transfer-encoding":
                codings.append(value.strip().lower())
        if version not in HTTP_VERSIONS:
            self._refuse(505)
        if hosts > 1 or not is_host or (not hosts and version == "1.1") or (codings and version == "1.0"):
            self._refuse(400)
        if codings and codings != [b"chunked"]:
            self._refuse(501)
        self.expect_100_continue = self.expect_100_continue and version == "1.1"  # RFC 9110, section 10.1.1
        super().on_headers_complete()

    def _refuse(self, status: int) -> NoReturn:
        """Close the connection with a problem, and have the parser stop."""
        self.close_with(status)
        raise ValueError(status)

    def data_received(self, data: bytes) -> None:
        """Parse what arrived, note which part of a request is awaited, and begin with a request that is complete."""
        if self.refused:
            return
        self.idle.pop(self, None)
        self.defers = self.find_stored is not None and not self.flow.write_paused
        self._unset_keepalive_if_required()
        self._parse(data)
        self.defers = False
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        if cycle is not None and self.is_last and not cycle.response_started:
            cycle.keep_alive = False
        if cycle is not None and cycle.scope is self.scope and not cycle.more_body:
            self.receiving = NOTHING
        else:
            self._note_incomplete(len(data))
        if self.deferred is not None:
            (begun, app), self.deferred = self.deferred, None
            if not self._send_stored(begun):
                super()._start_asgi_task(begun, app)

    def _parse(self, data: bytes) -> None:
        """Parse what arrived; an offer to change to another protocol is declined, as RFC 9110, section 7.8, allows.

        The parser stops after the head of a request with such an offer and takes its body for the other protocol, so
        another one goes on, of which the head says no more than where the body ends.
        """
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.parser = httptools.HttpRequestParser(self)
            framing = [b"%s: %s\r\n" % header for header in self.headers if header[0] in FRAMING]
            self.is_resuming = True
            self.parser.feed_data(b"".join([b"POST / HTTP/1.1\r\n", *framing, b"\r\n"]))
            self.is_resuming = False
            self._parse(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        """Begin with a request."""
        if not self.is_resuming:
            super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Take the target of a request."""
        if not self.is_resuming:
            super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header of a request."""
        if not self.is_resuming:
            super().on_header(name, value)

    def on_message_complete(self) -> None:
        """End a request, whose body another parser reads if this one stopped after the head."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: "ASGI3Application") -> None:
        """Run the application; for a request that is being received, only when all that arrived is parsed.

        Those that arrived together with it wait for its response, as in any pipeline.
        """
        self.running = cycle
        if self.defers:
            self.deferred = cycle, app
        else:
            super()._start_asgi_task(cycle, app)

    def _send_stored(self, cycle: RequestResponseCycle) -> bool:
        """Send the stored response to a request; False if there is none, or the request is incomplete."""
        if self.find_stored is None or cycle.more_body or self.transport.is_closing():
            return False
        stored = self.find_stored(cycle.scope, cycle.body)
        if stored is None:
            return False
        status, headers, body = stored
        lines = [b"%s: %s\r\n" % header for header in (*self.server_state.default_headers, *headers)]
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        # Together, in one call of the system: each takes as long as all of the above.
        self.transport.writelines([b"".join([STATUS_LINE[status], *lines, b"\r\n"]), body])
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def _note_incomplete(self, received_bytes: int) -> None:
        """Start the time of headers or of a body when they begin; close the connection if they are too long."""
        scope: Scope | None = self.scope  # None before the first message, like the cycle
        cycle: RequestResponseCycle | None = self.cycle
        if scope is (cycle.scope if cycle is not None else None):
            receiving = NOTHING if cycle is None else BODY
        else:
            receiving = HEAD
        if receiving != self.receiving or self.scope is not self.received_of:
            now = self.loop.time()
            if self.scope is not self.received_of:
                self.begun = now
            self.receiving, self.received_bytes, self.received_of = receiving, 0, self.scope
            if receiving == BODY:
                self.due = now + self.limits.body_seconds
            elif receiving == HEAD and not self.is_last:
                self.due = now + self.limits.header_seconds
        self.received_bytes += received_bytes
        if receiving == HEAD and self.received_bytes > MAX_HEAD_BYTES:
            self.close_with(431)
        elif self.received_bytes > MAX_MESSAGE_BYTES:
            self.close_with(413)

    def on_response_complete(self) -> None:
        """Begin the next request of a pipeline, or the time that the connection may be idle."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
        elif self.refused:
            self.close_with(self.refused)
        elif self.is_half_closed:
            self.transport.close()
        elif self.receiving == NOTHING:
            self.due = self.loop.time() + (IDLE_SHUTDOWN_SECONDS if self.is_last else self.limits.keep_alive_seconds)
            self.idle[self] = None

    def resume_writing(self) -> None:
        """Note that the client took some of the response."""
        self.has_sent = True
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # the problem says it
        """Close the connection of a client that does not send HTTP."""
        self.close_with(400)

    def shutdown(self) -> None:
        """End the connection with the next response that begins, and soon if it is idle.

        A response that has begun has not said that it is the last: its client may send another request right after it.
        """
        self.is_last = True
        if self.is_responding:
            if not self.cycle.response_started:
                self.cycle.keep_alive = False
        elif self.receiving == NOTHING:
            self.due = min(self.due, self.loop.time() + IDLE_SHUTDOWN_SECONDS)

    def enforce(self, now: float) -> None:
        """Close the connection if its client has taken too long, or is gone; `now` is the time of the event loop."""
        if self.is_half_closed and is_reset(self.transport.get_extra_info("socket")):
            self.abort()
            return
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if self.has_sent or not self.unsent_bytes or unsent < self.unsent_bytes:
                self.unsent_since = now
            self.unsent_bytes, self.has_sent = unsent, False
            if now - self.unsent_since >= self.limits.write_seconds:
                self.abort()
            return
        self.unsent_bytes = 0
        if now < self.due or self.transport.is_closing():
            return
        if self.receiving == NOTHING:
            if not self.is_responding:
                self.transport.close()
        elif self.flow.read_paused or (self.receiving == HEAD and self.is_responding):
            self.due = now + self.limits.body_seconds  # the rest of a pipelined request waits behind another one
        else:
            self.close_with(408)

    @property
    def is_responding(self) -> bool:
        """Whether a request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and not cycle.response_complete

    def abort(self) -> None:
        """Reset the connection; without that the system would keep what a client does not read for minutes."""
        opened = self.transport.get_extra_info("socket")
        with suppress(OSError):
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGERING)
        self.transport.abort()

    def _begun_scope(self) -> Mapping[str, Any] | None:
        """Return the scope of the request that is arriving, as far as it is there; None where it has not begun."""
        scope: Scope | None = self.scope  # None before the first message, like the cycle
        cycle: RequestResponseCycle | None = self.cycle
        if scope is None or (cycle is not None and cycle.scope is scope and not cycle.more_body):
            return None
        return {"raw_path": self.url.partition(b"?")[0], **scope}

    def close_with(self, status: int) -> None:
        """Close the connection, with a problem unless a response has begun or is there already.

        Where complete requests came before, that is when they have their responses.
        """
        if self.transport.is_closing():
            return
        if self.is_responding and not self.cycle.more_body:
            self.refused = self.refused or status
            self.flow.pause_reading()
            return
        if self.receiving != BODY or not self.cycle.response_started:
            headers, body = make_problem(self.app_state, status, self._begun_scope())
            self.transport.write(to_bytes(status, [*self.server_state.default_headers, *headers], body))
            if self.receiving == BODY:  # the application has the request, and counts it
                self.cycle.scope["state"][CLOSED_WITH] = status
            else:
                seconds = self.loop.time() - self.begun if self.receiving == HEAD else 0.0
                count_refusal(self.app_state, status, seconds)
        self.transport.close()
