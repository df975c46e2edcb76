"""What every answer has that the app makes, errors and all: an id, the way to the contract, and no body for HEAD."""

import logging
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.types import Message

from app.http.cache import NOSNIFF, Headers
from app.http.canonical import link_header
from app.http.headers import PUBLIC_URL, REQUEST_ID, HeadResponseComplete, limit_body, parse_headers, resolve_request_id
from app.http.problems import CRASH_DETAIL, problem_response, status_problem

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_log = logging.getLogger(__name__)
_NO_STORE = (b"cache-control", b"no-store")


class CommonHeadersMiddleware:
    """Around the app: adds what is missing to its answers, and answers itself where the app broke."""

    def __init__(self, app: "ASGIApp", public_url: str) -> None:
        self._app, self._public_url, self._link = app, public_url, (b"link", link_header(public_url))

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on; HEAD is a GET whose body is not sent."""
        head = scope["method"] == "HEAD"
        given = scope.get(REQUEST_ID) or resolve_request_id(parse_headers(scope["headers"]).request_id)
        method = "GET" if head else scope["method"]
        scope = {**scope, "method": method, REQUEST_ID: given, PUBLIC_URL: self._public_url}
        started = ended = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started, ended
            if message["type"] == "http.response.start":
                started, message = True, {**message, "headers": self._add_missing(message["headers"], given)}
            elif head:
                if ended:
                    raise HeadResponseComplete
                message = {"type": "http.response.body", "body": b""}
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, limit_body(receive, scope["headers"]), send_with_headers)
        except Exception as error:
            if started and not ended:
                raise  # the server breaks the connection, so that nobody takes half an answer for a whole one
            if not started:
                _log.exception("a request crashed", exc_info=error)
                await problem_response(Request(scope), status_problem(500), CRASH_DETAIL)(
                    scope, receive, send_with_headers
                )

    def _add_missing(self, headers: Headers, given: bytes) -> Headers:
        names = {name for name, _ in headers}
        own = [(b"x-request-id", given), NOSNIFF, self._link]
        if not names & {b"etag", b"cache-control"}:
            own.append(_NO_STORE)
        return [*headers, *(header for header in own if header[0] not in names)]


if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

MAX_URL_BYTES = 8 * 1024
"""The path and the query of a URL have no more bytes; browsers and proxies stop there, too."""

MAX_HEADER_BYTES = 16 * 1024
"""The values of all headers of a request have no more bytes."""


async def reject_oversized(scope: "Scope", receive: "Receive", send: "Send") -> None:
    """Say what of a request is too long."""
    length = len(scope["path"]) + len(scope["query_string"])
    if length > MAX_URL_BYTES:
        kind, told = (
            status_problem(414),
            f"The URL has {length:,} bytes after the host; at most {MAX_URL_BYTES:,} are taken.",
        )
    else:
        kind, told = status_problem(431), f"The headers have too many bytes; at most {MAX_HEADER_BYTES:,} are taken."
    await problem_response(Request(scope), kind, told)(scope, receive, send)
