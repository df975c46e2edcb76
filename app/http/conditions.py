"""What the headers of a request say that every answer minds: encodings, copies, where it comes from, its id."""

from collections.abc import Iterable
from typing import NamedTuple

LONGEST = 256
"""An Accept-Encoding of more bytes names what nobody has; it is taken for none, so that it is remembered nowhere."""


class Conditions(NamedTuple):
    """The values as they came; those that are missing are empty.

    `needed` are the marks of If-Match, `kind` is the type of the body;
    `length` is how many bytes all values have together, also of headers that nobody minds.
    """

    accepts: bytes
    marks: bytes
    needed: bytes
    origin: bytes
    request_id: bytes
    kind: bytes
    length: int


def conditions(headers: Iterable[tuple[bytes, bytes]]) -> Conditions:
    """Take them in one pass; marks of copies may stand in several headers (RFC 9110, section 5.3)."""
    accepts = marks = needed = origin = request_id = kind = b""
    length = 0
    for name, value in headers:
        length += len(value)
        if name == b"accept-encoding":
            accepts = value if len(value) <= LONGEST else b""
        elif name == b"if-none-match":
            marks = marks + b"," + value if marks else value
        elif name == b"if-match":
            needed = needed + b"," + value if needed else value
        elif name == b"x-request-id":
            request_id = value
        elif name == b"origin":
            origin = value
        elif name == b"content-type":
            kind = kind or value
    return Conditions(accepts, marks, needed, origin, request_id, kind, length)


def matches(marks: bytes, etag: bytes, *, there: bool) -> bool:
    """Compare weakly (RFC 9110, section 8.8.3.2): W/ before a mark says nothing; * is any copy of what is there."""
    if marks == etag:
        return True
    bare = {mark.strip().removeprefix(b"W/") for mark in marks.split(b",")}
    return etag.removeprefix(b"W/") in bare or (there and b"*" in bare)


def holds(needed: bytes, etag: bytes) -> bool:
    """Whether If-Match lets an answer pass: it names the mark, strongly compared (RFC 9110, section 13.1.1), or any."""
    named = {mark.strip() for mark in needed.split(b",")}
    return not needed or b"*" in named or (etag in named and not etag.startswith(b"W/"))
