"""The schema of a database: brings it to a revision with the migrations that lie beside the package."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine, text
from sqlalchemy.orm import Session

if TYPE_CHECKING:
    from alembic.config import Config

MIGRATIONS = Path(__file__).resolve().parents[2] / "migrations"

_LOCKS = {
    "sqlite": ("pragma foreign_keys = off", "begin immediate"),
    "postgresql": ("select pg_advisory_xact_lock(hashtext('vmsizes migrations'))",),
}
"""What opens a migration: a transaction that a second migration waits for. SQLite alters a table by rebuilding it,
which foreign keys would forbid, and they can only be switched outside a transaction."""


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Migrate forward: all the way and committed, or nothing."""
    from alembic import command

    with _migrating(engine) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Migrate back (`base` is the empty database): all the way and committed, or nothing."""
    from alembic import command

    with _migrating(engine) as connection:
        command.downgrade(_config(connection), revision)


def current_revision(engine: Engine) -> str | None:
    """Tell the revision that the database is at; None is a database without our schema."""
    from alembic.migration import MigrationContext

    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def is_current(engine: Engine) -> bool:
    """Tell whether the database is at the newest revision that this version of the program has."""
    from alembic.script import ScriptDirectory

    return current_revision(engine) == ScriptDirectory(str(MIGRATIONS)).get_current_head()


def outdated_revision(session: Session) -> str | None:
    """The revision that a served database is at where this program needs a newer one, else None; needs no Alembic."""
    found = str(session.execute(text("select version_num from alembic_version")).scalar())
    return found if found < newest_revision() else None


@cache
def newest_revision() -> str:
    """The newest revision that this program has: the names of its files begin with their numbers."""
    return max(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("0*.py"))


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    with engine.connect() as connection:
        for statement in _LOCKS[engine.dialect.name]:
            connection.exec_driver_sql(statement)
        try:
            yield connection
            _check_foreign_keys(connection)
            connection.commit()
        finally:
            connection.rollback()
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("pragma foreign_keys = on")


def _check_foreign_keys(connection: Connection) -> None:
    """Make up for the foreign keys that SQLite did not watch meanwhile."""
    if connection.dialect.name == "sqlite":
        broken = connection.exec_driver_sql("pragma foreign_key_check").first()
        if broken is not None:
            raise RuntimeError(f"row {broken[1]} of table {broken[0]} would point to no row of {broken[2]}")
