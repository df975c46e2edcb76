"""Several PostgreSQL servers in one URL: `postgresql://user@first:5432,second:5432/name?target_session_attrs=any`.

libpq tries the servers in turn. Here all connections of a process go to one of them until it cannot be reached: a
replica may be behind, and the revision must be read from the server that the rows of a response come from.
"""

import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import URL, Dialect, Engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.orm import Session
from sqlalchemy.pool import ConnectionPoolEntry

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


def load_replication(session: Session) -> Replication:
    """Ask the database; any role may."""
    if session.connection().dialect.name != "postgresql":
        return Replication()
    is_replica, is_receiving, age = session.execute(_QUERY).one()
    if not is_replica:
        return Replication()
    return Replication(is_replica=True, is_receiving=is_receiving, replay_age_seconds=age)
