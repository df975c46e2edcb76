"""The body of a request: taken whole before anybody asks for it, and handed on as if nobody had; or too long."""

from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive

QUESTION = 64 * 1024
"""A question that is kept is no longer than this, bytes; what is longer goes to the app as it comes."""

MOST = 1024 * 1024
"""No body is longer than this, bytes."""


def is_json(content_type: str) -> bool:
    """Whether a Content-Type is one of JSON: `application/json`, or any `application/…+json`."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def whole_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """Take the body, None where it is too long or its sender went away, and give what hands the same messages on."""
    first = await receive()
    taken, size, more = [first], len(first.get("body", b"")), first.get("more_body", False)
    while more and size <= QUESTION:
        message = await receive()
        taken.append(message)
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    whole = size <= QUESTION and all(message["type"] == "http.request" for message in taken)
    left = iter(taken)

    async def again() -> Message:
        for message in left:
            return message
        return await receive()

    if not whole:
        return None, again
    return first["body"] if len(taken) == 1 else b"".join(message["body"] for message in taken), again


def bounded(receive: Receive, headers: Iterable[tuple[bytes, bytes]]) -> Receive:
    """Let whoever takes a body that is too long meet a 413: at once where its length is told, else when it is."""
    told = next((value for name, value in headers if name == b"content-length"), b"0")
    taken = 0

    async def measured() -> Message:
        nonlocal taken
        if told.isdigit() and int(told) > MOST:
            raise _too_long(f"{int(told):,}")
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MOST:
            raise _too_long("more")
        return message

    return measured


class BodyNotWanted(OSError):
    """The body of an answer to HEAD is not sent; ends a stream, as a client does that goes away."""


def _too_long(has: str) -> HTTPException:
    return HTTPException(413, f"The body has {has} bytes; at most {MOST:,} are taken.")
