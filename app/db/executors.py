"""Runs query plans for a server without blocking it: short statements on the event loop, others in threads."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from app.db import functions
from app.db.engines import is_damaged, read_session
from app.db.guards import Guard, wait_for_ever
from app.db.interrupts import Interruptible
from app.db.sqlite_files import DatabaseFile, FileVersion
from app.db.statements import CompiledStatement, MakePlan, Rows, convert_rows, fetch_rows
from app.telemetry import tracing

P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 4
"""How many queries run in threads at once. With one thread each for revisions, computing, counting and loading these
are fewer than the pool's connections (`app.db.engines`): a running query never waits for a connection, and one that
waits for a thread holds nothing."""

MAX_WAITING = 256
"""How many queries may wait for threads: with the slowest ones each would wait minutes, and its client is gone."""


class QueueFull(Exception):
    """Too many queries wait for a thread."""


class SessionThreads:
    """Runs functions that read with a session, each in one thread with a session of its own; `unfinished` run or wait.

    A function whose connection breaks is called once more, on a new connection. One that `guard` gives up goes on in
    its thread until the database answers, or the connection ends.
    """

    def __init__(
        self,
        engine: Engine,
        max_threads: int = MAX_READERS,
        *,
        name: str = "reading",
        guard: Guard = wait_for_ever,
    ) -> None:
        self.name, self.max_threads, self.unfinished = name, max_threads, 0
        self._engine, self._most, self._guard = engine, max_threads + MAX_WAITING, guard
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix=name)

    async def run(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a session as soon as a thread is free; return or raise what it does.

        Raises QueueFull at once where MAX_WAITING others wait already. A statement of a cancelled call is interrupted.
        """
        if self.unfinished >= self._most:
            raise QueueFull
        self.unfinished += 1
        job = Interruptible()
        try:
            loop = asyncio.get_running_loop()
            with_session = tracing.within_current(partial(self._with_session, job, work, *args, **more))
            return await self._guard(loop.run_in_executor(self._threads, with_session))
        except asyncio.CancelledError:
            job.interrupt()
            raise
        finally:
            self.unfinished -= 1

    def close(self) -> None:
        """Stop the threads; work that has not started is cancelled."""
        self._threads.shutdown(cancel_futures=True)

    def _with_session(
        self, job: Interruptible, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs
    ) -> T:
        try:
            with tracing.span(self.name), read_session(self._engine) as session, job.running(session):
                return work(session, *args, **more)
        except DBAPIError as error:
            if not error.connection_invalidated:
                if is_damaged(error):
                    self._engine.dispose()  # a connection keeps pages of the file, which may be damaged
                raise
        with tracing.span(self.name), read_session(self._engine) as session, job.running(session):
            return work(session, *args, **more)


class PlanExecutor(Protocol):
    """Runs query plans on a database driver; `query_count` counts them."""

    query_count: int

    @property
    def connections(self) -> tuple[int, int, int]:
        """How many connections are in use and are open, and how many queries wait for one."""

    async def run(self, make_plan: MakePlan[T], *, small_catalog: bool) -> T:
        """Run a plan to its result; in a `small_catalog` no statement takes long."""

    def reconnect(self) -> None:
        """Have later queries open new connections."""

    async def close(self) -> None:
        """Close connections."""


def make_plan_executor(engine: Engine, threads: SessionThreads, guard: Guard = wait_for_ever) -> PlanExecutor:
    """Return the executor for an engine's database; it connects at the first query."""
    if engine.dialect.name == "sqlite":
        return SqliteExecutor(engine, threads)
    from app.db.postgres_executor import PostgresExecutor  # noqa: PLC0415  # its driver is loaded only if it is used

    return PostgresExecutor(engine, guard)


class SqliteExecutor:
    """Runs plans on SQLite: short statements on the event loop, others in threads; read-only."""

    def __init__(self, engine: Engine, threads: SessionThreads) -> None:
        self._engine, self._threads = engine, threads
        self._file = DatabaseFile.of(engine.url)
        self._loop_connection: sqlite3.Connection | None = None
        self._opened: FileVersion | None = None
        self._check_at = 0.0
        self.query_count = 0

    async def run(self, make_plan: MakePlan[T], *, small_catalog: bool) -> T:
        """Run a plan; statements that are short, or read a small catalog, run on the event loop."""
        self.query_count += 1
        plan = make_plan()
        try:
            bound = next(plan)
            while True:
                compiled = bound.statement.compiled_for("sqlite")
                parameters = {**compiled.constants, **bound.parameters}
                rows: Rows | None = None
                if small_catalog or bound.statement.short:
                    rows = self._read(compiled, parameters)
                if rows is None:
                    rows = await self._threads.run(_fetch, compiled, parameters)
                bound = plan.send(convert_rows(rows, compiled))
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            plan.close()

    @property
    def connections(self) -> tuple[int, int, int]:
        """The event loop's connection, which no query waits for; those of threads are the engine's."""
        return 0, int(self._loop_connection is not None), 0

    def reconnect(self) -> None:
        """Close the event loop's connection; a query opens a new one."""
        if self._loop_connection is not None:
            self._loop_connection.close()
            self._loop_connection = None

    async def close(self) -> None:
        """Close the event loop's connection."""
        self.reconnect()

    def _read(self, compiled: CompiledStatement, parameters: dict[str, Any]) -> Rows | None:
        """Return the rows; None where the file is locked, which the event loop does not wait for."""
        try:
            with tracing.statement_span("sqlite", compiled.sql):
                return self._connection().execute(compiled.sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) in _LOCKED:
                return None
            self.reconnect()  # a connection keeps pages of the file, which may be damaged
            raise OperationalError(compiled.sql, None, error) from error

    def _connection(self) -> sqlite3.Connection:
        now = time.monotonic()
        if self._loop_connection is not None and now < self._check_at:
            return self._loop_connection
        current = self._file.check() if self._file is not None else None
        if current is not None and self._opened is not None and self._opened.is_replaced_by(current):
            self.reconnect()
        if self._loop_connection is None:
            self._loop_connection, self._opened = self._connect(), current
        self._check_at = now + FILE_CHECK_SECONDS
        return self._loop_connection

    def _connect(self) -> sqlite3.Connection:
        args, kwargs = self._engine.dialect.create_connect_args(self._engine.url)
        options = {"check_same_thread": False, "isolation_level": None, "cached_statements": 128}
        connection = cast("sqlite3.Connection", self._engine.dialect.connect(*args, **{**kwargs, **options}))
        functions.register(connection)
        for pragma in ("busy_timeout = 0", "query_only = on"):
            connection.execute(f"pragma {pragma}")
        return connection


FILE_CHECK_SECONDS = 0.05
"""How long the event loop's connection is used before the file is checked again."""
_LOCKED = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_BUSY_RECOVERY, sqlite3.SQLITE_BUSY_SNAPSHOT, sqlite3.SQLITE_LOCKED}


def _fetch(session: Session, compiled: CompiledStatement, parameters: dict[str, Any]) -> Rows:
    return fetch_rows(session.connection(), compiled, parameters)
