"""Runs that compute responses: shared, bounded in number and in time, and only while a client waits for them.

`LoopPacer` limits how many begin at once.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Generic, TypeVar, cast

from starlette.types import Receive

T = TypeVar("T")

WATCH_SECONDS = 0.1
"""After this long a run is slow enough that it is worth watching whether its clients are still there."""

STARTS_PER_ITERATION = 8
"""How many misses start in one iteration of the event loop at most."""

ITERATION_SECONDS = 0.001
"""Where those take longer than this, fewer start in the next one: so long other requests wait for them."""


class TooManyRuns(Exception):
    """As many responses are being computed as may be."""


class RunTooLong(Exception):
    """A response was not there in time; its run has been stopped if no other client waits for it."""


class ClientGone(Exception):
    """The client has disconnected, so that no one is left to answer."""


@dataclass(eq=False, slots=True)
class _Run(Generic[T]):
    task: asyncio.Task[T]
    waiting: int = 0


@dataclass(slots=True)
class SharedRuns(Generic[T]):
    """The runs of a worker; a run that everybody has left is cancelled, which stops its query."""

    max_runs: int
    max_seconds: float
    _runs: dict[Hashable, _Run[T]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._runs

    @contextmanager
    def count(self) -> Iterator[None]:
        """Count a request that nothing else can join among the runs; raises TooManyRuns."""
        if len(self._runs) >= self.max_runs:
            raise TooManyRuns
        key = object()
        self._runs[key] = _Run(cast("asyncio.Task[T]", asyncio.current_task()))
        try:
            yield
        finally:
            del self._runs[key]

    async def run(self, key: Hashable, start: Callable[[], Coroutine[Any, Any, T]], receive: Receive) -> T:
        """Return the result of the run with this key, starting it if there is none.

        `receive` is that of the client's connection, whose request has been read. Raises TooManyRuns, RunTooLong,
        ClientGone, or what the run raises.
        """
        run = self._runs.get(key)
        if run is None:
            if len(self._runs) >= self.max_runs:
                raise TooManyRuns
            run = self._runs[key] = _Run(asyncio.create_task(start()))
            run.task.add_done_callback(partial(self._forget, key))
        run.waiting += 1
        try:
            await asyncio.sleep(0)  # most runs never wait for a thread, and have ended after that
            if not run.task.done():
                await asyncio.wait({run.task}, timeout=min(WATCH_SECONDS, self.max_seconds))
            if not run.task.done():
                await self._wait_for_client(run.task, receive)
            return run.task.result()
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                run.task.cancel()
                self._forget(key, run.task)  # no request may join a run that is being stopped

    def _forget(self, key: Hashable, task: asyncio.Task[T]) -> None:
        run = self._runs.get(key)
        if run is not None and run.task is task:
            del self._runs[key]
        if task.done() and not task.cancelled():
            task.exception()  # may be that of a run whose clients have all left

    async def _wait_for_client(self, task: asyncio.Task[T], receive: Receive) -> None:
        watching = asyncio.create_task(_until_disconnected(receive))
        try:
            waited = max(0.0, self.max_seconds - WATCH_SECONDS)
            await asyncio.wait({task, watching}, timeout=waited, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return
            raise ClientGone if watching.done() else RunTooLong
        finally:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class LoopPacer:
    """Limits how many requests start in each iteration of the event loop, first come, first served."""

    def __init__(self, per_iteration: int = STARTS_PER_ITERATION, clock: Callable[[], float] = perf_counter) -> None:
        self._per_iteration, self._clock = per_iteration, clock
        self._allowed, self._started, self._began_at = per_iteration, 0, 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def start_now(self) -> bool:
        """Count a request that starts in this iteration; False if it has to wait for a later one."""
        if self._started >= self._allowed:
            return False
        if self._started == 0:
            self._began_at = self._clock()
            loop = asyncio.get_running_loop()
            loop.call_soon(self._next_iteration, loop)
        self._started += 1
        return True

    async def wait(self) -> None:
        """Return in a later iteration that has room."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _next_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        now = self._clock()
        seconds = (now - self._began_at) / self._started
        self._allowed = max(1, min(self._per_iteration, int(ITERATION_SECONDS / max(seconds, 1e-6))))
        self._began_at, self._started = now, 0
        while self._waiting and self._started < self._allowed:
            turn = self._waiting.popleft()
            if not turn.done():  # cancelled when its client disconnected
                turn.set_result(None)
                self._started += 1
        if self._started:
            loop.call_soon(self._next_iteration, loop)
