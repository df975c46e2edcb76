"""The work of a request that has been cancelled is stopped, and its thread is free for the next."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session

from app.cancellation import stop_if_cancelled
from app.db.executors import SessionThreads
from tests.waiting import LONGEST_SECONDS

ENDLESS = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    "postgresql": "select pg_sleep(600)",
}


def _query(session: Session) -> None:
    session.connection().execute(text(ENDLESS[session.connection().dialect.name]))


def _compute(_session: Session | None = None) -> None:
    while True:
        stop_if_cancelled()


@pytest.mark.parametrize(
    "work",
    [
        lambda threads: threads.run(_query),
        lambda threads: threads.run(_compute),
        lambda threads: threads.compute(_compute),
    ],
    ids=["a statement", "arithmetic", "arithmetic without a connection"],
)
def test_the_work_of_a_cancelled_request_is_stopped(
    engine: Engine, work: Callable[[SessionThreads], Coroutine[None, None, None]]
) -> None:
    def run_briefly(session: Session) -> int:
        stop_if_cancelled()
        return int(session.connection().execute(text("select 1")).scalar_one())

    async def ask() -> int:
        threads = SessionThreads(engine, 1)
        try:
            task = asyncio.create_task(work(threads))
            await asyncio.sleep(0.3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return await asyncio.wait_for(threads.run(run_briefly), LONGEST_SECONDS)
        finally:
            threads.close()

    assert asyncio.run(ask()) == 1
