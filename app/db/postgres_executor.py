"""Runs query plans on PostgreSQL through a pool of asynchronous connections."""

import logging
from typing import Any, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Engine
from sqlalchemy import exc as as_sqlalchemy

from app.db.statements import BoundStatement, QueryPlan, Rows, convert_rows

T = TypeVar("T")
POOL_SIZE = 8


class PostgresExecutor:
    """Runs each plan on one connection of the pool, each statement in a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._conninfo = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._pool: AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]] | None = None
        self.query_count = 0

    async def run(self, plan: QueryPlan[T], *, small_catalog: bool) -> T:  # noqa: ARG002  # nothing blocks the event loop
        """Run a plan on one connection."""
        self.query_count += 1
        try:
            async with (await self._open_pool()).connection() as connection:
                return await _run_plan(connection, plan)
        except OperationalError as error:
            raise as_sqlalchemy.OperationalError(None, None, error) from error

    async def close(self) -> None:
        """Close the pool."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _open_pool(self) -> AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]]:
        if self._pool is None:
            logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # RevisionWatcher logs an outage, once
            self._pool = AsyncConnectionPool(
                self._conninfo, min_size=1, max_size=POOL_SIZE, open=False, kwargs={"autocommit": True}
            )
            await self._pool.open()
        return self._pool


async def _run_plan(connection: AsyncConnection[tuple[Any, ...]], plan: QueryPlan[T]) -> T:
    try:
        bound = next(plan)
        while True:
            bound = plan.send(await _fetch(connection, bound))
    except StopIteration as end:
        result: T = end.value
        return result


async def _fetch(connection: AsyncConnection[tuple[Any, ...]], bound: BoundStatement) -> Rows:
    compiled = bound.statement.compiled_for("postgresql")
    cursor = await connection.execute(compiled.sql, {**compiled.constants, **bound.parameters})
    return convert_rows(await cursor.fetchall(), compiled)
