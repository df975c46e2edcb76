"""Transactions that write: one at a time, so an ingest, a refresh and a migration may be started at once."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlmodel import Session

from app.db.errors import WriterBusy
from app.db.schema import refuse_newer, refuse_older, schema_revision

WAIT_SECONDS = 300.0
"""How long a writer waits for another one by default: longer than an ingest of all seeds takes."""


OnWait = Callable[[float], None]
"""What is called while a writer waits, with the seconds that it waits at most."""

_OPTION = "vmsizes_wait_seconds"
_POLL_SECONDS = 0.25
_BUSY_TIMEOUT = "pragma busy_timeout"
_CACHE_KIB = 32 * 1024
"""Of SQLite's pages while it writes, instead of 2 MB: indexes are written at random places."""
_CLIENT_CHECK_SECONDS = 2
"""How often PostgreSQL looks, during a statement, whether the client that writes is still there."""

_log = logging.getLogger(__name__)


def waiting_text(seconds: float) -> str:
    """Return what a command shows while it waits for another writer."""
    return f"waiting up to {seconds:g} s for another ingest or migration"


def set_wait(engine: Engine, seconds: float) -> None:
    """Set how long the writers of an engine wait for another one, instead of WAIT_SECONDS."""
    engine.update_execution_options(**{_OPTION: seconds})


def check_schema(engine: Engine) -> None:
    """Raise what a writer would raise for the schema of the database, before it reads or fetches anything."""
    with Session(engine) as session:
        _refuse_other(schema_revision(session))


def _refuse_other(revision: str) -> None:
    refuse_newer(revision)
    refuse_older(revision)


@contextmanager
def write_session(
    engine: Engine,
    *,
    commit: bool = True,
    on_wait: OnWait | None = None,
) -> Iterator[Session]:
    """Open a session with one transaction: committed at the end, rolled back on an error or if `commit` is false.

    Waits while another process writes, see `begin_writing`. Raises NewerSchema where a newer program has migrated the
    database: what that added would not be written; and OlderSchema where it is still to be migrated.
    """
    with Session(engine) as session, session.begin() as transaction:
        begin_writing(session.connection(), on_wait=on_wait)
        _refuse_other(schema_revision(session))
        yield session
        if not commit:
            transaction.rollback()


def begin_writing(connection: Connection, *, on_wait: OnWait | None = None) -> None:
    """Make the connection's transaction the only one that writes; readers go on.

    Waits for another writer as long as `set_wait` says, and calls `on_wait` a few times a second; raises WriterBusy
    where it has not ended by then. On SQLite the transaction takes the write lock of the file at its start: one that
    has read before it writes could not wait. On PostgreSQL it is an advisory lock, which ends with the transaction, and
    the transaction ends with its client, even in the middle of a statement.
    """
    begin = _begin_sqlite if connection.dialect.name == "sqlite" else _lock_postgres
    wait_seconds = connection.get_execution_options().get(_OPTION, WAIT_SECONDS)
    deadline = time.monotonic() + wait_seconds
    while not begin(connection):
        if time.monotonic() >= deadline:
            waited = f" has been writing for over {wait_seconds:g} s" if wait_seconds else " is writing"
            raise WriterBusy(f"Another ingest or migration{waited}.")
        if on_wait is not None:
            on_wait(wait_seconds)
        time.sleep(_POLL_SECONDS)
    if connection.dialect.name == "sqlite":
        return
    # A writer reads each cursor to its end. PostgreSQL plans for the first tenth of the rows, and chooses a nested loop
    # over two whole tables because its first row comes soon. This holds until the end of the transaction.
    connection.exec_driver_sql("set local cursor_tuple_fraction = 1")
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(f"set local client_connection_check_interval = '{_CLIENT_CHECK_SECONDS}s'")
    except DBAPIError as error:  # PostgreSQL before 14, or on a system that does not report closed connections
        _log_unchecked(str(error.orig).partition("\n")[0])


def _begin_sqlite(connection: Connection) -> bool:
    before = connection.exec_driver_sql(_BUSY_TIMEOUT).scalar_one()
    connection.exec_driver_sql(f"{_BUSY_TIMEOUT} = 0")  # the loop waits, which a signal can interrupt
    connection.exec_driver_sql(f"pragma cache_size = -{_CACHE_KIB}")
    try:
        connection.exec_driver_sql("begin immediate")
    except OperationalError as error:
        if "locked" not in str(error.orig):
            raise
        return False
    finally:
        connection.exec_driver_sql(f"{_BUSY_TIMEOUT} = {before}")
    return True


def _lock_postgres(connection: Connection) -> bool:
    # The key of migrations of earlier versions, so that those wait for this one as well.
    statement = "select pg_try_advisory_xact_lock(hashtext('vmsizes migrations'))"
    return bool(connection.exec_driver_sql(statement).scalar_one())


@cache
def _log_unchecked(reason: str) -> None:
    """Log, once, that PostgreSQL does not look for the client."""
    _log.info("a statement of a killed command goes on in PostgreSQL until it is done: %s", reason)
