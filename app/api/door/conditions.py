"""What the headers of a request say that every answer minds: encodings, copies, where it comes from, its id."""

from collections.abc import Iterable
from typing import NamedTuple


class Conditions(NamedTuple):
    """The values as they came; those that are missing are empty."""

    accepts: bytes
    marks: bytes
    origin: bytes
    request_id: bytes


def conditions(headers: Iterable[tuple[bytes, bytes]]) -> Conditions:
    """Take them in one pass; marks of copies may stand in several headers (RFC 9110, section 5.3)."""
    accepts = marks = origin = request_id = b""
    for name, value in headers:
        if name == b"accept-encoding":
            accepts = value
        elif name == b"if-none-match":
            marks = marks + b"," + value if marks else value
        elif name == b"x-request-id":
            request_id = value
        elif name == b"origin":
            origin = value
    return Conditions(accepts, marks, origin, request_id)


def matches(marks: bytes, etag: bytes, *, there: bool) -> bool:
    """Compare weakly (RFC 9110, section 8.8.3.2): W/ before a mark says nothing; * is any copy of what is there."""
    if marks == etag:
        return True
    bare = {mark.strip().removeprefix(b"W/") for mark in marks.split(b",")}
    return etag.removeprefix(b"W/") in bare or (there and b"*" in bare)
