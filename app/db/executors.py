"""Readers: run questions for a server that must not wait. What is short runs on the event loop, the rest beside it."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from app.db.engines import read_session
from app.db.statements import CompiledStatement, QueryPlan, convert_rows

P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 4
"""So many questions are read at once. With one thread that looks for revisions and one that computes, they are fewer
than the pool has connections (`app.db.engines`): who has a thread never waits for a connection, and who waits for a
thread waits in the event loop and holds nothing."""


class SessionThreads:
    """Runs work that needs a session, all of it in one thread: the session is opened, asked and closed there."""

    def __init__(self, engine: Engine, max_threads: int = MAX_READERS, *, name: str = "reading") -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix=name)

    async def run(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Do the work as soon as a thread is free, and give what it returns or raises."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self._with_session, work, *args, **more))

    def close(self) -> None:
        """Let the threads go; what waits for one is not begun any more."""
        self._threads.shutdown(cancel_futures=True)

    def _with_session(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        with read_session(self._engine) as session:
            return work(session, *args, **more)


class PlanExecutor(Protocol):
    """Runs questions on the driver of a database; `query_count` counts them."""

    query_count: int

    async def run(self, plan: QueryPlan[T], *, small_catalog: bool) -> T:
        """Run a question to its end; `small_catalog` says that no statement can take long."""

    async def close(self) -> None:
        """Give back what it holds."""


def make_plan_executor(engine: Engine, threads: SessionThreads) -> PlanExecutor:
    """Make the reader for the database of an engine; it connects when it is first asked."""
    if engine.dialect.name == "sqlite":
        return SqliteExecutor(engine, threads)
    from app.db.postgres_executor import PostgresExecutor  # noqa: PLC0415  # only its users need its driver

    return PostgresExecutor(engine)


class SqliteExecutor:
    """Reads SQLite: short statements in the event loop, others in threads, each on connections that cannot write."""

    def __init__(self, engine: Engine, threads: SessionThreads) -> None:
        self._engine, self._threads = engine, threads
        self._loop_connection: sqlite3.Connection | None = None
        self.query_count = 0

    async def run(self, plan: QueryPlan[T], *, small_catalog: bool) -> T:
        """Run a question; a statement that is short, or asked of a small catalog, does not leave the event loop."""
        self.query_count += 1
        try:
            bound = next(plan)
            while True:
                compiled = bound.statement.compiled_for("sqlite")
                parameters = {**compiled.constants, **bound.parameters}
                if small_catalog or bound.statement.short:
                    rows = self._read(compiled, parameters)
                else:
                    rows = await self._threads.run(_fetch, compiled, parameters)
                bound = plan.send(convert_rows(rows, compiled))
        except StopIteration as end:
            result: T = end.value
            return result

    async def close(self) -> None:
        """Close the loop's connection."""
        if self._loop_connection is not None:
            self._loop_connection.close()
            self._loop_connection = None

    def _read(self, compiled: CompiledStatement, parameters: dict[str, Any]) -> list[Any]:
        try:
            return self._connection().execute(compiled.sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise OperationalError(compiled.sql, None, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._loop_connection is None:
            where, how = self._engine.dialect.create_connect_args(self._engine.url)
            more = {"check_same_thread": False, "isolation_level": None, "cached_statements": 128}
            self._loop_connection = cast("sqlite3.Connection", self._engine.dialect.connect(*where, **{**how, **more}))
            for pragma in ("busy_timeout = 10000", "query_only = on", "mmap_size = 1073741824", "cache_size = -16384"):
                self._loop_connection.execute(f"pragma {pragma}")
        return self._loop_connection


def _fetch(session: Session, compiled: CompiledStatement, parameters: dict[str, Any]) -> list[Any]:
    return [tuple(row) for row in session.connection().exec_driver_sql(compiled.sql, parameters)]
