"""Reads PostgreSQL by its driver, psycopg, on connections of a pool of SQLAlchemy."""

from pathlib import Path
from typing import Any, Literal

import psycopg
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool

from app.db.engines import shown_url
from app.db.errors import DatabaseError, to_database_error
from app.db.statements import DriverReader


class PostgresReader(DriverReader):
    """Reads PostgreSQL on a connection of its own, in a fifth of the time that a session of SQLAlchemy takes."""

    kind, error_type = "postgresql", psycopg.Error

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.driver: Any = connection.connection.driver_connection

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()

    def open_cursor(self) -> Any:
        """Return a cursor of the server, which needs a transaction."""
        return self.driver.cursor("rows")

    def to_error(self, error: Exception, sql: str) -> DatabaseError:
        """Return what is raised for an error of the driver, and give up the connection where it is broken."""
        # A migration that changes the type of a column leaves outdated plans in every open connection.
        has_outdated_plan = "cached plan must not change result type" in str(error)
        dialect: Any = self._connection.dialect
        is_lost = has_outdated_plan or dialect.is_disconnect(error, self.driver, None)
        if is_lost:
            self._connection.invalidate(error)
        return DatabaseError(error, sql, connection_invalidated=is_lost)


class PostgresDatabase:
    """A PostgreSQL database to read, see `app.db.databases.Database`."""

    kind: Literal["sqlite", "postgresql"] = "postgresql"
    file: Path | None = None
    path: Path | None = None

    def __init__(self, engine: Engine) -> None:
        self.engine, self.shown_url = engine, shown_url(engine.url)
        self.url = engine.url.render_as_string(hide_password=False)

    @property
    def connections(self) -> tuple[int, int]:
        """How many connections are in use, and how many idle."""
        pool = self.engine.pool
        return (pool.checkedout(), pool.checkedin()) if isinstance(pool, QueuePool) else (0, 0)

    def connect(self) -> PostgresReader:
        """Return a reader on a connection of the pool; raises DatabaseError."""
        try:
            return PostgresReader(self.engine.connect())
        except DBAPIError as error:
            raise to_database_error(error) or error from error

    def dispose(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        self.engine.dispose()
