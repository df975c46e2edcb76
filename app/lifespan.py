"""What the application tells the server in its lifespan state.

A server that looks for FIND_STORED sends stored responses right where it has parsed their requests. That saves a task,
two ASGI messages, and the check and encoding of each header: half of what a repeated request costs. Under any other
server `CacheMiddleware` sends the same responses as messages. docs/adr/0030-stored-responses-as-bytes.md.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

CountRefusal = Callable[[str, int, float], None]
COUNT_REFUSAL = "count_refusal"
"""The key of a function that is told of requests which the server refuses itself: the slug of the problem, the status,
and the seconds since the first byte."""


class StoredBytes(NamedTuple):
    """A response: its header lines, each with its end, without those that the server adds; and its body."""

    status: int
    lines: bytes
    body: bytes


FindStored = Callable[[Any, bytes | bytearray], StoredBytes | None]
"""Returns what a request is answered with, by its ASGI scope and its body; None leaves it to the application."""

FIND_STORED = "find_stored"
"""The key of a FindStored, which is there where no other middleware has to see each request."""
