"""How long the answer of a database is waited for: a server gives up on one that does not answer at all."""

from collections.abc import Awaitable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Guard(Protocol):
    """Waits for an answer of the database; may raise instead, when the database does not answer at all."""

    async def __call__(self, answer: Awaitable[T], /) -> T:
        """Return what is awaited."""


async def wait_for_ever(answer: Awaitable[T], /) -> T:
    """Wait for an answer however long it takes: the guard of programs that have nothing else to do."""
    return await answer
