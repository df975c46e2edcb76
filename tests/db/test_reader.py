"""The role that can only read: it serves everything, writes nothing, and has no secret of a webhook."""

from collections.abc import Iterator
from typing import Any

import httpx
import psycopg
import pytest
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from app.db.engines import make_engine
from app.db.migrations import RoleRefused, grant_reader
from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.api.bodies import LLAMA
from tests.api.test_strictness import PATHS
from tests.command_line import run_command
from tests.conftest import TODAY
from tests.servers import open_client, server

ROLE = "vmsizes_test_reader"
MORE = [
    "/metrics",
    "/sizes.csv",
    "/sizes.parquet",
    "/prices.csv?region=westus3",
    "/facets",
    "/conflicts",
    "/models",
    "/",
]


@pytest.fixture
def owner(few_sizes_url: str) -> Iterator[Engine]:
    """The engine of the user who owns the tables, on PostgreSQL."""
    engine = make_engine(few_sizes_url)
    if engine.dialect.name != "postgresql":
        pytest.skip("SQLite has no roles")
    yield engine
    with engine.begin() as connection:
        if connection.scalar(text("select 1 from pg_roles where rolname = :role"), {"role": ROLE}):
            connection.execute(text(f"drop owned by {ROLE}"))
            connection.execute(text(f"drop role {ROLE}"))
    engine.dispose()


@pytest.fixture
def reader(owner: Engine) -> Iterator[Engine]:
    """An engine of the role."""
    grant_reader(owner, ROLE, "secret")
    engine = make_engine(owner.url.set(username=ROLE).render_as_string(hide_password=False))
    yield engine
    engine.dispose()


def answers(engine: Engine) -> dict[str, Any]:
    url = engine.url.render_as_string(hide_password=False)
    service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
    with server(service) as base, open_client(base) as client:
        found: dict[str, Any] = {}
        for path in [*PATHS, *MORE]:
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            found[path] = answer.content if path != "/metrics" else None
        found["page"] = client.get("/", headers={"accept": "text/html"}).content.replace(
            f"127.0.0.1:{client.base_url.port}".encode(), b"HOST"
        )
        found["fit"] = client.post("/fit", json={"model": LLAMA["model"], "inference": {}}).content
        found["tools"] = call_tool(client)
    service.app.state.database.dispose()
    return found


def call_tool(client: httpx.Client) -> Any:
    call = {"name": "find_sizes", "arguments": {"gpu": "H100", "limit": 1}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = client.post("/mcp", json=body, headers={"mcp-protocol-version": "2025-06-18"})
    return answer.json()["result"]["structuredContent"]["items"]


@pytest.mark.takes_seconds
def test_the_service_answers_the_same_by_the_role_that_can_only_read(owner: Engine, reader: Engine) -> None:
    by_owner, by_reader = answers(owner), answers(reader)
    assert by_owner.keys() == by_reader.keys()
    for what in by_owner:
        assert by_owner[what] == by_reader[what], what


def test_the_role_can_write_nothing_even_if_it_asks_for_a_transaction_that_writes(
    owner: Engine, reader: Engine
) -> None:
    with owner.connect() as connection:
        tables = list(connection.scalars(text("select tablename from pg_tables where schemaname = 'public'")))
    assert {"size", "price", "alembic_version"} <= set(tables)
    statements = [f"{verb} {table}" for table in tables for verb in ("delete from", "truncate", "drop table")]
    statements += [f"insert into {table} default values" for table in tables]
    statements += ["create table own (id int)", "create temporary table own (id int)", "create schema own"]
    statements += ["create role another", f"alter role {ROLE} superuser", "copy size to program 'true'"]
    statements += ["select pg_read_file('/etc/passwd')"]
    for statement in statements:
        with reader.connect() as connection:
            connection.execute(text("set transaction read write"))
            with pytest.raises(ProgrammingError) as refused:
                connection.execute(text(statement))
            assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege), statement


def test_the_role_reads_nothing_of_webhooks_whose_secrets_are_in_the_database(owner: Engine, reader: Engine) -> None:
    with owner.connect() as connection:
        tables = list(connection.scalars(text("select tablename from pg_tables where tablename like 'webhook%'")))
    assert tables
    for table in tables:
        with reader.connect() as connection, pytest.raises(ProgrammingError, match="permission denied"):
            connection.execute(text(f"select * from {table}"))


def test_the_server_is_sent_a_verifier_and_never_the_password(owner: Engine, reader: Engine) -> None:
    with owner.connect() as connection:
        stored = connection.scalar(text("select rolpassword from pg_authid where rolname = :role"), {"role": ROLE})
    assert stored.startswith("SCRAM-SHA-256$")
    assert "secret" not in stored


def test_a_role_that_is_there_keeps_its_password_and_reads_new_tables_after_the_next_migration(
    owner: Engine, reader: Engine
) -> None:
    with owner.begin() as connection:
        before = connection.scalar(text("select rolpassword from pg_authid where rolname = :role"), {"role": ROLE})
        connection.execute(text("create table added (id int)"))
    with reader.connect() as connection, pytest.raises(DBAPIError):
        connection.execute(text("select * from added"))
    assert "added" in grant_reader(owner, ROLE)
    with reader.connect() as connection:
        connection.execute(text("select * from added"))
    with owner.connect() as connection:
        after = connection.scalar(text("select rolpassword from pg_authid where rolname = :role"), {"role": ROLE})
    assert before == after


def test_a_role_that_may_write_is_refused(owner: Engine) -> None:
    with pytest.raises(RoleRefused, match="is the user who migrates"):
        grant_reader(owner, make_url(owner.url).username or "")


def test_migrate_makes_the_role(owner: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMSIZES_READER_ROLE", ROLE)
    done = run_command(owner.url.render_as_string(hide_password=False), "migrate")
    assert done.returncode == 0
    assert f"The role {ROLE} may read" in done.stdout


def test_a_name_that_is_reserved_and_a_user_who_may_make_no_role_are_refused(
    owner: Engine, reader: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VMSIZES_READER_ROLE", "pg_read")
    done = run_command(owner.url.render_as_string(hide_password=False), "migrate")
    assert (done.returncode, "VMSIZES_READER_ROLE=pg_read: is a name that PostgreSQL reserves" in done.stderr) == (
        2,
        True,
    )
    with owner.begin() as connection:
        connection.execute(text(f"alter role {ROLE} reset default_transaction_read_only"))
    with pytest.raises(RoleRefused, match="give it CREATEROLE"):
        grant_reader(reader, "another")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("webhooks", "list"), "its user may not read webhooks (permission denied for table webhook"),
        (("webhooks", "deliver"), "its user may not read webhooks (permission denied for table webhook"),
        (("ingest", "series", str(PROJECT / "seeds" / "series.csv")), "it can only be read (cannot execute"),
    ],
)
def test_what_the_role_may_not_do_is_a_message_with_a_remedy(
    reader: Engine, command: tuple[str, ...], message: str
) -> None:
    done = run_command(reader.url.render_as_string(hide_password=False), *command)
    assert (done.returncode, f"The database cannot be used: {message}" in done.stderr) == (4, True), done.stderr
    assert "; give the URL of the user" in done.stderr


@pytest.mark.one_database
def test_a_role_is_refused_where_the_database_has_none(tmp_path: Any) -> None:
    with pytest.raises(RoleRefused, match="only PostgreSQL has roles"):
        grant_reader(make_engine(f"sqlite:///{tmp_path / 'x.db'}"), ROLE)
