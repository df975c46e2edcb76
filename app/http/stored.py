"""Stored responses as bytes, for servers that send them without running the application (app.lifespan)."""

import time
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from app.http.cache import VARY, CachedResponse, EncodedVariant, digest
from app.http.headers import (
    HOME,
    MAX_ACCEPT_ENCODING_BYTES,
    MAX_CACHED_BODY_BYTES,
    MAX_HEADER_BYTES,
    is_json,
    resolve_request_id,
)
from app.lifespan import StoredBytes


class PlainRequest(NamedTuple):
    """A request with nothing unusual; `url` as in `ResponseCache.find`, headers empty where they are missing."""

    url: tuple[str, bytes]
    encodings: bytes
    etags: bytes
    request_id: bytes


def read_plain_request(scope: MutableMapping[str, Any], body: bytes | bytearray) -> PlainRequest | None:
    """Read a GET or a POST of JSON; None if anything is unusual: repeated or long headers, CORS, another method."""
    method, path, query, sent = scope["method"], scope["path"], scope["query_string"], scope["headers"]
    headers = dict(sent)
    if len(headers) != len(sent) or b"origin" in headers or sum(map(len, headers.values())) > MAX_HEADER_BYTES:
        return None
    encodings, etags = headers.get(b"accept-encoding", b""), headers.get(b"if-none-match", b"")
    if len(encodings) > MAX_ACCEPT_ENCODING_BYTES or path == HOME:
        return None
    if method == "POST":
        if len(body) > MAX_CACHED_BODY_BYTES or not is_json(headers.get(b"content-type", b"").decode("latin-1")):
            return None
        query, etags = digest(query, body), b""
    elif method != "GET":
        return None
    return PlainRequest((path, query), encodings, etags, resolve_request_id(headers.get(b"x-request-id", b"")))


def whole_response(response: CachedResponse, variant: EncodedVariant, request: PlainRequest) -> StoredBytes:
    """Return a stored response in one encoding, whose `lines` are there."""
    lines = b"%sx-request-id: %s\r\ncache-status: %s\r\n" % (variant.lines, request.request_id, hit_status(response))
    return StoredBytes(200, lines, variant.body)


def not_modified(response: CachedResponse, request: PlainRequest) -> StoredBytes:
    """Return the 304 for a client that has the response, with the headers of `validator_headers`."""
    lines = b"etag: %s\r\n%s: %s\r\n%s: %s\r\nx-request-id: %s\r\n"
    return StoredBytes(304, lines % (response.etag, *response.cache_control, *VARY, request.request_id), b"")


def hit_status(response: CachedResponse) -> bytes:
    """Return the value of Cache-Status for a stored response (RFC 9211)."""
    return b'vmsizes; hit; detail="age %d s"' % (time.monotonic() - response.created_at)
