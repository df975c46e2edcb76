"""Waits for what has to happen instead of for a time: a machine that does much else makes a test slower, not fail."""

import asyncio
import time
from collections.abc import Callable

LONGEST_SECONDS = 60.0
"""A bound for what never happens. What is tested is never that something takes less."""


def wait_until(holds: Callable[[], object], what: str = "it has to happen") -> None:
    """Return as soon as something holds; fails the test where it does not in LONGEST_SECONDS."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


async def until(holds: Callable[[], object], what: str = "it has to happen") -> None:
    """Return as soon as something holds, as `wait_until`, while other tasks go on."""
    deadline = time.monotonic() + LONGEST_SECONDS
    while not holds():
        assert time.monotonic() < deadline, what
        await asyncio.sleep(0.02)
