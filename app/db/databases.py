"""Databases to read: SQLite by its driver, PostgreSQL by its own on connections of SQLAlchemy's pool."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from app.db.sqlite import POOL_SIZE, SqliteDatabase, SqliteUrl
from app.db.statements import BoundStatement, DriverReader, Statement

_BUSY_SECONDS, _SERVING_BUSY_SECONDS = 10, 1
"""How long a connection to SQLite waits for a lock. Readers need none while another process writes."""

_SERVING_CACHE_KIB = 512
"""How many pages of SQLite a connection of a service keeps: each thread has one. The system keeps the others anyway:
with SQLite's own 2,000 KiB no question takes less CPU, of 1,000 sizes or of 100,000.

The file is not mapped into memory: that saves no measurable time, a file that is truncated would end the process
(SIGBUS), and every connection's view of it counts as memory of the worker."""


class Database(Protocol):
    """A database to read from, with its connections.

    `url` names it from any folder, with its password; `shown_url` has none. `file` is that of SQLite, and `path`, too,
    where the URL names it by its path and not by a URI.
    """

    url: str
    shown_url: str
    file: Path | None
    path: Path | None

    @property
    def kind(self) -> Literal["sqlite", "postgresql"]:
        """Which one it is."""

    @property
    def connections(self) -> tuple[int, int]:
        """How many connections are in use, and how many idle."""

    def connect(self) -> DriverReader:
        """Return a reader on a connection for a `with` block; raises DatabaseError."""

    def dispose(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""


def open_database(url: str, *, serving: bool = False, pool_size: int = POOL_SIZE) -> Database:
    """Return the database at a URL, which is not connected to yet; raises UnsupportedUrl.

    With a pool of 0 connections each is opened on demand and closed afterwards: for work that holds one for long. For
    `serving` SQLite is opened read-only, and a database that does not answer is given up soon.
    """
    parsed = SqliteUrl.parse(url)
    if parsed is None:
        # SQLAlchemy is loaded only where it is the pool, or knows what is wrong with a URL.
        from app.db.engines import make_engine
        from app.db.postgresql import PostgresDatabase

        engine = make_engine(url, pooled=bool(pool_size), serving=serving, pool_size=pool_size)
        if engine.dialect.name == "postgresql":
            return PostgresDatabase(engine)
        parsed = SqliteUrl(
            engine.url.database or "", cast("Any", engine.url.query)
        )  # of another form: sqlite+pysqlite:///
    return SqliteDatabase(
        parsed,
        mode="ro" if serving else "rw",
        busy_seconds=_SERVING_BUSY_SECONDS if serving else _BUSY_SECONDS,
        max_idle=pool_size,
        pragmas=[f"cache_size = -{_SERVING_CACHE_KIB}"] if serving else (),
    )


_REPLICATION = Statement("""
        select pg_is_in_recovery(), exists (select from pg_stat_wal_receiver),
          extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8
        """)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """The state of a streaming replica of PostgreSQL; of any other database only `is_replica` is known.

    `is_receiving` tells whether it is connected to the server that it follows. `replay_age_seconds` is the time since
    the last transaction that it has replayed was committed: the lag, but on a server that writes nothing it grows, too.
    """

    is_replica: bool = False
    is_receiving: bool | None = None
    replay_age_seconds: float | None = None


def load_replication(reader: DriverReader) -> Replication:
    """Ask the database; any role may."""
    if reader.kind == "sqlite":
        return Replication()
    is_replica, is_receiving, age = reader.fetch(BoundStatement(_REPLICATION))[0]
    if not is_replica:
        return Replication()
    return Replication(is_replica=True, is_receiving=is_receiving, replay_age_seconds=age)
