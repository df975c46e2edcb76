"""Runs questions to the database for a server without blocking it: in threads, or briefly on the event loop.

Also here: a stream of the rows of a statement in blocks, on a connection of its own.
"""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Connection, CursorResult, Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from app.cancellation import cancelled_by
from app.db import functions
from app.db.engines import DatabaseFile, FileVersion, is_damaged
from app.db.statements import BoundStatement, DriverReader, Row, Rows, TakesLong, convert_rows
from app.telemetry import tracing

P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 4
"""How many questions run in threads at once. With those of computing and of tools for agents these are fewer than the
pool's connections (`app.db.engines`): a running question never waits for a connection, and one that waits for a thread
holds nothing."""

MAX_WAITING = 256
"""How many queries may wait for threads: with the slowest ones each would wait minutes, and its client is gone."""


class QueueFull(Exception):
    """Too many queries wait for a thread."""


class Guard(Protocol):
    """Waits for an answer of the database; may raise instead, when the database does not answer at all."""

    async def __call__(self, answer: Awaitable[T], /) -> T:
        """Return what is awaited."""


async def wait_for_ever(answer: Awaitable[T], /) -> T:
    """Wait for an answer however long it takes: the guard of programs that have nothing else to do."""
    return await answer


CANCEL_SECONDS = 5.0
"""How long PostgreSQL may take to be told; it is told over a connection of its own."""


class Interruptible:
    """Work that can be interrupted: a running statement at once, Python code at its next `stop_if_cancelled`."""

    def __init__(self) -> None:
        self.interrupted = Event()
        self._lock = Lock()
        self._driver: Any = None

    @contextmanager
    def running(self, driver: Any) -> Iterator[None]:
        """Let statements on a connection of a driver be interrupted in this block."""
        with self._lock:
            self._driver = driver
        try:
            yield
        finally:
            with self._lock:  # the connection may be another's from now on
                self._driver = None

    def interrupt(self) -> None:
        """Interrupt the work; does not wait for its statement to end."""
        self.interrupted.set()
        Thread(target=self._interrupt, name="interrupt", daemon=True).start()

    def _interrupt(self) -> None:
        with self._lock, suppress(Exception):  # it may have ended, or its connection may be gone
            if self._driver is None:
                return
            if hasattr(self._driver, "cancel_safe"):
                self._driver.cancel_safe(timeout=CANCEL_SECONDS)
            else:
                self._driver.interrupt()


