"""A PostgreSQL role that can only read: what serves the catalog needs no more."""

from typing import cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import ProgrammingError

_INSUFFICIENT_PRIVILEGE = "42501"


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
    try:
        with engine.begin() as connection:
            return _grant(connection, role, password)
    except ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        raise RoleRefused(
            "the user of VMSIZES_DATABASE_URL may not make or change this role; give it CREATEROLE, or make it first"
        ) from None


def _grant(connection: Connection, role: str, password: str) -> list[str]:
    driver = cast("psycopg.Connection[tuple[object, ...]]", connection.connection.driver_connection)
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


def _ensure_role(driver: "psycopg.Connection[tuple[object, ...]]", role: str, password: str) -> None:
    """Make a role that can log in and nothing else, or set the password of the one that exists."""
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


def _one(driver: "psycopg.Connection[tuple[object, ...]]", query: str) -> object:
    row = driver.execute(query.encode()).fetchone()
    return row[0] if row else None
