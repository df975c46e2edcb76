"""Engines, sessions and spans of statements for SQLite and PostgreSQL, and why a database cannot be reached.

Also here: several PostgreSQL servers in a URL, `postgresql://user@first:5432,second:5432/name?target_session_attrs=any`.
libpq tries the servers in turn. Here all connections of a process go to one of them until it cannot be reached: a
replica may be behind, and the revision must be read from the server that the rows of a response come from.

And the file of SQLite, opened read-only by a service, and opened again where it was replaced. A connection holds the
file that it opened: after `mv new.db vmsizes.db` it would read the old one for ever, and after `rm vmsizes.db` one that
no other process can see.
"""

import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from sqlalchemy import URL, Dialect, Engine, event, make_url, text
from sqlalchemy.engine import Connection, ExceptionContext
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.orm import Session as AnySession
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlmodel import Session, create_engine

from app.db import functions
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

        @event.listens_for(engine, "handle_error")
        def replace_outdated_connections(context: ExceptionContext) -> None:
            if has_outdated_plan(context.original_exception):
                context.is_disconnect = True

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
    allowed = "allowed are sqlite:///FILE and postgresql://USER:PASSWORD@HOST:PORT/NAME, without a driver"
    if kind.startswith("postgres") and _ends_in_password(rest):
        raise ArgumentError(f"an @ in the password is written %40, and : / ? # % likewise; {allowed}")
    try:
        parsed = parse_url(url)
        if parsed.drivername in {"postgres", "postgresql"}:
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() in {"sqlite", "postgresql"}:
            parsed.get_dialect().import_dbapi()
            return parsed
    except ValueError:
        problem = "its port is not a number; "
    except (ArgumentError, NoSuchModuleError, ImportError):
        pass
    hint = f"; write {kind.partition('+')[0]}://…" if problem and "+" in kind else ""
    raise ArgumentError(f"{problem}{allowed}{hint}")


def _ends_in_password(rest: str) -> bool:
    """Return whether the first @ after the user's name is not the last: what follows may be part of the password.

    It would be shown and logged as the host, the name of the database or a parameter.
    """
    after_user = re.search("[:/].*", rest, re.DOTALL)
    return after_user is not None and after_user[0].count("@") > after_user[0].startswith(":")


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

MISSING = "no such database file"
_ELSEWHERE = "move the file away and run `vmsizes migrate`, then `vmsizes ingest seeds`"
IS_NO_FILE = "the path of the database is not a regular file"
_CAUSES: tuple[tuple[str, ...], ...] = (
    (MISSING, "its file is missing"),
    (IS_NO_FILE, "its path leads to no file", "give a file in VMSIZES_DATABASE_URL"),
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
    ("unable to open database file: permission denied", "its folder may not be read", "let this user read it"),
    ("permission denied for table webhook", "its user may not read webhooks", "give the URL of the user who migrates"),
    (
        "permission denied",
        "its user may not read the catalog",
        "give its role as VMSIZES_READER_ROLE to `vmsizes migrate`",
    ),
    ("read-only transaction", "it can only be read", "give the URL of the user and server that may write"),
    ("readonly database", "it can only be read", "let this user write the file and its folder"),
    ("database or disk is full|no space left", "its disk is full", "make room"),
    ("unable to open database file", "its file cannot be opened", "let this user read and write it, and its folder"),
    ("database is locked", "another program has locked its file", "end that program, or wait until it has ended"),
    ("malformed", "its file is damaged", f"restore a copy, or {_ELSEWHERE}"),
    ("not a database", "its file is not a database", f"correct VMSIZES_DATABASE_URL, or {_ELSEWHERE}"),
    ("disk i/o error", "its file cannot be read, or its disk is full", "make room, or check the disk"),
    (
        "(table|relation) .* already exists",
        "it has tables of another program, or of no version that is known",
        "give another database in VMSIZES_DATABASE_URL",
    ),
)
"""Patterns for drivers' messages in lowercase, what they mean, and what to do unless that is to start or find the
database; the first match is used."""


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


