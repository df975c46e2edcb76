"""Schema migrations: upgrade and downgrade a database with the scripts in `migrations/`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from app.db.writing import MIGRATIONS, OnWait, begin_writing, refuse_newer

if TYPE_CHECKING:
    from alembic.config import Config


def upgrade(
    engine: Engine,
    revision: str = "head",
    *,
    then: Callable[[Session], None] | None = None,
    on_wait: OnWait | None = None,
) -> None:
    """Migrate forward in one transaction, which waits for another that writes.

    `then` is called in the same transaction: what a migration empties is there again when others see it. Raises
    NewerSchema where a newer version of the program has migrated the database further.
    """
    from alembic import command

    with _migrating(engine, on_wait) as connection:
        refuse_newer(_revision_of(connection))
        command.upgrade(_config(connection), revision)
        if then is not None:
            with Session(connection) as session:
                then(session)
                session.commit()  # of the session alone: the transaction is the connection's


def downgrade(engine: Engine, revision: str) -> None:
    """Migrate back in one transaction; `base` is the empty database. Raises as `upgrade` does."""
    from alembic import command

    with _migrating(engine) as connection:
        refuse_newer(_revision_of(connection))
        command.downgrade(_config(connection), revision)


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _revision_of(connection: Connection) -> str | None:
    from alembic.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


@contextmanager
def _migrating(engine: Engine, on_wait: OnWait | None = None) -> Iterator[Connection]:
    with engine.connect() as connection:
        if engine.dialect.name == "sqlite":
            # A table is altered by rebuilding it, which foreign keys would reject; they can only be turned off here.
            connection.exec_driver_sql("pragma foreign_keys = off")
        begin_writing(connection, on_wait=on_wait)
        try:
            yield connection
            if engine.dialect.name == "sqlite":
                broken = connection.exec_driver_sql("pragma foreign_key_check").first()
                if broken is not None:
                    raise RuntimeError(f"row {broken[1]} of table {broken[0]} would point to no row of {broken[2]}")
            connection.commit()
        finally:
            connection.rollback()
            if engine.dialect.name == "sqlite":
                connection.exec_driver_sql("pragma foreign_keys = on")
