"""Requests that are longer than any question: refused before anything of them is read or remembered."""

from typing import TYPE_CHECKING

from starlette.requests import Request

from app.http.problems import kind_of, problem

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MOST_URL = 8 * 1024
"""The path and the query of a URL have no more bytes; browsers and proxies stop there, too."""

MOST_HEADERS = 16 * 1024
"""The values of all headers of a request have no more bytes."""


async def refuse_long(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Say what of a request is too long."""
    length = len(scope["path"]) + len(scope["query_string"])
    if length > MOST_URL:
        kind, told = kind_of(414), f"The URL has {length:,} bytes after the host; at most {MOST_URL:,} are taken."
    else:
        kind, told = kind_of(431), f"The headers have too many bytes; at most {MOST_HEADERS:,} are taken."
    await problem(Request(scope), kind, told)(scope, receive, send)
