"""Runs query plans for a server without blocking it: short statements on the event loop, others in threads."""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from app.db import functions
from app.db.engines import read_session
from app.db.statements import CompiledStatement, QueryPlan, Rows, convert_rows, fetch_rows

P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 4
"""How many queries run in threads at once. With one thread each for revisions, for computing and for counting these are
fewer than the pool's connections (`app.db.engines`): a running query never waits for a connection, and one that waits
for a thread holds nothing."""

MAX_WAITING = 256
"""How many queries may wait for threads: with the slowest ones each would wait minutes, and its client is gone."""


class QueueFull(Exception):
    """Too many queries wait for a thread."""


class SessionThreads:
    """Runs functions that need a session, each in one thread with a session of its own."""

    def __init__(self, engine: Engine, max_threads: int = MAX_READERS, *, name: str = "reading") -> None:
        self._engine, self._most, self._unfinished = engine, max_threads + MAX_WAITING, 0
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix=name)

    async def run(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a session as soon as a thread is free; return or raise what it does.

        Raises QueueFull at once where MAX_WAITING others wait already.
        """
        if self._unfinished >= self._most:
            raise QueueFull
        self._unfinished += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(self._with_session, work, *args, **more))
        finally:
            self._unfinished -= 1

    def close(self) -> None:
        """Stop the threads; work that has not started is cancelled."""
        self._threads.shutdown(cancel_futures=True)

    def _with_session(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        with read_session(self._engine) as session:
            return work(session, *args, **more)


class PlanExecutor(Protocol):
    """Runs query plans on a database driver; `query_count` counts them."""

    query_count: int

    async def run(self, plan: QueryPlan[T], *, small_catalog: bool) -> T:
        """Run a plan to its result; in a `small_catalog` no statement takes long."""

    async def close(self) -> None:
        """Close connections."""


def make_plan_executor(engine: Engine, threads: SessionThreads) -> PlanExecutor:
    """Return the executor for an engine's database; it connects at the first query."""
    if engine.dialect.name == "sqlite":
        return SqliteExecutor(engine, threads)
    from app.db.postgres_executor import PostgresExecutor  # noqa: PLC0415  # its driver is loaded only if it is used

    return PostgresExecutor(engine)


class SqliteExecutor:
    """Runs plans on SQLite: short statements on the event loop, others in threads; read-only."""

    def __init__(self, engine: Engine, threads: SessionThreads) -> None:
        self._engine, self._threads = engine, threads
        self._loop_connection: sqlite3.Connection | None = None
        self.query_count = 0

    async def run(self, plan: QueryPlan[T], *, small_catalog: bool) -> T:
        """Run a plan; statements that are short, or read a small catalog, run on the event loop."""
        self.query_count += 1
        try:
            bound = next(plan)
            while True:
                compiled = bound.statement.compiled_for("sqlite")
                parameters = {**compiled.constants, **bound.parameters}
                rows: Rows
                if small_catalog or bound.statement.short:
                    rows = self._read(compiled, parameters)
                else:
                    rows = await self._threads.run(_fetch, compiled, parameters)
                bound = plan.send(convert_rows(rows, compiled))
        except StopIteration as end:
            result: T = end.value
            return result

    async def close(self) -> None:
        """Close the event loop's connection."""
        if self._loop_connection is not None:
            self._loop_connection.close()
            self._loop_connection = None

    def _read(self, compiled: CompiledStatement, parameters: dict[str, Any]) -> Rows:
        try:
            return self._connection().execute(compiled.sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise OperationalError(compiled.sql, None, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._loop_connection is None:
            args, kwargs = self._engine.dialect.create_connect_args(self._engine.url)
            options = {"check_same_thread": False, "isolation_level": None, "cached_statements": 128}
            self._loop_connection = cast(
                "sqlite3.Connection", self._engine.dialect.connect(*args, **{**kwargs, **options})
            )
            functions.register(self._loop_connection)
            for pragma in ("busy_timeout = 10000", "query_only = on", "mmap_size = 1073741824", "cache_size = -16384"):
                self._loop_connection.execute(f"pragma {pragma}")
        return self._loop_connection


def _fetch(session: Session, compiled: CompiledStatement, parameters: dict[str, Any]) -> Rows:
    return fetch_rows(session.connection(), compiled, parameters)
