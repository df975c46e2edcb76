"""What the application passes to the server in its lifespan state.

A server that looks for FIND_STORED sends stored responses right where it has parsed their requests. That saves a task,
two ASGI messages, and the check of each header: a third of what a repeated request costs. Under any other server
`CacheMiddleware` sends the same responses as messages. docs/adr/0030-stored-responses-as-bytes.md.
"""

from collections.abc import Callable, Sequence
from typing import Any

CountRefusal = Callable[[str, int, float], None]
COUNT_REFUSAL = "count_refusal"
"""The key of a function to call for requests which the server refuses itself: the slug of the problem, the status,
and the seconds since the first byte."""

MakeProblem = Callable[[tuple[int, str, str], str, dict[str, Any]], tuple[list[tuple[bytes, bytes]], bytes]]
MAKE_PROBLEM = "make_problem"
"""The key of a function that returns headers and body of a problem that the server itself answers with, by its status,
slug and title, its detail, and the part of the ASGI scope that has arrived."""

CLOSED_WITH = "closed_with"
"""The key in the state of a request of the status with which the server closed its connection before all of the body
was there. A client that was gone before has none."""

FindStored = Callable[[Any, bytes | bytearray], tuple[int, Sequence[tuple[bytes, bytes]], bytes] | None]
"""Returns status, headers and body of the response to a request, by its ASGI scope and its body; None leaves it to the
application."""
FIND_STORED = "find_stored"
"""The key of a FindStored, which is there where no other middleware has to see each request."""
