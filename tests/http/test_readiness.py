"""A service whose database is not ready responds 503 with what to do."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app.db import migrations
from app.db.engines import make_engine
from app.db.schema import MIGRATIONS, newest_revision
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.command_line import run_command
from tests.factories import NOW, reading, size
from tests.postgres import postgres_running
from tests.servers import open_client, server
from tests.waiting import wait_until


@contextmanager
def client_of(url: str) -> Iterator[httpx.Client]:
    with server(create_asgi_app(Settings(_env_file=None, database_url=url))) as served, open_client(served) as client:
        yield client


def refused(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 503
    assert answer.json()["type"] == "/problems/not-ready"
    return str(answer.json()["detail"])


def test_without_tables_the_problem_says_to_migrate_and_ingest(empty_url: str) -> None:
    with client_of(empty_url) as client:
        assert "run `vmsizes migrate`, then `vmsizes ingest seeds`" in refused(client, "/readyz")
        assert refused(client, "/sizes") == refused(client, "/conflicts") == refused(client, "/readyz")


def test_without_a_catalog_the_problem_says_to_ingest(database_url: str) -> None:
    with client_of(database_url) as client:
        assert refused(client, "/readyz") == "The catalog is empty; run `vmsizes ingest seeds`."
        assert refused(client, "/sizes") == "The catalog is empty; run `vmsizes ingest seeds`."


@pytest.mark.takes_seconds
def test_an_outdated_schema_is_reported(service: CacheMiddleware, database_url: str, engine: Engine) -> None:
    migrations.downgrade(engine, "0004")
    with client_of(database_url) as client:
        newest = newest_revision()
        told = f"The database has the schema 0004, and this program needs {newest}; run `vmsizes migrate`."
        assert refused(client, "/readyz") == refused(client, "/sizes") == told
    migrations.upgrade(engine)
    with client_of(database_url) as client:
        assert client.get("/readyz").json()["status"] == "ready"


def rename_a_column_in_a_newer_schema(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9999'")
        connection.exec_driver_sql("alter table source rename column publisher to issuer")


def test_a_program_beside_a_newer_schema_serves_what_it_finds_and_says_what_it_is(
    service: CacheMiddleware, database_url: str, engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    rename_a_column_in_a_newer_schema(engine)
    told = f"The database has schema 9999; this version knows up to {newest_revision()}."
    with client_of(database_url) as client:
        assert [client.get(path).status_code for path in ("/readyz", "/sizes", "/regions")] == [200] * 3
        assert refused(client, "/sources") == f"{told} Replace it by the version that migrated the database."
        assert [client.get(path).status_code for path in ("/readyz", "/sizes?limit=3")] == [200] * 2
    assert len([record for record in caplog.records if record.getMessage().startswith(told)]) == 1


@pytest.mark.first_database
def test_commands_beside_a_newer_schema_write_nothing_and_say_what_it_is(
    service: CacheMiddleware, engine: Engine, database_url: str
) -> None:
    rename_a_column_in_a_newer_schema(engine)
    for words in (("ingest", "regions", str(PROJECT / "seeds/regions.csv")), ("sources",), ("migrate",)):
        done = run_command(database_url, *words)
        assert done.returncode == 4, done.stderr
        assert f"has schema 9999; this version knows up to {newest_revision()}." in done.stderr
        assert "run `vmsizes migrate`" not in done.stderr


@pytest.mark.takes_seconds
def test_a_stopped_postgresql_is_reported_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with ExitStack() as running:
        url = running.enter_context(postgres_running())
        engine = make_engine(url)
        migrations.upgrade(engine)
        ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
        engine.dispose()
        with client_of(url) as client:
            assert [client.get(path).status_code for path in ("/sizes", "/conflicts", "/readyz")] == [200] * 3
            running.close()
            # Those whose total is zero, lists of sizes and fits may need no more than what is kept.
            asked = ("/changes", "/sizes/standard_x1/facts", "/sources")
            told = {client.get(path).json()["detail"] for path in asked}
            wait_until(lambda: client.get("/readyz").status_code == 503)
            told |= {
                refused(client, path) for path in ("/readyz", "/sizes?limit=4", "/regions", "/readyz", "/sizes.csv")
            }
            # Until the revision was to be read again, what is kept is as new as ever.
            wait_until(lambda: "away" in client.get("/sizes").headers["cache-status"])
            kept = client.get("/sizes")
            assert kept.status_code == 200
            assert re.fullmatch(
                r'vmsizes; hit; ttl=-\d+; detail="the database is away, .*"', kept.headers["cache-status"]
            )
            assert int(kept.headers["age"]) >= 0
            assert client.get("/readyz").headers["retry-after"] == "5"
            assert client.get("/healthz").status_code == 200
    assert all(
        detail.startswith("The database cannot be reached: it closed the connection") or detail == GONE
        for detail in told
    )
    assert GONE in told
    errors = [record.message for record in caplog.records if record.levelname == "ERROR" and "outages" in record.name]
    assert len(errors) == 1
    assert not any(record.exc_info for record in caplog.records)


GONE = "The database cannot be reached: nothing listens at its socket."


@pytest.mark.takes_seconds
def test_the_command_line_reports_an_outage_without_the_password() -> None:
    url = "postgresql://someone:secret@127.0.0.1:1/none"
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": url}
    done = subprocess.run([program, "search"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "The database cannot be reached: connection refused" in done.stderr
    assert "migrate" not in done.stderr
    assert "secret" not in done.stderr
    with client_of(url) as client:
        for path in ("/readyz", "/sizes"):
            assert refused(client, path) == "The database cannot be reached: connection refused."


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("no database " * 1000)
    told = {
        "x.db": "The database cannot be reached: its file is not a database.",
        "no/where.db": "There is no database file yet; run `vmsizes migrate`, then `vmsizes ingest seeds`.",
    }
    for file, detail in told.items():
        with client_of(f"sqlite:///{tmp_path / file}") as client:
            for path in ("/readyz", "/sizes", "/conflicts"):
                assert refused(client, path) == detail


@pytest.mark.parametrize("file", sorted((MIGRATIONS / "versions").glob("0*.py")), ids=lambda file: file.name)
def test_the_name_of_a_migration_starts_with_its_number(file: Path) -> None:
    assert f'revision = "{file.name.partition("_")[0]}"\n' in file.read_text()