def outage_cause(error: DBAPIError) -> tuple[str, str] | None:
    """Return why the database cannot be reached, and the remedy of that alone; None if it rejected the statement."""
    message = str(error.orig).lower()
    causes = ((meaning, "".join(remedy)) for pattern, meaning, *remedy in _CAUSES if re.search(pattern, message))
    if cause := next(causes, None):
        return cause
    is_outage = error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)
    return ("it does not answer as it should", "") if is_outage else None


def shown_url(url: URL) -> str:
    """Return a URL as it may be written in VMSIZES_DATABASE_URL, without its password."""
    shown = url.set(drivername=url.get_backend_name()).difference_update_query(["password", "sslpassword"])
    return shown.render_as_string(hide_password=True)


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


# Several servers

Server = tuple[str, str]
"""A host, or the folder of a socket, and a port; empty for libpq's default."""

_SEVERAL = re.compile(
    r"(?P<kind>postgres(?:ql)?(?:\+\w+)?)://(?:(?P<user>[^@/?]*)@)?(?P<hosts>[^@/?]*,[^@/?]*)(?P<rest>.*)"
)
_SERVER = "vmsizes.server"


def parse_url(url: str) -> URL:
    """Return a URL that may name several servers, which SQLAlchemy has as `host` and `port` of the query.

    Raises ValueError for a port that is not a number.
    """
    match = _SEVERAL.fullmatch(url)
    if match is None:
        return make_url(url)
    user = f"{match['user']}@" if match["user"] else ""
    servers = [_split(host) for host in match["hosts"].split(",")]
    return make_url(f"{match['kind']}://{user}{match['rest']}").update_query_dict(
        {"host": ",".join(host for host, _ in servers), "port": ",".join(port for _, port in servers)}
    )


def _split(server: str) -> Server:
    """Split `host:port`; an IPv6 address has brackets, which libpq wants without."""
    match = re.fullmatch(r"(?:\[(?P<v6>[^]]*)\]|(?P<host>[^:]*))(?::(?P<port>\d*))?", server)
    if match is None:
        raise ValueError("a port is not a number")
    return match["v6"] or match["host"] or "", match["port"] or ""


