"""Reads PostgreSQL without waiting: through a pool of asynchronous connections."""

import logging
from typing import Any, TypeVar

from psycopg import AsyncConnection, OperationalError
from psycopg_pool import AsyncConnectionPool
from sqlalchemy import Engine
from sqlalchemy import exc as as_sqlalchemy

from app.db.statements import Ask, Question, Rows, typed

T = TypeVar("T")
CONNECTIONS = 8


class PostgresReader:
    """Reads PostgreSQL through a pool of asynchronous connections, each statement a transaction of its own."""

    def __init__(self, engine: Engine) -> None:
        self._address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._pool: AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]] | None = None
        self.asked = 0

    async def run(self, question: Question[T], *, brief: bool) -> T:  # noqa: ARG002  # nothing here waits in the loop
        """Run a question on one connection."""
        self.asked += 1
        try:
            async with (await self._opened()).connection() as connection:
                return await _to_its_end(connection, question)
        except OperationalError as error:
            raise as_sqlalchemy.OperationalError(None, None, error) from error

    async def close(self) -> None:
        """Close the pool."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _opened(self) -> AsyncConnectionPool[AsyncConnection[tuple[Any, ...]]]:
        if self._pool is None:
            logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # that it cannot connect is told once, elsewhere
            self._pool = AsyncConnectionPool(
                self._address, min_size=1, max_size=CONNECTIONS, open=False, kwargs={"autocommit": True}
            )
            await self._pool.open()
        return self._pool


async def _to_its_end(connection: AsyncConnection[tuple[Any, ...]], question: Question[T]) -> T:
    try:
        asked = next(question)
        while True:
            asked = question.send(await _fetch(connection, asked))
    except StopIteration as end:
        result: T = end.value
        return result


async def _fetch(connection: AsyncConnection[tuple[Any, ...]], asked: Ask) -> Rows:
    compiled = asked.statement.on("postgresql")
    cursor = await connection.execute(compiled.sql, {**compiled.constants, **asked.parameters})
    return typed(await cursor.fetchall(), compiled)