class SessionThreads:
    """Runs functions that read, each in one thread on a connection of its own; `unfinished` run or wait.

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

        Raises QueueFull at once where MAX_WAITING others wait already. The work of a cancelled call is interrupted.
        """
        return await self.read(lambda reader: work(reader.session, *args, **more))

    async def read(self, work: Callable[[DriverReader], T]) -> T:
        """Call a function that reads by the driver, otherwise as `run` does."""
        job = Interruptible()
        return await self._wait(job, partial(self._with_connection, job, work), self._guard)

    async def compute(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function without a session, otherwise as `run` does."""
        return await self._wait(Interruptible(), partial(work, *args, **more), wait_for_ever)

    async def _wait(self, job: Interruptible, work: Callable[[], T], guard: Guard) -> T:
        if self.unfinished >= self._most:
            raise QueueFull

        def run() -> T:
            with cancelled_by(job.interrupted):
                return work()

        self.unfinished += 1
        try:
            loop = asyncio.get_running_loop()
            return await guard(loop.run_in_executor(self._threads, tracing.within_current(run)))
        except asyncio.CancelledError:
            job.interrupt()
            raise
        finally:
            self.unfinished -= 1

    def close(self) -> None:
        """Stop the threads; work that has not started is cancelled."""
        self._threads.shutdown(cancel_futures=True)

    def _with_connection(self, job: Interruptible, work: Callable[[DriverReader], T], *, again: bool = True) -> T:
        try:
            with tracing.span(self.name), self._engine.connect() as connection:
                reader = DriverReader(connection)
                with job.running(reader.driver):
                    return work(reader)
        except DBAPIError as error:
            if again and error.connection_invalidated:
                return self._with_connection(job, work, again=False)
            if is_damaged(error):
                self._engine.dispose()  # a connection keeps pages of the file, which may be damaged
            raise


class LoopConnection:
    """Reads SQLite on the event loop, on a connection of its own.

    Raises TakesLong for a statement that is to be run in a thread: one whose cost grows with the catalog, unless that
    is `small_catalog`, or a long one in any case.
    """

    def __init__(self, engine: Engine) -> None:
        self.small_catalog = False
        self._engine = engine
        self._file = DatabaseFile.of(engine.url)
        self._opened_connection: sqlite3.Connection | None = None
        self._opened: FileVersion | None = None
        self._check_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._opened_connection is not None

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement; raises TakesLong."""
        if not (bound.statement.short or self.small_catalog):
            raise TakesLong
        compiled = bound.statement.compiled_for("sqlite")
        parameters = {**compiled.constants, **bound.parameters}
        try:
            with tracing.statement_span("sqlite", compiled.sql):
                rows = self._connection().execute(compiled.sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", None) in _LOCKED:
                raise TakesLong from None
            self.close()  # a connection keeps pages of the file, which may be damaged
            raise OperationalError(compiled.sql, None, error) from error
        return convert_rows(rows, compiled)

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        if self._opened_connection is not None:
            self._opened_connection.close()
            self._opened_connection = None

    def _connection(self) -> sqlite3.Connection:
        now = time.monotonic()
        if self._opened_connection is not None and now < self._check_at:
            return self._opened_connection
        current = self._file.check() if self._file is not None else None
        if current is not None and self._opened is not None and self._opened.is_replaced_by(current):
            self.close()
        if self._opened_connection is None:
            self._opened_connection, self._opened = self._connect(), current
        self._check_at = now + FILE_CHECK_SECONDS
        return self._opened_connection

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


# Streams

BLOCK_ROWS = 1000
"""How many rows are fetched at once; a block takes some hundred kilobytes."""


class StreamStopped(Exception):
    """Rows were fetched from a stream that had been stopped before its end."""


class Stream:
    """The rows of one statement; may be stopped at any time, also from another thread.

    Until its end it holds a connection, so the engine should have no pool, and is a member of `running`.
    """

    def __init__(self, engine: Engine, bound: BoundStatement, running: set["Stream"] | None = None) -> None:
        self._engine, self._bound = engine, bound
        self._compiled = bound.statement.compiled_for(engine.dialect.name)
        self._running = running if running is not None else set()
        self._running.add(self)
        self._connection: Connection | None = None
        self._cursor: CursorResult[Row] | None = None
        self._job, self._fetching, self._stopped, self._ended = Interruptible(), Lock(), False, False

    def fetch_block(self) -> Rows:
        """Return the next rows, none at the end; raises StreamStopped, or the database's error."""
        try:
            with self._fetching:
                rows = self._fetch()
        except BaseException:
            self._stopped = True
            raise
        finally:
            if self._stopped or self._ended:
                self.stop()
        return convert_rows(rows, self._compiled)

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks."""
        try:
            while rows := self.fetch_block():
                yield rows
        finally:
            self.stop()

    def stop(self) -> None:
        """Close the connection; a fetch in another thread is interrupted, and that thread then closes it."""
        self._stopped = True
        if not self._fetching.acquire(blocking=False):
            self._job.interrupt()
            return
        try:
            if self._cursor is not None:
                self._cursor.close()
            if self._connection is not None:
                self._connection.close()
            self._cursor = self._connection = None
            self._running.discard(self)
        finally:
            self._fetching.release()

    def _fetch(self) -> Rows:
        if self._ended:
            return []
        if self._stopped:
            raise StreamStopped
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(stream_results=True, max_row_buffer=BLOCK_ROWS)
        with self._job.running(self._connection.connection.driver_connection):
            if self._cursor is None:
                parameters = {**self._compiled.constants, **self._bound.parameters}
                self._cursor = self._connection.exec_driver_sql(self._compiled.sql, parameters)
            rows = self._fetch_many(self._cursor)
        self._ended = not rows
        return rows

    def _fetch_many(self, cursor: CursorResult[Row]) -> Rows:
        if self._engine.dialect.name != "sqlite":
            return [tuple(row) for row in cursor.fetchmany(BLOCK_ROWS)]
        try:
            # From the driver itself, which takes half the time: SQLAlchemy buffers no rows of SQLite.
            rows: Rows = cursor.cursor.fetchmany(BLOCK_ROWS)
        except sqlite3.DatabaseError as error:
            raise OperationalError(self._compiled.sql, None, error) from error
        return rows
