"""Streams the rows of one statement in blocks, on a connection of its own."""

import sqlite3
from collections.abc import Iterator
from threading import Lock

from sqlalchemy import Connection, CursorResult, Engine
from sqlalchemy.exc import OperationalError

from app.db.executors import Interruptible
from app.db.statements import BoundStatement, Row, Rows, convert_rows

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
