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
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from app.cancellation import cancelled_by
from app.db.databases import Database
from app.db.errors import DatabaseError, is_damaged
from app.db.sqlite import SqliteDatabase, SqliteReader
from app.db.statements import BoundStatement, DriverReader, QueueFull, Rows, TakesLong, convert_rows
from app.telemetry import tracing

P = ParamSpec("P")
T = TypeVar("T")

MAX_READERS = 4
"""How many questions run in threads at once. With those of computing and of tools for agents these are fewer than the
connections of a pool (`app.db.databases`): a running question never waits for one, and one that waits for a thread
holds nothing."""

MAX_WAITING = 256
"""How many queries may wait for threads: with the slowest ones each would wait minutes, and its client is gone."""


class Guard(Protocol):
    """Waits for an answer of the database; may raise instead, when the database does not answer at all."""

    async def __call__(self, answer: Awaitable[T], /) -> T:
        """Return what is awaited."""


async def wait_indefinitely(answer: Awaitable[T], /) -> T:
    """Wait for an answer however long it takes: the guard of programs that have nothing else to do."""
    return await answer


CANCEL_SECONDS = 5.0
"""How long PostgreSQL may take to accept a request to cancel, which has a connection of its own."""


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


class ReadingThreads:
    """Runs functions that read, each in one thread on a connection of its own; `unfinished` run or wait.

    A function whose connection breaks is called once more, on a new connection. One that `guard` gives up goes on in
    its thread until the database answers, or the connection ends.
    """

    def __init__(
        self,
        database: Database,
        max_threads: int = MAX_READERS,
        *,
        name: str = "reading",
        guard: Guard = wait_indefinitely,
    ) -> None:
        self.name, self.max_threads, self.unfinished = name, max_threads, 0
        self._database, self._most, self._guard = database, max_threads + MAX_WAITING, guard
        self._threads = ThreadPoolExecutor(max_threads, thread_name_prefix=name)

    async def run(self, work: Callable[Concatenate[DriverReader, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a reader as soon as a thread is free; return or raise what it does.

        Raises QueueFull at once where MAX_WAITING others wait already. The work of a cancelled call is interrupted.
        """
        job = Interruptible()
        reading = partial(self._with_connection, job, lambda reader: work(reader, *args, **more))
        return await self._wait(job, reading, self._guard)

    async def compute(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function without a reader, otherwise as `run` does."""
        return await self._wait(Interruptible(), partial(work, *args, **more), wait_indefinitely)

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
            with tracing.span(self.name), self._database.connect() as reader, job.running(reader.driver):
                return work(reader)
        except DatabaseError as error:
            if again and error.connection_invalidated:
                return self._with_connection(job, work, again=False)
            if is_damaged(error):
                self._database.dispose()  # a connection keeps pages of the file, which may be damaged
            raise


class LoopConnection:
    """Reads SQLite on the event loop, on a connection of its own.

    Raises TakesLong for a statement that is to be run in a thread: one whose cost grows with the catalog, unless that
    is `small_catalog`, or a long one in any case.
    """

    def __init__(self, database: SqliteDatabase) -> None:
        self.small_catalog = False
        self._database = database.of_event_loop()
        self._reader: SqliteReader | None = None
        self._check_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return any(self._database.connections)

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement; raises TakesLong."""
        if not (bound.statement.short or self.small_catalog):
            raise TakesLong
        try:
            return self._connected().fetch(bound)
        except DatabaseError as error:
            if getattr(error.orig, "sqlite_errorcode", None) in _LOCKED:
                raise TakesLong from None
            self.close()  # a connection keeps pages of the file, which may be damaged
            raise

    def close(self) -> None:
        """Close the connection; the next statement opens a new one."""
        self._give_back()
        self._database.dispose()

    def _connected(self) -> SqliteReader:
        now = time.monotonic()
        if self._reader is None or now >= self._check_at:
            self._give_back()
            self._reader, self._check_at = self._database.connect(), now + FILE_CHECK_SECONDS
        return self._reader

    def _give_back(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


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

    Until its end it holds a connection, so the database should have no pool, and is a member of `running`.
    """

    def __init__(self, database: Database, bound: BoundStatement, running: set["Stream"] | None = None) -> None:
        self._database, self._bound = database, bound
        self._compiled = bound.statement.compiled_for(database.kind)
        self._running = running if running is not None else set()
        self._running.add(self)
        self._reader: DriverReader | None = None
        self._cursor: Any = None
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
            if self._reader is not None:
                if self._cursor is not None:
                    with suppress(self._reader.error_type):  # of a server that is gone
                        self._cursor.close()
                self._reader.close()
            self._cursor = self._reader = None
            self._running.discard(self)
        finally:
            self._fetching.release()

    def _fetch(self) -> Rows:
        if self._ended:
            return []
        if self._stopped:
            raise StreamStopped
        if self._reader is None:
            self._reader = self._database.connect()
        try:
            with self._job.running(self._reader.driver):
                if self._cursor is None:
                    self._cursor = self._reader.open_cursor()
                    self._cursor.execute(self._compiled.sql, self._bound.parameters)
                    self._compiled.describe(self._cursor.description)
                rows: Rows = self._cursor.fetchmany(BLOCK_ROWS)
        except self._reader.error_type as error:
            raise self._reader.to_error(error, self._compiled.sql) from error
        self._ended = not rows
        return rows
