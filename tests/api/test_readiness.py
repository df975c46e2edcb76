"""A service whose database is not ready says what to do, wherever it is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from sqlalchemy import Engine

from app import schema
from app.api.door.answers import Answers
from app.main import create_service
from app.settings import Settings
from tests.servers import server


@contextmanager
def asking(url: str) -> Iterator[httpx.Client]:
    with server(create_service(Settings(_env_file=None, database_url=url))) as served, httpx.Client() as client:
        client.base_url = served
        yield client


def refused(client: httpx.Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 503
    assert answer.json()["type"] == "/problems/not-ready"
    return str(answer.json()["detail"])


def test_without_tables_it_says_to_migrate_and_to_ingest(empty_url: str) -> None:
    with asking(empty_url) as client:
        assert "run `vmsizes migrate`, then `vmsizes ingest seeds`" in refused(client, "/readyz")
        assert "GET /readyz says what to do" in refused(client, "/sizes")


def test_without_a_catalog_it_says_to_ingest(database_url: str) -> None:
    with asking(database_url) as client:
        assert refused(client, "/readyz") == "The catalog is empty; run `vmsizes ingest seeds`."
        assert "GET /readyz says what to do" in refused(client, "/sizes")


def test_a_schema_older_than_the_program_is_said_to_be_so(service: Answers, database_url: str, engine: Engine) -> None:
    schema.downgrade(engine, "0004")
    with asking(database_url) as client:
        told = f"The database has the schema 0004, and this program needs {schema.newest()}; run `vmsizes migrate`."
        assert refused(client, "/readyz") == told
        assert "GET /readyz says what to do" in refused(client, "/sizes")
    schema.upgrade(engine)
    with asking(database_url) as client:
        assert client.get("/readyz").json()["status"] == "ready"


@pytest.mark.parametrize("file", sorted((schema.MIGRATIONS / "versions").glob("0*.py")), ids=lambda file: file.name)
def test_the_name_of_a_migration_begins_with_its_number(file: Path) -> None:
    assert f'revision = "{file.name.partition("_")[0]}"\n' in file.read_text()
