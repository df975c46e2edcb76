"""Stops arithmetic in a thread where nobody waits for its result any more: Python cannot stop a thread from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_cancelled: ContextVar[Event | None] = ContextVar("cancelled", default=None)


class Cancelled(Exception):
    """Nobody waits for the result: the client has left, or its time is over."""


@contextmanager
def cancelled_by(event: Event) -> Iterator[None]:
    """Let `stop_if_cancelled` raise in this block, of the current thread, once an event is set."""
    before = _cancelled.set(event)
    try:
        yield
    finally:
        _cancelled.reset(before)


def stop_if_cancelled() -> None:
    """Raise Cancelled where nobody waits; called in loops that may take long, at steps of about a millisecond."""
    event = _cancelled.get()
    if event is not None and event.is_set():
        raise Cancelled
