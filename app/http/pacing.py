"""Spreads requests that come at once over iterations of the event loop, so that nobody waits for all of them."""

import asyncio
from collections import deque

AT_ONCE = 8
"""So many requests begin in one iteration: at a millisecond each, others wait for these eight and not for all."""


class LoopPacer:
    """Lets a bounded number of requests begin in each iteration of the event loop, in the order in which they came."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once where this iteration has room, else in a later one."""
        loop = asyncio.get_running_loop()
        if self._begun == 0:
            loop.call_soon(self._next_iteration, loop)
        if self._begun < self._at_once:
            self._begun += 1
            return
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            following = self._waiting.popleft()
            if not following.done():  # its client may have gone away meanwhile
                following.set_result(None)
                self._begun += 1
        if self._begun:
            loop.call_soon(self._next_iteration, loop)
