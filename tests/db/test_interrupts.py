"""The work of a request that has been cancelled is stopped, and its thread is free for the next."""

import asyncio
from collections.abc import Callable, Coroutine

import pytest

from app.cancellation import stop_if_cancelled
from app.db.databases import Database
from app.db.executors import ReadingThreads
from app.db.statements import BoundStatement, DriverReader, Statement
from tests.waiting import LONGEST_SECONDS

ENDLESS = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    "postgresql": "select pg_sleep(600)",
}


def _fetch(reader: DriverReader, sql: str) -> int:
    return int(reader.fetch(BoundStatement(Statement(lambda _dialect: sql), {}))[0][0])


def _query(reader: DriverReader) -> None:
    _fetch(reader, ENDLESS[reader.kind])


def _compute(_reader: DriverReader | None = None) -> None:
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
    database: Database, work: Callable[[ReadingThreads], Coroutine[None, None, None]]
) -> None:
    def run_briefly(reader: DriverReader) -> int:
        stop_if_cancelled()
        return _fetch(reader, "select 1")

    async def ask() -> int:
        threads = ReadingThreads(database, 1)
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
