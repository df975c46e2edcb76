"""Cooperative cancellation of work in threads, which Python cannot stop from outside."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

_cancelled: ContextVar[Event | None] = ContextVar("cancelled", default=None)


class Cancelled(Exception):
    """The work was cancelled: the client disconnected, or the request timed out."""


@contextmanager
def cancelled_by(event: Event) -> Iterator[None]:
    """Make `stop_if_cancelled` raise Cancelled in this block once the event is set."""
    before = _cancelled.set(event)
    try:
        yield
    finally:
        _cancelled.reset(before)


def stop_if_cancelled() -> None:
    """Raise Cancelled if the current work was cancelled; long loops call it about once a millisecond."""
    event = _cancelled.get()
    if event is not None and event.is_set():
        raise Cancelled
