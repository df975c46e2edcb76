"""Stops the statement that a thread waits for, from another thread."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from typing import Any

CANCEL_SECONDS = 5.0
"""How long PostgreSQL may take to be told; it is told over a connection of its own."""


class Interruptible:
    """Work on a connection that may be interrupted; before and after it runs that does nothing."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._driver: Any = None

    @contextmanager
    def running(self, driver: Any) -> Iterator[None]:
        """Let statements on a connection of a driver be interrupted in this block."""
        with self._lock:
            self._driver = driver
        try:
            yield
        finally:
            with self._lock:  # the connection may be another's from now on
                self._driver = None

    def interrupt(self) -> None:
        """Interrupt the statement that runs now, if any; does not wait for it."""
        Thread(target=self._interrupt, name="interrupt", daemon=True).start()

    def _interrupt(self) -> None:
        with self._lock, suppress(Exception):  # it may have ended, or its connection may be gone
            if self._driver is None:
                return
            if hasattr(self._driver, "cancel_safe"):
                self._driver.cancel_safe(timeout=CANCEL_SECONDS)
            else:
                self._driver.interrupt()
