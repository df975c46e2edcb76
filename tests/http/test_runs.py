"""Runs are shared, limited in number and time, and end when nobody waits for them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message

from app.http.runs import STARTS_PER_ITERATION, ClientGone, LoopPacer, RunTooLong, SharedRuns, TooManyRuns

Receive = Callable[[], Awaitable[Message]]


async def connected() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


def gone_when(leaves: asyncio.Event) -> Receive:
    async def receive() -> Message:
        await leaves.wait()
        return {"type": "http.disconnect"}

    return receive


class Work:
    """Something that ends when it is told to; notes how often it began, and whether it was cancelled."""

    def __init__(self) -> None:
        self.begun, self.cancelled, self.may_end = 0, False, asyncio.Event()

    async def __call__(self) -> str:
        self.begun += 1
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return "done"


def test_concurrent_requests_share_a_run() -> None:
    async def ask() -> None:
        runs, work = SharedRuns[str](2, 10), Work()
        waiting = [asyncio.create_task(runs.run("a", work, connected)) for _ in range(5)]
        await asyncio.sleep(0.2)
        assert (len(runs), work.begun) == (1, 1)
        work.may_end.set()
        assert await asyncio.gather(*waiting) == ["done"] * 5
        assert len(runs) == 0

    asyncio.run(ask())


def test_a_run_goes_on_until_its_last_client_is_gone() -> None:
    async def ask() -> None:
        runs, work = SharedRuns[str](2, 10), Work()
        cancelled: list[bool] = []
        leaves = asyncio.Event(), asyncio.Event()
        first, second = (asyncio.create_task(runs.run("a", work, gone_when(one))) for one in leaves)
        leaves[0].set()
        with pytest.raises(ClientGone):
            await first
        cancelled.append(work.cancelled)
        leaves[1].set()
        with pytest.raises(ClientGone):
            await second
        await asyncio.sleep(0)
        cancelled.append(work.cancelled)
        assert cancelled == [False, True]
        assert len(runs) == 0

    asyncio.run(ask())


def test_a_run_that_takes_too_long_is_stopped() -> None:
    async def ask() -> None:
        runs, work = SharedRuns[str](1, 0.3), Work()
        with pytest.raises(RunTooLong):
            await runs.run("a", work, connected)
        await asyncio.sleep(0)
        assert work.cancelled
        again = Work()
        again.may_end.set()
        assert await runs.run("a", again, connected) == "done"

    asyncio.run(ask())


def test_too_many_runs_are_refused_and_shared_ones_are_not() -> None:
    async def ask() -> None:
        runs, work = SharedRuns[str](1, 10), Work()
        waiting = asyncio.create_task(runs.run("a", work, connected))
        await asyncio.sleep(0)
        assert len(runs) >= runs.max_runs
        with pytest.raises(TooManyRuns):
            await runs.run("b", work, connected)
        joined = asyncio.create_task(runs.run("a", work, connected))
        work.may_end.set()
        assert (await waiting, await joined) == ("done", "done")

    asyncio.run(ask())


def test_an_error_reaches_every_client() -> None:
    async def fail() -> str:
        raise ValueError("no")

    async def ask() -> None:
        runs = SharedRuns[str](1, 10)
        results = await asyncio.gather(*(runs.run("a", fail, connected) for _ in range(2)), return_exceptions=True)
        assert [str(result) for result in results] == ["no", "no"]

    asyncio.run(ask())


@pytest.mark.parametrize(("seconds", "most"), [(0.0, STARTS_PER_ITERATION), (0.0003, 3), (0.0006, 1), (0.1, 1)])
def test_of_slow_requests_fewer_start_in_an_iteration_than_of_quick_ones(seconds: float, most: int) -> None:
    async def ask() -> list[int]:
        now, iteration = 0.0, 0
        pacer, started = LoopPacer(clock=lambda: now), Counter[int]()

        async def request() -> None:
            nonlocal now
            if not pacer.start_now():
                await pacer.wait()
            started[iteration] += 1
            now += seconds

        requests = [asyncio.create_task(request()) for _ in range(40)]
        while not all(one.done() for one in requests):
            iteration += 1
            await asyncio.sleep(0)
        return list(started.values())

    first, *later = asyncio.run(ask())
    assert first == STARTS_PER_ITERATION
    assert max(later) == most
    assert first + sum(later) == 40
