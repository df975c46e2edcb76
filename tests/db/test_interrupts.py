"""A query whose request has been cancelled is stopped, and its thread is free for the next."""

import asyncio

import pytest
from sqlalchemy import Engine, text
from sqlmodel import Session

from app.db.executors import SessionThreads
from tests.waiting import LONGEST_SECONDS

ENDLESS = {
    "sqlite": "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    "postgresql": "select pg_sleep(600)",
}


def test_the_query_of_a_cancelled_request_is_stopped(engine: Engine) -> None:
    def run_endlessly(session: Session) -> None:
        session.connection().execute(text(ENDLESS[engine.dialect.name]))

    def run_briefly(session: Session) -> int:
        return int(session.connection().execute(text("select 1")).scalar_one())

    async def ask() -> int:
        threads = SessionThreads(engine, 1)
        try:
            endless = asyncio.create_task(threads.run(run_endlessly))
            await asyncio.sleep(0.3)
            endless.cancel()
            with pytest.raises(asyncio.CancelledError):
                await endless
            return await asyncio.wait_for(threads.run(run_briefly), LONGEST_SECONDS)
        finally:
            threads.close()

    assert asyncio.run(ask()) == 1
