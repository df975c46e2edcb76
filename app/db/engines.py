"""Engines and sessions: knows a database URL, and nothing of sizes."""

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
"""So many connections of a pool are kept; threads that read are no more than these (`app.db.executors`)."""


def make_engine(url: str, *, pooled: bool = True) -> Engine:
    """Make the engine for an SQLite or PostgreSQL URL (`postgresql://` means psycopg 3).

    Without a pool every connection is opened when it is needed and closed after: for what holds one for long.
    """
    parsed = make_url(url)
    if parsed.drivername in {"postgres", "postgresql"}:
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ArgumentError(f"{parsed.get_backend_name()} is not a database that the catalog can live in")
    pool: dict[str, Any] = {"pool_size": POOL_SIZE} if pooled else {"poolclass": NullPool}
    if parsed.get_backend_name() == "postgresql":
        return create_engine(parsed, pool_pre_ping=True, **pool)
    engine = create_engine(parsed, connect_args={"check_same_thread": False, "cached_statements": 32}, **pool)
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    """Enforce foreign keys, let readers go on while an ingest writes, map the file into memory; add our functions."""
    ours = cast("sqlite3.Connection", connection)
    functions.register_json_text(ours)
    functions.register_exact_ratio(ours)
    cursor = connection.cursor()
    for pragma in ("foreign_keys = on", "journal_mode = wal", "busy_timeout = 10000", "mmap_size = 268435456"):
        cursor.execute(f"pragma {pragma}")
    cursor.close()


def analyze(session: AnySession) -> None:
    """Let the database look at what the tables hold, so that it chooses its indexes well; a sample is enough."""
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("pragma analysis_limit = 1000")
    connection.exec_driver_sql("analyze")


@contextmanager
def read_session(engine: Engine) -> Iterator[Session]:
    """A session for questions: nothing is committed."""
    with Session(engine) as session:
        yield session


@contextmanager
def write_session(engine: Engine, *, commit: bool = True) -> Iterator[Session]:
    """A session whose work is committed as a whole at the end, or not at all; with `keep` false never."""
    with Session(engine) as session, session.begin() as transaction:
        yield session
        if not commit:
            transaction.rollback()


_NO_TABLE = "42P01"
"""What PostgreSQL says of a table that is not there (SQLSTATE)."""

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
"""What drivers say, in small letters (a pattern), and what that means; the first that is found counts."""


def has_no_tables(error: DBAPIError) -> bool:
    """Whether the database answers, but has no tables of ours."""
    said = str(error.orig).lower()
    return getattr(error.orig, "sqlstate", None) == _NO_TABLE or said.startswith("no such table")


def outage_cause(error: DBAPIError) -> str | None:
    """Why the database cannot be asked; None where it can, and the question is what it does not take."""
    said = str(error.orig).lower()
    cause = next((meaning for words, meaning in _CAUSES if re.search(words, said)), None)
    if cause is None and (error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)):
        return "it does not answer as it should"
    return cause


def driver_message(error: DBAPIError) -> str:
    """What the driver says, for who runs the service: it may name a host and a user, never a password."""
    return str(error.orig).strip().partition("\n")[0]
