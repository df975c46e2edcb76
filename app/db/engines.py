"""Engines of SQLAlchemy and their sessions: for all that writes, and as the pool of PostgreSQL for readers.

Also here: several PostgreSQL servers in a URL, `postgresql://user@first:5432,second:5432/name?target_session_attrs=any`.
libpq tries the servers in turn. Here all connections of a process go to one of them until it cannot be reached: a
replica may be behind, and the revision must be read from the server that the rows of a response come from.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import URL, Dialect, Engine, event, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import ArgumentError, DisconnectionError, NoSuchModuleError
from sqlalchemy.orm import Session as AnySession
from sqlalchemy.pool import ConnectionPoolEntry, NullPool
from sqlmodel import Session, create_engine

from app.db import functions
from app.db.errors import UnsupportedUrl
from app.db.sqlite import POOL_SIZE, check_file

SERVING_TIMEOUTS = {
    "connect_timeout": 2,
    "keepalives_idle": 2,
    "keepalives_interval": 1,
    "keepalives_count": 2,
    "tcp_user_timeout": 2_000,
}
"""How long a service waits for PostgreSQL's host, by the names of libpq: seconds, the last one milliseconds.

A statement may take longer; whether the server still answers is found out by another one (`app.http.revision`)."""

_PRAGMAS = ("foreign_keys = on", "journal_mode = wal", "busy_timeout = 10000")
"""How a connection to SQLite is set up; with WAL readers continue during an ingest."""


def make_engine(url: str, *, pooled: bool = True, serving: bool = False, pool_size: int = POOL_SIZE) -> Engine:
    """Return the engine for an SQLite or PostgreSQL URL (`postgresql://` is psycopg 3); raises UnsupportedUrl.

    Without a pool each connection is opened on demand and closed afterwards: for work that holds one for long. An
    engine for `serving` reads PostgreSQL only, and gives up soon on a server that does not answer. Pooled, it asks
    without transactions, so that a statement is one round trip, and not the ping, BEGIN and ROLLBACK around it: what a
    broken connection fails is run again anyway.
    """
    parsed = _supported(url)
    pool: dict[str, Any] = {"pool_size": pool_size} if pooled else {"poolclass": NullPool}
    if parsed.get_backend_name() == "postgresql":
        timeouts = {name: value for name, value in SERVING_TIMEOUTS.items() if name not in parsed.query}
        if serving and pooled:  # cursors of the server, which exports have, need a transaction
            pool["isolation_level"] = "AUTOCOMMIT"
        engine = create_engine(parsed, pool_pre_ping=not serving, connect_args=timeouts if serving else {}, **pool)
        choice = choice_of(parsed)
        if choice is not None:
            choice.follow(engine)
        return engine
    try:
        engine = create_engine(parsed, connect_args={"check_same_thread": False, "cached_statements": 32}, **pool)
    except ArgumentError as error:
        raise UnsupportedUrl(str(error)) from None

    @event.listens_for(engine, "connect")
    def set_up(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        functions.register(cast("sqlite3.Connection", connection))
        cursor = connection.cursor()
        for pragma in _PRAGMAS:
            cursor.execute(f"pragma {pragma}")
        cursor.close()

    return engine


def refuse_missing(engine: Engine, file: Path) -> None:
    """Let an engine create no file: a connection to a missing one fails instead."""

    @event.listens_for(engine, "do_connect")
    def check(*_: object) -> None:
        check_file(file)


def _supported(url: str) -> URL:
    """Return a URL of SQLite or PostgreSQL; raises UnsupportedUrl.

    Where a URL is malformed, its password may be anywhere in it.
    """
    kind, _, rest = url.partition("://")
    problem = f"{kind}://… is not supported; " if rest and re.fullmatch(r"[A-Za-z][\w+.-]*", kind) else ""
    allowed = "allowed are sqlite:///FILE and postgresql://USER:PASSWORD@HOST:PORT/NAME, without a driver"
    if kind.startswith("postgres") and _ends_in_password(rest):
        raise UnsupportedUrl(f"an @ in the password is written %40, and : / ? # % likewise; {allowed}")
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
    raise UnsupportedUrl(f"{problem}{allowed}{hint}")


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


def shown_url(url: URL) -> str:
    """Return a URL as it may be written in VMSIZES_DATABASE_URL, without its password."""
    shown = url.set(drivername=url.get_backend_name()).difference_update_query(["password", "sslpassword"])
    return shown.render_as_string(hide_password=True)


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
