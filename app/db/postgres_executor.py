"""Runs query plans on PostgreSQL through a pool of asynchronous connections."""

import asyncio
import logging
from typing import Any, TypeVar

from psycopg import AsyncConnection, Error, OperationalError
from psycopg_pool import AsyncConnectionPool, PoolClosed
from sqlalchemy import Engine
from sqlalchemy import exc as as_sqlalchemy

from app.db.engines import SERVING_TIMEOUTS, has_outdated_plan
from app.db.guards import Guard, wait_for_ever
from app.db.servers import choice_of
from app.db.statements import BoundStatement, MakePlan, QueryPlan, Rows, convert_rows
from app.telemetry import tracing

T = TypeVar("T")
POOL_SIZE = 8
OPENED_AT_ONCE = 4
"""Connections that are opened together with the first, and kept: under load each takes as long as several questions."""
_POOL_TIMEOUT_SECONDS = 5.0
_CLOSE_SECONDS = 2.0
"""How long a pool that is closed waits for its tasks to end: the event loop would have to cancel them otherwise."""

Pool = AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]]


class PostgresExecutor:
    """Runs each plan on one connection of the pool, each statement in a transaction of its own."""

    def __init__(self, engine: Engine, guard: Guard = wait_for_ever) -> None:
        self._guard = guard
        self._conninfo = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._choice = choice_of(engine.url)
        timeouts = {name: value for name, value in SERVING_TIMEOUTS.items() if name not in engine.url.query}
        self._fixed_options: dict[str, Any] = {"autocommit": True, **timeouts}
        self._pool: Pool | None = None
        self._closing: set[asyncio.Task[None]] = set()
        self.query_count = 0

    async def run(self, make_plan: MakePlan[T], *, small_catalog: bool) -> T:  # noqa: ARG002  # nothing blocks the event loop
        """Run a plan on one connection, if it needs any; once more on a new one where the connection breaks."""
        self.query_count += 1
        plan = make_plan()
        try:
            first = next(plan)
        except StopIteration as end:
            result: T = end.value
            return result
        return await self._guard(self._run(plan, first, make_plan))

    async def _run(self, plan: QueryPlan[T], first: BoundStatement, make_plan: MakePlan[T]) -> T:
        try:
            pool = await self._open_pool()
            try:
                return await self._run_on(pool, plan, first)
            except (_ConnectionLost, PoolClosed):
                if self._pool is pool:
                    self.reconnect()  # so must the others: the server has restarted, or another one is used
            plan = make_plan()
            return await self._run_on(await self._open_pool(), plan, next(plan))
        except _ConnectionLost as lost:
            raise as_sqlalchemy.OperationalError(None, None, lost.error) from lost.error
        except Error as error:
            raise as_sqlalchemy.OperationalError(None, None, error) from error
        finally:
            plan.close()

    @property
    def connections(self) -> tuple[int, int, int]:
        """How many connections are in use and are open, and how many queries wait for one."""
        if self._pool is None:
            return 0, 0, 0
        stats = self._pool.get_stats()
        size = stats.get("pool_size", 0)
        return size - stats.get("pool_available", 0), size, stats.get("requests_waiting", 0)

    async def close(self) -> None:
        """Close the pool."""
        self.reconnect()
        await asyncio.gather(*self._closing)

    def reconnect(self) -> None:
        """Close the pool; a query opens a new one, without the growing pauses that a pool makes after failures."""
        if self._pool is not None:
            closing = asyncio.create_task(self._pool.close(timeout=_CLOSE_SECONDS))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            self._pool = None

    async def _open_pool(self) -> Pool:
        if self._pool is None:
            logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # RevisionWatcher logs an outage, once
            self._pool = AsyncConnectionPool(
                self._conninfo,
                min_size=OPENED_AT_ONCE,
                max_size=POOL_SIZE,
                open=False,
                timeout=_POOL_TIMEOUT_SECONDS,
                kwargs=self._options,
                configure=self._note_server,
            )
            await self._pool.open()
        return self._pool

    def _options(self) -> dict[str, Any]:
        return self._fixed_options | (self._choice.in_order() if self._choice else {})

    async def _note_server(self, connection: AsyncConnection[Any]) -> None:
        if self._choice is not None:
            self._choice.note(connection)

    async def _run_on(self, pool: Pool, plan: QueryPlan[T], first: BoundStatement) -> T:
        async with pool.connection() as connection:
            if self._choice is not None and self._choice.server_of(connection) != self._choice.current:
                # Not the pool's own check: it would give the connection back, and wait until it times out.
                raise _ConnectionLost(OperationalError("server closed the connection: another server is used now"))
            try:
                return await _run_plan(connection, plan, first)
            except Error as error:
                if connection.closed or has_outdated_plan(error):
                    raise _ConnectionLost(error) from error
                raise


class _ConnectionLost(Exception):
    """The connection broke in a plan, or serves only the schema of before; `error` is the driver's."""

    def __init__(self, error: Error) -> None:
        self.error = error


async def _run_plan(connection: AsyncConnection[tuple[Any, ...]], plan: QueryPlan[T], first: BoundStatement) -> T:
    bound = first
    try:
        while True:
            bound = plan.send(await _fetch(connection, bound))
    except StopIteration as end:
        result: T = end.value
        return result


async def _fetch(connection: AsyncConnection[tuple[Any, ...]], bound: BoundStatement) -> Rows:
    compiled = bound.statement.compiled_for("postgresql")
    with tracing.statement_span("postgresql", compiled.sql):
        cursor = await connection.execute(compiled.sql, {**compiled.constants, **bound.parameters})
        rows = await cursor.fetchall()
    return convert_rows(rows, compiled)
