"""The body of a request: taken whole before anybody asks for it, and handed on as if nobody had; or too long."""

import re
import secrets
from collections.abc import Iterable
from itertools import count
from typing import NamedTuple

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

MAX_URL_BYTES = 8 * 1024
"""The path and the query of a URL have no more bytes; browsers and proxies stop there, too."""

MAX_HEADER_BYTES = 16 * 1024
"""The values of all headers of a request have no more bytes."""

MAX_CACHED_BODY_BYTES = 64 * 1024
"""A question that is kept is no longer than this, bytes; what is longer goes to the app as it comes."""

MAX_BODY_BYTES = 1024 * 1024
"""No body is longer than this, bytes."""


def is_json(content_type: str) -> bool:
    """Whether a Content-Type is one of JSON: `application/json`, or any `application/…+json`."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def read_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """Take the body, None where it is too long or its sender went away, and give what hands the same messages on."""
    first = await receive()
    taken, size, more = [first], len(first.get("body", b"")), first.get("more_body", False)
    while more and size <= MAX_CACHED_BODY_BYTES:
        message = await receive()
        taken.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    whole = size <= MAX_CACHED_BODY_BYTES and all(message["type"] == "http.request" for message in taken)
    left = iter(taken)

    async def again() -> Message:
        for message in left:
            return message
        return await receive()

    if not whole:
        return None, again
    return first["body"] if len(taken) == 1 else b"".join(message["body"] for message in taken), again


def limit_body(receive: Receive, headers: Iterable[tuple[bytes, bytes]]) -> Receive:
    """Let whoever takes a body that is too long meet a 413: at once where its length is told, else when it is."""
    told = next((value for name, value in headers if name == b"content-length"), b"0")
    taken = 0

    async def measured() -> Message:
        nonlocal taken
        if told.isdigit() and int(told) > MAX_BODY_BYTES:
            raise _body_too_long(f"{int(told):,}")
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MAX_BODY_BYTES:
            raise _body_too_long("more")
        return message

    return measured


class HeadResponseComplete(OSError):
    """The body of an answer to HEAD is not sent; ends a stream, as a client does that goes away."""


def _body_too_long(has: str) -> HTTPException:
    return HTTPException(413, f"The body has {has} bytes; at most {MAX_BODY_BYTES:,} are taken.")


MAX_ACCEPT_ENCODING_BYTES = 256
"""An Accept-Encoding of more bytes names what nobody has; it is taken for none, so that it is remembered nowhere."""


class RequestHeaders(NamedTuple):
    """The values as they came; those that are missing are empty.

    `needed` are the marks of If-Match, `kind` is the type of the body;
    `length` is how many bytes all values have together, also of headers that nobody minds.
    """

    accept_encoding: bytes
    if_none_match: bytes
    if_match: bytes
    origin: bytes
    request_id: bytes
    content_type: bytes
    total_bytes: int


def parse_headers(headers: Iterable[tuple[bytes, bytes]]) -> RequestHeaders:
    """Take them in one pass; marks of copies may stand in several headers (RFC 9110, section 5.3)."""
    accept_encoding = if_none_match = if_match = origin = request_id = content_type = b""
    total_bytes = 0
    for name, value in headers:
        total_bytes += len(value)
        if name == b"accept-encoding":
            accept_encoding = value if len(value) <= MAX_ACCEPT_ENCODING_BYTES else b""
        elif name == b"if-none-match":
            if_none_match = if_none_match + b"," + value if if_none_match else value
        elif name == b"if-match":
            if_match = if_match + b"," + value if if_match else value
        elif name == b"x-request-id":
            request_id = value
        elif name == b"origin":
            origin = value
        elif name == b"content-type":
            content_type = content_type or value
    return RequestHeaders(accept_encoding, if_none_match, if_match, origin, request_id, content_type, total_bytes)


def etag_matches(if_none_match: bytes, etag: bytes, *, exists: bool) -> bool:
    """Compare weakly (RFC 9110, section 8.8.3.2): W/ before a mark says nothing; * is any copy of what is there."""
    if if_none_match == etag:
        return True
    bare = {mark.strip().removeprefix(b"W/") for mark in if_none_match.split(b",")}
    return etag.removeprefix(b"W/") in bare or (exists and b"*" in bare)


def if_match_holds(if_match: bytes, etag: bytes) -> bool:
    """Whether If-Match lets an answer pass: it names the mark, strongly compared (RFC 9110, section 13.1.1), or any."""
    named = {mark.strip() for mark in if_match.split(b",")}
    return not if_match or b"*" in named or (etag in named and not etag.startswith(b"W/"))


REQUEST_ID = "vmsizes.request_id"
"""Where the id stands in a request's scope."""

PUBLIC_URL = "vmsizes.public_url"
"""Where the URL at which clients reach the service stands in a request's scope; empty where it is not known."""

_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{1,128}")
_PROCESS = secrets.token_hex(6).encode()
_COUNTER = count(1)


def resolve_request_id(client_id: bytes) -> bytes:
    """Take the id that was given where it is one, else make one: this process, and a number."""
    return client_id if client_id and _VALID_REQUEST_ID.fullmatch(client_id) else b"%s-%x" % (_PROCESS, next(_COUNTER))


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods of every route of a path, GET where none of them is its own; HEAD goes with GET."""
    taken = {"GET"}
    matching = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    if matching:
        taken = {method for route in matching for method in getattr(route, "methods", None) or ("GET",)}
    with_head = taken | ({"HEAD"} if "GET" in taken else set())
    return ", ".join(method for method in ("GET", "HEAD", "POST", "OPTIONS") if method in {*with_head, "OPTIONS"})


EXPOSED_HEADERS = (
    *("ETag", "Link", "X-Request-ID", "Cache-Status", "Retry-After", "Allow", "Accept-Post", "Deprecation", "Sunset"),
    *("Accept-Ranges", "Content-Range", "Content-Disposition"),
)
"""Headers that a script may see beside those that it always may."""

_PREFLIGHT_MAX_AGE_SECONDS = 86_400


def with_cors(send: Send) -> Send:
    """Wrap `send` so that pages of any origin may read the response, without credentials."""

    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Access-Control-Expose-Headers"] = ", ".join(EXPOSED_HEADERS)
            headers.add_vary_header("Origin")
        await send(message)

    return send_with_cors


def is_preflight(method: str, headers: Headers) -> bool:
    """Whether a browser asks if a page of another origin may send a request."""
    return method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers


def preflight_headers(headers: Headers, allowed: str) -> dict[str, str]:
    """What is allowed to a page of another origin: the methods of the path, and every header that it asks for."""
    told = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Max-Age": str(_PREFLIGHT_MAX_AGE_SECONDS),
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    asked = headers.get("access-control-request-headers")
    return told if asked is None else {**told, "Access-Control-Allow-Headers": asked}
