"""Streams: the rows of one statement, some at a time, however many there are, each on a connection of its own."""

from collections.abc import Iterator
from contextlib import suppress
from threading import Lock

from sqlalchemy import Connection, CursorResult, Engine

from app.db.statements import Ask, Row, Rows, typed

ROWS = 1000
"""How many rows are taken at once: a block of them is some hundred kilobytes."""
_LAST_WORDS_SECONDS = 5.0


class Stopped(Exception):
    """Rows were asked of a stream that somebody stopped before its end."""


class Stream:
    """The rows of one statement; it may be stopped at any moment, from another thread, too.

    While it is not at its end it holds a connection (give it an engine without a pool), and stands in `running`.
    """

    def __init__(self, engine: Engine, asked: Ask, running: set["Stream"] | None = None) -> None:
        self._engine, self._asked = engine, asked
        self._compiled = asked.statement.on(engine.dialect.name)
        self._running = running if running is not None else set()
        self._running.add(self)
        self._connection: Connection | None = None
        self._found: CursorResult[Row] | None = None
        self._taking, self._stopped, self._ended = Lock(), False, False

    def more(self) -> Rows:
        """Take the next rows; none at the end. Raises Stopped, or what the database says."""
        try:
            with self._taking:
                rows = self._fetched()
        except BaseException:
            self._stopped = True
            raise
        finally:
            if self._stopped or self._ended:
                self.stop()
        return typed(rows, self._compiled)

    def blocks(self) -> Iterator[Rows]:
        """Take all rows, some at a time."""
        try:
            while rows := self.more():
                yield rows
        finally:
            self.stop()

    def stop(self) -> None:
        """Give the connection back; what runs in another thread is interrupted, and that thread then gives it back."""
        self._stopped = True
        if not self._taking.acquire(blocking=False):
            self._interrupt()
            return
        try:
            if self._found is not None:
                self._found.close()
            if self._connection is not None:
                self._connection.close()
            self._found = self._connection = None
            self._running.discard(self)
        finally:
            self._taking.release()

    def _fetched(self) -> Rows:
        if self._ended:
            return []
        if self._stopped:
            raise Stopped
        if self._found is None:
            self._connection = self._engine.connect().execution_options(stream_results=True, max_row_buffer=ROWS)
            parameters = {**self._compiled.constants, **self._asked.parameters}
            self._found = self._connection.exec_driver_sql(self._compiled.sql, parameters)
        rows = [tuple(row) for row in self._found.fetchmany(ROWS)]
        self._ended = not rows
        return rows

    def _interrupt(self) -> None:
        connection = self._connection
        if connection is None or connection.closed:
            return
        driver = connection.connection.driver_connection
        with suppress(self._engine.dialect.loaded_dbapi.Error):  # it may have come to its end meanwhile
            if self._engine.dialect.name == "sqlite":
                driver.interrupt()  # type: ignore[union-attr]  # it is there as long as the connection is open
            else:
                driver.cancel_safe(timeout=_LAST_WORDS_SECONDS)  # type: ignore[union-attr]
