"""Whether the database is a replica, and how far it is behind."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

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
