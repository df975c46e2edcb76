"""What every answer has that the app makes, errors and all: an id, the way to the contract, and no body for HEAD."""

import logging
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import Message

from app.http.cache import NO_SNIFFING, Headers
from app.http.canonical import link
from app.http.headers import PUBLIC_URL, REQUEST_ID, BodyNotWanted, bounded, conditions, request_id
from app.http.problems import CRASHED, kind_of, problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger(__name__)
_NOT_TO_BE_STORED = (b"cache-control", b"no-store")


class Manners:
    """Around the app: adds what is missing to its answers, and answers itself where the app broke."""

    def __init__(self, app: "ASGIApp", public_url: str) -> None:
        self._app, self._public_url, self._link = app, public_url, (b"link", link(public_url))

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on; HEAD is a GET whose body is not sent."""
        head = scope["method"] == "HEAD"
        given = scope.get(REQUEST_ID) or request_id(conditions(scope["headers"]).request_id)
        method = "GET" if head else scope["method"]
        scope = {**scope, "method": method, REQUEST_ID: given, PUBLIC_URL: self._public_url}
        begun = ended = False

        async def polite(message: Message) -> None:
            nonlocal begun, ended
            if message["type"] == "http.response.start":
                begun, message = True, {**message, "headers": self._complete(message["headers"], given)}
            elif head:
                if ended:
                    raise BodyNotWanted
                message = {"type": "http.response.body", "body": b""}
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, bounded(receive, scope["headers"]), polite)
        except Exception as error:
            if begun and not ended:
                raise  # the server breaks the connection, so that nobody takes half an answer for a whole one
            if not begun:
                _log.exception("a request crashed", exc_info=error)
                await problem(Request(scope), kind_of(500), CRASHED)(scope, receive, polite)

    def _complete(self, headers: Headers, given: bytes) -> Headers:
        names = {name for name, _ in headers}
        own = [(b"x-request-id", given), NO_SNIFFING, self._link]
        if not names & {b"etag", b"cache-control"}:
            own.append(_NOT_TO_BE_STORED)
        return [*headers, *(header for header in own if header[0] not in names)]


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