class ServerChoice:
    """Which of several servers the connections of this process go to: that of the connection that was opened last."""

    def __init__(self, servers: list[Server]) -> None:
        self._servers = servers
        self.current: Server | None = None

    def in_order(self) -> dict[str, str]:
        """Return the parameters of libpq that try the current server first."""
        servers = sorted(self._servers, key=lambda server: server != self.current)
        return {"host": ",".join(host for host, _ in servers), "port": ",".join(port for _, port in servers)}

    def server_of(self, connection: Any) -> Server:
        """Return the server that a connection of psycopg goes to, as the URL names it."""
        host, port = connection.info.host, str(connection.info.port)
        return next((server for server in self._servers if server in ((host, port), (host, ""))), (host, port))

    def follow(self, engine: Engine) -> None:
        """Let the connections of an engine go to the current server, and be opened again where they do not."""

        @event.listens_for(engine, "do_connect")
        def connect(
            dialect: Dialect, record: ConnectionPoolEntry, arguments: list[Any], parameters: dict[str, Any]
        ) -> DBAPIConnection:
            connection = dialect.connect(*arguments, **{**parameters, **self.in_order()})
            record.info[_SERVER] = self.current = self.server_of(connection)
            return connection

        @event.listens_for(engine, "checkout")
        def check(_connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
            if record.info[_SERVER] != self.current:
                raise DisconnectionError("connections go to another server now")


_CHOICES: dict[URL, ServerChoice] = {}


def choice_of(url: URL) -> ServerChoice | None:
    """Return the choice that all engines of this process for a URL share; None for a URL of one server."""
    hosts, ports = url.query.get("host", ""), url.query.get("port", "")
    if not isinstance(hosts, str) or not isinstance(ports, str) or "," not in hosts:
        return None
    names, numbers = hosts.split(","), ports.split(",")
    if len(numbers) == 1:
        numbers *= len(names)
    return _CHOICES.setdefault(url, ServerChoice(list(zip(names, numbers, strict=False))))


_QUERY = text(
    "select pg_is_in_recovery(), exists (select from pg_stat_wal_receiver),"
    " extract(epoch from clock_timestamp() - pg_last_xact_replay_timestamp())::float8"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """The state of a streaming replica of PostgreSQL; of any other database only `is_replica` is known.

    `is_receiving` tells whether it is connected to the server that it follows. `replay_age_seconds` is the time since
    the last transaction that it has replayed was committed: the lag, but on a server that writes nothing it grows, too.
    """

    is_replica: bool = False
    is_receiving: bool | None = None
    replay_age_seconds: float | None = None


def load_replication(session: AnySession) -> Replication:
    """Ask the database; any role may."""
    if session.connection().dialect.name != "postgresql":
        return Replication()
    is_replica, is_receiving, age = session.execute(_QUERY).one()
    if not is_replica:
        return Replication()
    return Replication(is_replica=True, is_receiving=is_receiving, replay_age_seconds=age)


# The file of an SQLite database

_IN_MEMORY = {None, "", ":memory:"}
_OPENED = "vmsizes.file"


class FileVersion(NamedTuple):
    """Which file it is that a path leads to, and its length in bytes."""

    device: int
    inode: int
    size_bytes: int

    def is_replaced_by(self, other: "FileVersion") -> bool:
        """Check whether a connection to this file must not be used for the other: it is another, or was cut."""
        return (self.device, self.inode) != (other.device, other.inode) or other.size_bytes < self.size_bytes


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """The file of an SQLite database, by its path."""

    path: Path

    @classmethod
    def of(cls, url: URL) -> "DatabaseFile | None":
        """Return the file that a URL names; None for a database in memory."""
        name = url.database
        if name in _IN_MEMORY or url.query.get("mode") == "memory":
            return None
        if not (name or "").startswith("file:"):
            return cls(Path(name or ""))
        path = unquote((name or "").removeprefix("file:"))
        return cls(Path(path.removeprefix("//") if path.startswith("///") else path))

    def read_only_url(self, url: URL) -> URL:
        """Return the URL that opens the file read-only; the file is not created where it is missing."""
        if (url.database or "").startswith("file:"):
            return url.difference_update_query(["mode"]).update_query_dict({"mode": "ro", "uri": "true"})
        quoted = self.path.absolute().as_uri().replace("file://", "file:", 1)
        return url.set(database=quoted).update_query_dict({"mode": "ro", "uri": "true"})

    def check(self) -> FileVersion:
        """Return which file is there now; raises sqlite3.OperationalError where there is none that can be opened.

        To open a FIFO would wait for who writes to it.
        """
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise sqlite3.OperationalError(f"{MISSING} (unable to open database file)") from None
        except OSError as error:
            raise sqlite3.OperationalError(f"unable to open database file: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise sqlite3.OperationalError(IS_NO_FILE)
        return FileVersion(status.st_dev, status.st_ino, status.st_size)

    def refuse_missing(self, engine: Engine) -> None:
        """Let an engine create no file: a connection to a missing one fails instead."""

        @event.listens_for(engine, "do_connect")
        def check(*_: object) -> None:
            self.check()

    def watch(self, engine: Engine) -> None:
        """Let the pool of an engine open a connection again where the file is no longer the one it was opened on."""

        @event.listens_for(engine, "do_connect")
        def connect(
            dialect: Dialect, record: ConnectionPoolEntry, arguments: list[Any], parameters: dict[str, Any]
        ) -> DBAPIConnection:
            opened = self.check()  # before it is opened: if it is replaced meanwhile, the next use opens it again
            connection = dialect.connect(*arguments, **parameters)
            record.info[_OPENED] = opened
            return connection

        @event.listens_for(engine, "checkout")
        def check(_connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
            if record.info[_OPENED].is_replaced_by(self.check()):
                raise DisconnectionError("the file of the database was replaced")
