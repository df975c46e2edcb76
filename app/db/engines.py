"""Engines, sessions and spans of statements for SQLite and PostgreSQL, and why a database cannot be reached."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

from sqlalchemy import URL, Engine, event
from sqlalchemy.engine import Connection, ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DBAPIError, InterfaceError, NoSuchModuleError, OperationalError
from sqlalchemy.orm import Session as AnySession
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlmodel import Session, create_engine

from app.db import functions
from app.db.servers import choice_of, parse_url
from app.db.sqlite_files import IS_NO_FILE, MISSING, DatabaseFile
from app.db.statements import has_outdated_plan
from app.telemetry import tracing

POOL_SIZE = 9
"""The size of a connection pool; there are fewer reading threads (`app.db.executors`), so none waits."""


SERVING_TIMEOUTS = {
    "connect_timeout": 2,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 2_000,
}
"""How long a service waits for PostgreSQL's host, by the names of libpq: seconds, the last one milliseconds.

A statement may take longer; whether the server still answers is found out by another one (`app.http.revision`)."""

_BUSY_MS, _SERVING_BUSY_MS = 10_000, 1_000
"""How long a connection to SQLite waits for a lock. Readers need none while another process writes."""

_SERVING_CACHE_KIB = 512
"""How many pages of SQLite a connection of a service keeps: each thread has one. The system keeps the others anyway:
with SQLite's own 2,000 KiB no question takes less CPU, of 1,000 sizes or of 100,000."""

_PRAGMAS = ("foreign_keys = on", "journal_mode = wal", f"busy_timeout = {_BUSY_MS}")
"""How a connection to SQLite is set up; with WAL readers continue during an ingest.

The file is not mapped into memory: that saves no measurable time, a file that is truncated would end the process
(SIGBUS), and every connection's view of it counts as memory of the worker.
"""
_SERVING_PRAGMAS = ("query_only = on", f"cache_size = -{_SERVING_CACHE_KIB}", f"busy_timeout = {_SERVING_BUSY_MS}")


