"""Whose turn it is: of many requests that come at once each begins in a turn of the event loop of its own."""

import asyncio
from collections import deque


class Turns:
    """Spreads the work of beginning over the turns of an event loop.

    Two hundred that come in one turn and take a millisecond each would let everybody else, probes too, wait for all of
    them. In between, the loop now reads and answers what else has come.
    """

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    async def take(self) -> None:
        """Go on at once where nobody else has begun in this turn, else in a later one, in the order of coming."""
        loop = asyncio.get_running_loop()
        if self._taken:
            mine = loop.create_future()
            self._waiting.append(mine)
            await mine
            return
        self._taken = True
        loop.call_soon(self._pass_on, loop)

    def _pass_on(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            following = self._waiting.popleft()
            if not following.done():  # somebody may have gone away meanwhile
                following.set_result(None)
                loop.call_soon(self._pass_on, loop)
                return
        self._taken = False
