"""`vmsizes migrate` rebuilds the derived tables that a migration emptied."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import Engine, delete, func, select, text

from app.catalog.column_types import table_of
from app.catalog.models import Offer, SizeJson
from app.catalog.store.revisions import compute_digest
from app.db import migrations
from app.db.engines import read_session
from app.ingest.run import ingest
from app.settings import PROJECT
from tests.command_line import run_command
from tests.factories import NOW, price, reading, size


def migrate(url: str) -> str:
    done = run_command(url, "migrate")
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(engine: Engine) -> list[int]:
    with read_session(engine) as session:
        return [session.execute(select(func.count()).select_from(table_of(model))).scalar_one()
                for model in (Offer, SizeJson)]  # fmt: skip


@pytest.mark.takes_seconds
@pytest.mark.parametrize("older", ["0001", "0004"])
def test_a_catalog_of_an_older_schema_is_whole_after_it(engine: Engine, database_url: str, older: str) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=(price("X1", "2"),)), now=NOW)
    before = rows(engine)
    migrations.downgrade(engine, older)
    migrations.upgrade(engine)
    assert rows(engine) == [0, 0]
    engine.dispose()
    assert migrate(database_url) == (
        f"Derived tables were rebuilt: {before[0]} offers.\nThe database has the newest schema.\n"
    )
    assert rows(engine) == before
    assert migrate(database_url) == "The database has the newest schema.\n"
    with engine.begin() as connection:
        connection.execute(delete(table_of(SizeJson)))
    assert migrate(database_url).startswith(f"Derived tables were rebuilt: {before[0]} offers.")
    outcome = ingest(engine, reading(prices=(price("X1", "3"),)), now=NOW)
    with read_session(engine) as session:
        assert outcome.revision["digest"] == compute_digest(session)[0]


@pytest.mark.parametrize("arguments", [("ingest", "seeds"), ("refresh", "exchange-rates", "--file", "missing.zip")])
def test_a_newer_schema_is_refused_before_anything_is_read(
    engine: Engine, database_url: str, arguments: tuple[str, ...]
) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    engine.dispose()
    done = run_command(database_url, *arguments)
    assert (done.returncode, "The database has schema 9999" in done.stderr) == (4, True), done.stderr
    assert "reading" not in done.stderr


def test_commands_on_an_older_schema_say_to_migrate(engine: Engine, database_url: str, tmp_path: Path) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    receipt = tmp_path / "receipt.json"
    assert run_command(database_url, "show", "x1", "--receipt", str(receipt)).returncode == 0
    migrations.downgrade(engine, "-1")
    engine.dispose()
    for arguments in (
        ("search",),
        ("observations", "list"),
        ("webhooks", "deliver"),
        ("export", "regions"),
        ("verify", str(receipt)),
        ("verify", str(receipt), "--database", database_url),
        ("ingest", "seeds"),
        ("ingest", "regions", str(PROJECT / "seeds/regions.csv")),
    ):
        done = run_command(database_url, *arguments)
        assert (done.returncode, "this program needs" in done.stderr) == (4, True), (arguments, done.stderr)
        assert "run `vmsizes migrate`." in done.stderr
    migrations.downgrade(engine, "base")
    engine.dispose()
    assert "has the schema 0000" in run_command(database_url, "search").stderr


def test_a_new_file_is_for_its_owner_alone_and_one_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    new, present = tmp_path / "new.db", tmp_path / "present.db"
    present.touch(0o640)
    for file, mode in ((new, 0o600), (present, 0o640)):
        migrate(f"sqlite:///{file}")
        with sqlite3.connect(file) as connection:
            connection.execute("create table written as select 1 as figure")
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.glob(f"{file.name}*")}
        assert modes == dict.fromkeys((file.name, f"{file.name}-wal", f"{file.name}-shm"), mode)
        connection.close()
