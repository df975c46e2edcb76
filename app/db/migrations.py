"""Schema migrations: upgrade and downgrade a database with the scripts in `migrations/`.

Also here: a PostgreSQL role that can only read. What serves the catalog needs no more.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.orm import Session

from app.db.schema import MIGRATIONS, refuse_newer
from app.db.writing import OnWait, begin_writing

if TYPE_CHECKING:
    from alembic.config import Config
    from psycopg import Connection as Driver


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


# A role that can only read

_REFUSALS = {
    "42501": "the user of VMSIZES_DATABASE_URL may not make or change this role; give it CREATEROLE, or make it first",
    "42939": "is a name that PostgreSQL reserves; choose one that does not begin with pg_",
}
"""What is wrong by PostgreSQL's SQLSTATE."""


class RoleRefused(Exception):
    """A role cannot be made a reader; the message says why, and what to do."""


def grant_reader(engine: Engine, role: str, password: str = "") -> list[str]:
    """Make the role if it does not exist, and let it read every table but those of webhooks; returns their names.

    To be called after each migration, since tables that it adds are not readable by themselves. A password is sent as
    its SCRAM verifier, so no log of the server has it. Raises RoleRefused for a role that may write all the
    same, and where the user of `engine` may not make roles.
    """
    if engine.dialect.name != "postgresql":
        raise RoleRefused("only PostgreSQL has roles; leave it empty for SQLite")
    from psycopg import DatabaseError

    try:
        with engine.begin() as connection:
            return _grant(connection, role, password)
    except DatabaseError as error:  # of the driver, which the statements are given to
        raise RoleRefused(_REFUSALS.get(error.sqlstate or "") or str(error)) from None


def _grant(connection: Connection, role: str, password: str) -> list[str]:
    from psycopg import sql

    driver = cast("Driver[Any]", connection.connection.driver_connection)
    _ensure_role(driver, role, password)
    name = sql.Identifier(role)
    schema = _one(driver, "select current_schema()")
    database = sql.Identifier(str(_one(driver, "select current_database()")))
    here = sql.Identifier(str(schema))
    if _one(
        driver, "select pg_has_role(datdba, 'usage') from pg_catalog.pg_database where datname = current_database()"
    ):
        # By default everybody may make temporary tables. Ingests need them, so the user who migrates keeps the right.
        driver.execute(sql.SQL("grant temporary on database {} to current_user").format(database))
        driver.execute(sql.SQL("revoke temporary on database {} from public").format(database))
        driver.execute(sql.SQL("revoke create on schema {} from public").format(here))
    driver.execute(sql.SQL("grant connect on database {} to {}").format(database, name))
    driver.execute(sql.SQL("grant usage on schema {} to {}").format(here, name))
    driver.execute(sql.SQL("revoke all on all tables in schema {} from {}").format(here, name))
    tables = [
        str(row[0])
        for row in driver.execute(
            "select tablename from pg_catalog.pg_tables where schemaname = current_schema() order by tablename"
        )
        if not str(row[0]).startswith("webhook")  # they have the secrets that receivers verify signatures by
    ]
    for table in tables:
        driver.execute(sql.SQL("grant select on {}.{} to {}").format(here, sql.Identifier(table), name))
    return tables


def _ensure_role(driver: "Driver[Any]", role: str, password: str) -> None:
    """Make a role that can log in and nothing else, or set the password of the one that exists."""
    from psycopg import sql

    if role == _one(driver, "select current_user"):
        raise RoleRefused("is the user who migrates, and so owns the tables; name another one")
    name = sql.Identifier(role)
    rights = driver.execute(
        "select rolsuper or rolcreaterole or rolbypassrls from pg_catalog.pg_roles where rolname = %s", [role]
    ).fetchone()
    if rights is None:
        driver.execute(sql.SQL("create role {} login nosuperuser nocreatedb nocreaterole noinherit").format(name))
        driver.execute(sql.SQL("alter role {} set default_transaction_read_only = on").format(name))
    elif rights[0]:
        raise RoleRefused("is a role that may do more than read; name another one")
    if password:
        verifier = driver.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
        driver.execute(sql.SQL("alter role {} password {}").format(name, sql.Literal(verifier)))


def _one(driver: "Driver[Any]", query: str) -> object:
    row = driver.execute(query.encode()).fetchone()
    return row[0] if row else None
