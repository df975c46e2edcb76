"""Readers: run questions for a server that must not wait. What is short runs on the event loop, the rest beside it."""

import sqlite3
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError
from sqlmodel import Session

from app.db.statements import Compiled, Question, typed
from app.db.threads import ReadingThreads

T = TypeVar("T")


class Reader(Protocol):
    """Runs questions on the driver of a database; `asked` counts them."""

    asked: int

    async def run(self, question: Question[T], *, brief: bool) -> T:
        """Run a question to its end; `brief` says that the whole catalog is so small that nothing takes long."""

    async def close(self) -> None:
        """Give back what it holds."""


def make_reader(engine: Engine, threads: ReadingThreads) -> Reader:
    """Make the reader for the database of an engine; it connects when it is first asked."""
    if engine.dialect.name == "sqlite":
        return SqliteReader(engine, threads)
    from app.db.postgres_executor import PostgresReader  # noqa: PLC0415  # only its users need its driver

    return PostgresReader(engine)


class SqliteReader:
    """Reads SQLite: short statements in the event loop, others in threads, each on connections that cannot write."""

    def __init__(self, engine: Engine, threads: ReadingThreads) -> None:
        self._engine, self._threads = engine, threads
        self._here: sqlite3.Connection | None = None
        self.asked = 0

    async def run(self, question: Question[T], *, brief: bool) -> T:
        """Run a question; a statement that is short, or asked of a small catalog, does not leave the event loop."""
        self.asked += 1
        try:
            asked = next(question)
            while True:
                compiled = asked.statement.on("sqlite")
                parameters = {**compiled.constants, **asked.parameters}
                if brief or asked.statement.short:
                    rows = self._read(compiled, parameters)
                else:
                    rows = await self._threads.run(_fetch, compiled, parameters)
                asked = question.send(typed(rows, compiled))
        except StopIteration as end:
            result: T = end.value
            return result

    async def close(self) -> None:
        """Close the loop's connection."""
        if self._here is not None:
            self._here.close()
            self._here = None

    def _read(self, compiled: Compiled, parameters: dict[str, Any]) -> list[Any]:
        try:
            return self._connection().execute(compiled.sql, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise OperationalError(compiled.sql, None, error) from error

    def _connection(self) -> sqlite3.Connection:
        if self._here is None:
            where, how = self._engine.dialect.create_connect_args(self._engine.url)
            more = {"check_same_thread": False, "isolation_level": None, "cached_statements": 128}
            self._here = cast("sqlite3.Connection", self._engine.dialect.connect(*where, **{**how, **more}))
            for pragma in ("busy_timeout = 10000", "query_only = on", "mmap_size = 1073741824", "cache_size = -16384"):
                self._here.execute(f"pragma {pragma}")
        return self._here


def _fetch(session: Session, compiled: Compiled, parameters: dict[str, Any]) -> list[Any]:
    return [tuple(row) for row in session.connection().exec_driver_sql(compiled.sql, parameters)]
