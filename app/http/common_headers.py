"""What every response has, whoever makes it: security headers, its request's id, links, and an error as a problem."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive

from app.http.cache import Header, Headers
from app.http.canonical import contract_link
from app.http.headers import (
    HOME,
    MAX_HEADER_BYTES,
    MAX_URL_BYTES,
    PUBLIC_URL,
    REQUEST_ID,
    HeadResponseComplete,
    accepts_html,
    parse_headers,
    resolve_request_id,
)
from app.http.long_bodies import LimitedBody
from app.http.observer import note_route
from app.http.problems import CRASH_DETAIL, MEDIA_TYPE, problem_response, status_problem
from app.lifespan import MakeProblem

Scope = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger(__name__)

NO_STORE = (b"cache-control", b"no-store")
NO_BODY: Message = {"type": "http.response.body", "body": b""}

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of pages: nothing comes from other origins, and no inline script or style applies."""

PAGE_HEADERS = {
    "content-security-policy": PAGE_POLICY,
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Pages have forms and scripts of their own, and links among each other, so their policies differ from DATA_HEADERS."""

DATA_HEADERS: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"cross-origin"),
]
"""The headers of a response that sets none of them: a browser that opens it runs, loads and frames nothing.

The API is public and has CORS headers, so that pages of other origins may embed its responses, too.
"""


def common_headers(hsts_seconds: int = 0) -> Headers:
    """Return the security headers of every response; HSTS only where the service is behind TLS."""
    if not hsts_seconds:
        return DATA_HEADERS
    return [*DATA_HEADERS, (b"strict-transport-security", b"max-age=%d" % hsts_seconds)]


def missing_from(headers: Headers, common: Headers) -> list[Header]:
    """Return those of `common` that a response does not set itself."""
    names = {name for name, _ in headers}
    return [header for header in common if header[0] not in names]


ProblemPage = Callable[[Request, Response], Response]
"""Renders the page for a problem, which is the response that a program gets."""


def pages_of_problems(problem_page: ProblemPage, scope: Scope, send: Send) -> Send:
    """Return a `send` that shows problems as pages, where a browser asks for a page."""
    of_page = scope["path"] == HOME or scope["path"].startswith("/ui/")
    if not of_page or not accepts_html(parse_headers(scope["headers"]).get(b"accept", b"")):
        return send
    start: Message = {}

    async def send_page(message: Message) -> None:
        nonlocal start
        if message["type"] == "http.response.start" and (b"content-type", MEDIA_TYPE.encode()) in message["headers"]:
            start = message
        elif start:
            problem = Response(message["body"], start["status"])
            problem.raw_headers = start["headers"]
            page = problem_page(Request(scope), problem)
            kept = [header for header in start["headers"] if header[0] not in (b"content-length", b"content-type")]
            await send({**start, "headers": [*page.raw_headers, *missing_from(page.raw_headers, kept)]})
            await send({"type": "http.response.body", "body": page.body})
        else:
            await send(message)

    return send_page


class CommonHeadersMiddleware:
    """Adds the headers that every response has and limits request bodies; turns a crash into a 500 problem.

    With `problem_page` problems are pages for browsers, whoever raised them.
    """

    def __init__(
        self,
        app: App,
        public_url: str,
        security_headers: Headers = DATA_HEADERS,
        problem_page: ProblemPage | None = None,
    ) -> None:
        self._app, self._public_url, self._problem_page = app, public_url, problem_page
        self._common = [*security_headers, (b"link", contract_link(public_url))]
        self._long_bodies: set[LimitedBody] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app; HEAD runs as GET, without the body."""
        head = scope["method"] == "HEAD"
        request_id = scope.get(REQUEST_ID) or resolve_request_id(parse_headers(scope["headers"]))
        method = "GET" if head else scope["method"]
        if head:  # only GET has ranges (RFC 9110, section 14.2)
            scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"range"]}
        scope = {**scope, "method": method, REQUEST_ID: request_id, PUBLIC_URL: self._public_url}
        if self._problem_page is not None and not head:
            send = pages_of_problems(self._problem_page, scope, send)
        started = ended = False
        body = LimitedBody(receive, scope, self._long_bodies)

        async def send_with_headers(message: Message) -> None:
            nonlocal started, ended
            if message["type"] == "http.response.start":
                started, own = True, message["headers"]
                common = [(b"x-request-id", request_id), *self._common]
                if not any(name in (b"etag", b"cache-control") for name, _ in own):
                    common.append(NO_STORE)
                message = {**message, "headers": [*own, *missing_from(own, common)]}
            elif head:
                if ended:
                    raise HeadResponseComplete  # stops a stream whose body HEAD does not send
                message = NO_BODY
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, body.receive, send_with_headers)
        except Exception as error:
            if started and not ended:
                raise  # the server closes the connection, so a client cannot take a partial response for a whole one
            if not started:
                _log.exception("request crashed", exc_info=error)
                crash = problem_response(Request(scope), status_problem(500), CRASH_DETAIL)
                await crash(scope, receive, send_with_headers)
        finally:
            body.close()
            note_route(scope)


def problem_maker(public_url: str, security_headers: Headers) -> MakeProblem:
    """Return what makes the problems that the server answers with before the app has a request."""

    def make(problem: tuple[int, str, str], detail: str, known: Scope) -> tuple[Headers, bytes]:
        scope = {"method": "GET", "path": "", "headers": [], "query_string": b"", **known, "type": "http"}
        request_id = known.get(REQUEST_ID) or resolve_request_id(parse_headers(scope["headers"]))
        scope |= {REQUEST_ID: request_id, PUBLIC_URL: public_url}
        response = problem_response(Request(scope), problem, detail)
        link = (b"link", contract_link(public_url))
        own: Headers = [*response.raw_headers, NO_STORE, (b"x-request-id", request_id), link]
        return [*own, *security_headers], bytes(response.body)

    return make


async def reject_oversized(scope: Scope, receive: Receive, send: Send) -> None:
    """Send the problem for a URL or headers that are too long."""
    length = len(scope["path"]) + len(scope["query_string"])
    if length > MAX_URL_BYTES:
        status, detail = 414, f"The URL has {length:,} bytes after the host; at most {MAX_URL_BYTES:,} are allowed."
    else:
        status, detail = 431, f"The headers have too many bytes; at most {MAX_HEADER_BYTES:,} are allowed."
    await problem_response(Request(scope), status_problem(status), detail)(scope, receive, send)
