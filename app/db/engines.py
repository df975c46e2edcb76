"""Engines and sessions for SQLite and PostgreSQL, and why a database cannot be reached."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from sqlalchemy import Engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session as AnySession
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlmodel import Session, create_engine

from app.db import functions

POOL_SIZE = 8
"""The size of a connection pool; there are fewer reading threads (`app.db.executors`), so none waits."""


def make_engine(url: str, *, pooled: bool = True) -> Engine:
    """Return the engine for an SQLite or PostgreSQL URL (`postgresql://` means psycopg 3).

    Without a pool each connection is opened on demand and closed afterwards: for work that holds one for long.
    """
    parsed = make_url(url)
    if parsed.drivername in {"postgres", "postgresql"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ArgumentError(f"{parsed.get_backend_name()} is not a supported database; use sqlite or postgresql")
    pool: dict[str, Any] = {"pool_size": POOL_SIZE} if pooled else {"poolclass": NullPool}
    if parsed.get_backend_name() == "postgresql":
        return create_engine(parsed, pool_pre_ping=True, **pool)
    engine = create_engine(parsed, connect_args={"check_same_thread": False, "cached_statements": 32}, **pool)
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    """Set up a connection: foreign keys, WAL so that readers continue during an ingest, memory map, SQL functions."""
    functions.register(cast("sqlite3.Connection", connection))
    cursor = connection.cursor()
    for pragma in ("foreign_keys = on", "journal_mode = wal", "busy_timeout = 10000", "mmap_size = 268435456"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def analyze(session: AnySession) -> None:
    """Update the planner's statistics, so that it chooses good indexes; on SQLite from a sample."""
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("pragma analysis_limit = 1000")
    connection.exec_driver_sql("analyze")


@contextmanager
def read_session(engine: Engine) -> Iterator[Session]:
    """Open a session for reading; nothing is committed."""
    with Session(engine) as session:
        yield session


_NO_TABLE = "42P01"
"""PostgreSQL's SQLSTATE for a missing table."""

_CAUSES = (
    ("connection refused", "connection refused"),
    ("no such file or directory", "nothing listens at its socket"),
    ("name or service not known", "the name of its host is not known"),
    ("failed to resolve host", "the name of its host is not known"),
    ("authentication failed", "it refuses the user or the password"),
    ("no password supplied", "it wants a password"),
    ("too many clients", "it has no connection left"),
    ("remaining connection slots", "it has no connection left"),
    ("couldn't get a connection", "it gives no connection in time"),
    ("timeout", "it does not answer in time"),
    ("timed out", "it does not answer in time"),
    ("starting up", "it is starting"),
    ("shutting down", "it is shutting down"),
    ("terminating connection", "it closed the connection"),
    ("server closed the connection", "it closed the connection"),
    ("connection is closed", "it closed the connection"),
    ("connection is lost", "it closed the connection"),
    ('database ".*" does not exist', "there is no such database"),
    ("permission denied", "its user may not read the catalog"),
    ("unable to open database file", "its file cannot be opened"),
    ("database is locked", "another program has locked its file"),
    ("malformed", "its file is damaged"),
    ("not a database", "its file is no database"),
    ("disk i/o error", "its file cannot be read"),
)
"""Patterns for drivers' messages in lowercase, and what they mean; the first match is used."""


def has_no_tables(error: DBAPIError) -> bool:
    """Check whether an error means that the database has none of our tables."""
    message = str(error.orig).lower()
    return getattr(error.orig, "sqlstate", None) == _NO_TABLE or message.startswith("no such table")


def outage_cause(error: DBAPIError) -> str | None:
    """Return why the database cannot be reached; None if it can, and rejected the statement."""
    message = str(error.orig).lower()
    cause = next((meaning for pattern, meaning in _CAUSES if re.search(pattern, message)), None)
    if cause is None and (error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)):
        return "it does not answer as it should"
    return cause


def driver_message(error: DBAPIError) -> str:
    """Return the first line of the driver's message, for the log: it may name a host and a user, never a password."""
    return str(error.orig).strip().partition("\n")[0]
