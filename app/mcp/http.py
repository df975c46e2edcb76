"""Serves MCP at `/mcp` over streamable HTTP: stateless, answers as JSON, for programs only.

Any page that a browser shows may send requests to an address of its own network (DNS rebinding), so requests are
refused whose Host or Origin is another name than this service's own.
"""

import asyncio
import sys
from collections.abc import Callable
from datetime import date
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.databases import Database
from app.db.executors import Guard, wait_indefinitely
from app.mcp.catalog import CatalogReader, require_sdk

PATH = "/mcp"
_FORBIDDEN, _NOT_ALLOWED = 403, 405


class McpEndpoint:
    """The ASGI application at `/mcp`; it imports the SDK with its first request."""

    def __init__(
        self,
        database: Database,
        today: Callable[[], date],
        *,
        served: Callable[[], CatalogSnapshot | None],
        public_url: str = "",
        guard: Guard = wait_indefinitely,
    ) -> None:
        self._catalog = CatalogReader(database, today, guard, served)
        self._public_host = urlsplit(public_url).hostname
        self._starting: asyncio.Task[Any] | None = None
        self._serving: asyncio.Task[None] | None = None
        self._stop = asyncio.Event()

    def route(self) -> Route:
        """Return the route; other methods than POST are for streams and sessions, which it does not have.

        OPTIONS is answered as for any path, but not to a page that may not use POST either.
        """
        return Route(PATH, self, methods=["POST", "OPTIONS"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; raises HTTPException 403 for a foreign Host or Origin, NotReady without the SDK."""
        request = Request(scope)
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        name, page = _hostname(f"//{host}"), _hostname(origin or "")
        if not self._is_own(name) and not _is_address(name):
            detail = f"Host says {host}, which is not this service; set VMSIZES_PUBLIC_URL to the URL that clients use."
            raise HTTPException(_FORBIDDEN, detail)
        if origin is not None and page != name and not self._is_own(page):
            raise HTTPException(_FORBIDDEN, f"Pages of {origin} may not use the tools for agents of this service.")
        if request.method == "OPTIONS":
            raise HTTPException(_NOT_ALLOWED)
        if self._starting is None:
            self._starting = asyncio.create_task(self._start())
        manager = await asyncio.shield(self._starting)
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Stop what the first request started."""
        self._stop.set()
        if self._serving is not None:
            await self._serving
        self._catalog.close()

    async def _start(self) -> Any:
        """Import the SDK in a thread, because it takes a second, and start its session manager."""
        try:
            manager = await asyncio.to_thread(_make_manager, self._catalog)
        except BaseException:
            self._starting = None  # the next request tries again
            raise
        started = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(manager, started))
        await started.wait()
        return manager

    async def _serve(self, manager: Any, started: asyncio.Event) -> None:
        """Keep the manager running: its task group must end in the task in which it began."""
        async with manager.run():
            started.set()
            await self._stop.wait()

    def _is_own(self, name: str | None) -> bool:
        """Check for a name that no foreign page can have: this machine's, or that of the public URL."""
        return name is not None and (name in ("localhost", self._public_host) or _is_address(name, loopback=True))


def _is_address(name: str | None, *, loopback: bool = False) -> bool:
    """Check for an IP address, which no page can have another machine answer to; or for one of this machine."""
    try:
        address = ip_address(name or "")
    except ValueError:
        return False
    return address.is_loopback or not loopback


def _hostname(url: str) -> str | None:
    """Return the host of a URL; None where there is none, or it is malformed."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _make_manager(catalog: CatalogReader) -> Any:
    require_sdk()
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from app.mcp.server import make_server

    return StreamableHTTPSessionManager(
        make_server(catalog),
        json_response=True,
        stateless=True,
        max_request_body_size=sys.maxsize,  # the service's own limit is lower, and its answer is a problem
    )
