"""Requests as they arrive: limits, the headers that the service evaluates, request ids, bodies, CORS."""

import re
import secrets
from collections.abc import Collection, Iterable, Mapping
from itertools import count

from starlette.datastructures import MutableHeaders
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

HOME = "/"
"""The one path whose media type depends on Accept."""

MAX_URL_BYTES = 8 * 1024
"""The limit of a URL's path and query together; browsers and proxies stop there, too."""

MAX_HEADER_BYTES = 16 * 1024
"""The limit of the values of all request headers together."""

MAX_BODY_BYTES = 1024 * 1024
"""The limit of a request body, but for those of `app.http.long_bodies`."""

MAX_CACHED_BODY_BYTES = 64 * 1024
"""The limit of a request body whose response may be cached; a longer one is passed to the app as it arrives."""


def parse_headers(sent: Collection[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return headers by name; values of one that is repeated are a list (RFC 9110, section 5.3)."""
    headers = dict(sent)
    if len(headers) < len(sent):
        headers = {}
        for name, value in sent:
            headers[name] = b"%s,%s" % (headers[name], value) if name in headers else value
    return headers


def accepts_html(accept: bytes) -> bool:
    """Check whether a client names HTML in Accept, as browsers do, and weighs it no less than JSON (RFC 9110, 12.5.1).

    `*/*` alone is a program.
    """
    weights: dict[bytes, float] = {}
    for part in accept.lower().translate(None, b" \t").split(b","):
        kind, *parameters = part.split(b";")
        weight = next((parameter[2:] for parameter in parameters if parameter.startswith(b"q=")), b"")
        weights[kind] = float(weight) if _WEIGHT.fullmatch(weight) else 1.0
    html, json = (next((weights[kind] for kind in kinds if kind in weights), 0.0) for kinds in _KINDS)
    return html > 0 and html >= json


_WEIGHT = re.compile(rb"0(?:\.\d{0,3})?|1(?:\.0{0,3})?")
_KINDS = ((b"text/html", b"text/*"), (b"application/json", b"application/*", b"*/*"))
"""What names HTML in Accept, and what may stand for JSON, the most specific first."""


def client_has(etag: bytes, headers: Mapping[bytes, bytes], *, exists: bool = True) -> bool:
    """Check whether If-None-Match makes a response a 304; `*` matches any response that exists.

    By weak comparison (RFC 9110, section 8.8.3.2).
    """
    if_none_match = headers.get(b"if-none-match")
    if not if_none_match or if_none_match == etag:
        return bool(if_none_match)
    opaque_tags = {tag.strip().removeprefix(b"W/") for tag in if_none_match.split(b",")}
    return etag.removeprefix(b"W/") in opaque_tags or (exists and b"*" in opaque_tags)


def if_match_holds(if_match: bytes, etag: bytes) -> bool:
    """Check If-Match by strong comparison (RFC 9110, section 13.1.1); an empty header holds."""
    tags = {tag.strip() for tag in if_match.split(b",")}
    return not if_match or b"*" in tags or (etag in tags and not etag.startswith(b"W/"))


SECRETS = re.compile(
    r"(?:^|(?<=&))((?:x[-_])?(?:api[-_]?)?key|(?:access[-_]?)?token|authorization|password|secret)=[^&]*", re.IGNORECASE
)
"""Unknown parameters in which clients send keys by mistake: their values are neither shown nor logged."""

REQUEST_ID = "vmsizes.request_id"
"""The key of the request id in a request's scope."""

PUBLIC_URL = "vmsizes.public_url"
"""The key in a request's scope of the URL at which clients reach the service; empty if unknown."""

HOLDER = "vmsizes.holder"
"""The key in a request's scope of the name of the holder of its API key; not there without one."""

_VALID_REQUEST_ID = re.compile(rb"[A-Za-z0-9_-]{1,128}")
_PROCESS = secrets.token_hex(6).encode()
_COUNTER = count(1)


def resolve_request_id(headers: Mapping[bytes, bytes]) -> bytes:
    """Return the client's id if it is valid, else a new one: a random prefix of this process, and a number."""
    client_id = headers.get(b"x-request-id", b"")
    return client_id if client_id and _VALID_REQUEST_ID.fullmatch(client_id) else b"%s-%x" % (_PROCESS, next(_COUNTER))


def is_json(content_type: str) -> bool:
    """Check whether a Content-Type is `application/json` or any `application/…+json`."""
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type == "application/json" or (media_type.startswith("application/") and media_type.endswith("+json"))


async def read_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """Read a body, and return it with a `receive` that replays the same messages.

    The body is None if it is longer than MAX_CACHED_BODY_BYTES, or the client disconnected.
    """
    first = await receive()
    messages, size, more = [first], len(first.get("body", b"")), first.get("more_body", False)
    while more and size <= MAX_CACHED_BODY_BYTES:
        message = await receive()
        messages.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    complete = size <= MAX_CACHED_BODY_BYTES and all(message["type"] == "http.request" for message in messages)
    remaining = iter(messages)

    async def replay() -> Message:
        for message in remaining:
            return message
        return await receive()

    if not complete:
        return None, replay
    return first["body"] if len(messages) == 1 else b"".join(message["body"] for message in messages), replay


class HeadResponseComplete(OSError):
    """Ends the response to HEAD before its body; an OSError, as a client raises that disconnects."""


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """Return the value of Allow for a path; GET for a path that does not exist."""
    matching = [route for route in routes if route.matches(scope)[0] is not Match.NONE]
    methods = {method for route in matching for method in getattr(route, "methods", None) or ("GET",)} or {"GET"}
    with_head = methods | ({"HEAD"} if "GET" in methods else set())
    return ", ".join(method for method in ("GET", "HEAD", "POST", "OPTIONS") if method in {*with_head, "OPTIONS"})


EXPOSED_HEADERS = (
    *("ETag", "Link", "X-Request-ID", "Cache-Status", "Retry-After", "Allow", "Accept-Post", "Deprecation", "Sunset"),
    *("Accept-Ranges", "Content-Range", "Content-Disposition", "RateLimit", "RateLimit-Policy"),
)
"""Response headers that scripts of other origins may read besides those that CORS always allows."""


def with_cors(send: Send) -> Send:
    """Wrap `send` so that pages of any origin may read the response, without credentials."""

    async def send_with_cors(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["Access-Control-Allow-Origin"] = "*"
            headers["Access-Control-Expose-Headers"] = ", ".join(EXPOSED_HEADERS)
            if "origin" not in headers.get("vary", "").lower():
                headers.add_vary_header("Origin")
        await send(message)

    return send_with_cors