def make_engine(url: str, *, pooled: bool = True, serving: bool = False, pool_size: int = POOL_SIZE) -> Engine:
    """Return the engine for an SQLite or PostgreSQL URL (`postgresql://` is psycopg 3); raises ArgumentError.

    Without a pool each connection is opened on demand and closed afterwards: for work that holds one for long. An
    engine for `serving` reads only: it opens SQLite read-only, reconnects where the file was replaced, and gives up
    soon on a database that does not answer. Pooled, it asks PostgreSQL without transactions, so that a statement is one
    round trip, and not the ping, BEGIN and ROLLBACK around it: what a broken connection fails is run again anyway.
    """
    parsed = _supported(url)
    pool: dict[str, Any] = {"pool_size": pool_size} if pooled else {"poolclass": NullPool}
    if parsed.get_backend_name() == "postgresql":
        timeouts = {name: value for name, value in SERVING_TIMEOUTS.items() if name not in parsed.query}
        if serving and pooled:  # cursors of the server, which exports have, need a transaction
            pool["isolation_level"] = "AUTOCOMMIT"
        engine = create_engine(parsed, pool_pre_ping=not serving, connect_args=timeouts if serving else {}, **pool)
        event.listen(engine, "handle_error", _replace_outdated_connections)
        choice = choice_of(parsed)
        if choice is not None:
            choice.follow(engine)
        return engine
    file = DatabaseFile.of(parsed) if serving else None
    if file is not None:
        parsed = file.read_only_url(parsed)
    engine = create_engine(parsed, connect_args={"check_same_thread": False, "cached_statements": 32}, **pool)
    pragmas = _PRAGMAS if file is None else _SERVING_PRAGMAS

    @event.listens_for(engine, "connect")
    def set_up(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        functions.register(cast("sqlite3.Connection", connection))
        cursor = connection.cursor()
        for pragma in pragmas:
            cursor.execute(f"pragma {pragma}")
        cursor.close()

    if file is not None:
        file.watch(engine)
    return engine


def _supported(url: str) -> URL:
    """Return a URL of SQLite or PostgreSQL; raises ArgumentError, whose text tells no more of the URL than its scheme.

    Where a URL is malformed, its password may be anywhere in it.
    """
    kind, _, rest = url.partition("://")
    problem = f"{kind}://… is not supported; " if rest and re.fullmatch(r"[A-Za-z][\w+.-]*", kind) else ""
    try:
        parsed = parse_url(url)
        if parsed.drivername in {"postgres", "postgresql"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
        if "@" in (parsed.host or ""):
            problem = "an @ in the user or the password is written %40; "
        elif parsed.get_backend_name() in {"sqlite", "postgresql"}:
            parsed.get_dialect().import_dbapi()
            return parsed
    except ValueError:
        problem = "its port is not a number; "
    except (ArgumentError, NoSuchModuleError, ImportError):
        pass
    hint = f"; write {kind.partition('+')[0]}://…" if problem and "+" in kind else ""
    allowed = "allowed are sqlite:///FILE and postgresql://USER:PASSWORD@HOST:PORT/NAME, without a driver"
    raise ArgumentError(f"{problem}{allowed}{hint}")


def _replace_outdated_connections(context: ExceptionContext) -> None:
    if has_outdated_plan(context.original_exception):
        context.is_disconnect = True


_OWN_TABLES = """select string_agg(quote_ident(relname), ', ') from pg_class
where relkind = 'r' and relnamespace = current_schema()::regnamespace"""


def analyze(session: AnySession) -> None:
    """Update the planner's statistics, so that it chooses good indexes; on SQLite from a sample."""
    connection = session.connection()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("pragma analysis_limit = 1000")
        connection.exec_driver_sql("analyze")
        return
    # Without names, PostgreSQL would analyze its own catalogs, too, which takes it far longer than a small ingest.
    tables = connection.exec_driver_sql(_OWN_TABLES).scalar_one()
    if tables:
        connection.exec_driver_sql(f"analyze {tables}")


@contextmanager
def read_session(engine: Engine) -> Iterator[Session]:
    """Open a session for reading; nothing is committed."""
    with Session(engine) as session:
        yield session


_NO_TABLE = "42P01"
"""PostgreSQL's SQLSTATE for a missing table."""

_CAUSES = (
    (MISSING, "its file is missing"),
    (IS_NO_FILE, "its path leads to no file"),
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
    ("recovery mode", "it is starting after a crash"),
    ("shutting down", "it is shutting down"),
    ("canceling statement", "it cancelled the query"),
    ("terminating connection", "it closed the connection"),
    ("server closed the connection", "it closed the connection"),
    ("connection reset|ssl error|broken pipe|pipeline aborted", "it closed the connection"),
    ("connection is closed", "it closed the connection"),
    ("connection is lost", "it closed the connection"),
    ('database ".*" does not exist', "there is no such database"),
    ("does not accept connections|not currently accepting", "it accepts no connections"),
    ("not permitted to log in", "its user may not log in"),
    ("pg_hba", "it refuses connections of this user or host"),
    ("unable to open database file: permission denied", "its folder may not be read"),
    ("permission denied", "its user may not read the catalog"),
    ("read-only transaction|readonly database", "it can only be read"),
    ("database or disk is full|no space left", "its disk is full"),
    ("unable to open database file", "its file cannot be opened"),
    ("database is locked", "another program has locked its file"),
    ("malformed", "its file is damaged"),
    ("not a database", "its file is no database"),
    ("disk i/o error", "its file cannot be read, or its disk is full"),
)
"""Patterns for drivers' messages in lowercase, and what they mean; the first match is used."""


def has_no_tables(error: DBAPIError) -> bool:
    """Check whether an error means that the database has none of our tables."""
    message = str(error.orig).lower()
    return getattr(error.orig, "sqlstate", None) == _NO_TABLE or message.startswith("no such table")


def is_damaged(error: DBAPIError) -> bool:
    """Check whether an error means that the file of SQLite is damaged, or cannot be read."""
    return re.search("malformed|not a database|disk i/o error", str(error.orig).lower()) is not None


_LACKING = re.compile(r"no such (?:column|table)|(?:column|relation|table) .* does not exist")


def lacks_what_was_asked(error: DBAPIError) -> bool:
    """Return whether the schema has no such table or column as a statement names."""
    return bool(_LACKING.search(driver_message(error)))


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


_SPAN = "vmsizes_span"


def trace_statements(engine: Engine) -> None:
    """Give each statement of an engine a span, where traces are sent."""
    if not tracing.is_on():
        return

    @event.listens_for(engine, "before_cursor_execute")
    def begin(
        connection: Connection, _cursor: Any, statement: str, _parameters: Any, context: Any, _many: bool
    ) -> None:  # as SQLAlchemy calls it
        span = tracing.statement_span(connection.dialect.name, statement)
        span.__enter__()
        setattr(context, _SPAN, span)

    @event.listens_for(engine, "after_cursor_execute")
    def end(
        _connection: Connection, _cursor: Any, _statement: str, _parameters: Any, context: Any, _many: bool
    ) -> None:
        _end(context, None)

    @event.listens_for(engine, "handle_error")
    def fail(failure: ExceptionContext) -> None:
        _end(failure.execution_context, failure.original_exception)


def _end(context: Any, error: BaseException | None) -> None:
    span: AbstractContextManager[object] | None = getattr(context, _SPAN, None)
    if span is not None:
        setattr(context, _SPAN, None)
        span.__exit__(type(error) if error else None, error, None)
