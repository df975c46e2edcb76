"""`vmsizes doctor` says what is wrong with an installation, and what to do."""

import json
import socket
import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from app.catalog.store.revisions import save_feed_run
from app.db import migrations
from app.db.engines import make_engine
from app.db.schema import newest_revision
from app.db.writing import write_session
from app.ingest.registry import parse_clouds
from app.ingest.run import ingest
from app.settings import PROJECT
from tests.cli.conftest import Run
from tests.command_line import run_command
from tests.factories import NOW, price, reading, size
from tests.processes import free_port, run_service

Findings = dict[str, tuple[str, str, str | None]]


def examine(url: str, **options: object) -> tuple[int, Findings]:
    """Return the exit code, and by check the status, what was seen and what to do."""
    done = run_command(url, "doctor", "--json", **options)  # type: ignore[arg-type]  # the options of that
    rows = json.loads(done.stdout)
    return done.returncode, {row["check"]: (row["status"], row["detail"], row["next"]) for row in rows}


@pytest.fixture(autouse=True)
def _free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMSIZES_PORT", str(free_port()))


def test_each_step_of_a_first_installation_is_the_next_one(engine: Engine, database_url: str) -> None:
    migrations.downgrade(engine, "0035")
    code, found = examine(database_url)
    assert (code, found["schema"]) == (4, ("error", f"0035; this version needs {newest_revision()}", "vmsizes migrate"))
    migrations.upgrade(engine)
    code, found = examine(database_url)
    assert (code, found["catalog"]) == (4, ("error", "it is empty", "vmsizes ingest seeds"))
    ingest(engine, reading(size("Standard_X1"), regions=["eastus"], prices=(price("X1", "2"),)), now=NOW)
    code, found = examine(database_url)
    assert (code, found["age"][0], found["age"][2]) == (5, "warning", "vmsizes refresh")
    assert {check: seen[0] for check, seen in found.items() if check != "age"} == dict.fromkeys(
        ("settings", "database", "schema", "catalog", "clock", "temporary files", "fetched pages", "port"), "ok"
    )
    with engine.begin() as connection:
        connection.execute(text("update alembic_version set version_num = '9999'"))
    code, found = examine(database_url)
    assert (code, found["schema"][0]) == (5, "warning")


def test_feeds_that_failed_or_are_overdue_are_named(engine: Engine, database_url: str, run: Run) -> None:
    ingest(engine, reading(size("Standard_X1"), regions=["eastus"], prices=(price("X1", "2"),)), now=NOW)
    with write_session(engine) as session:
        save_feed_run(session, "azure-prices", NOW, succeeded=False)
        save_feed_run(session, "aws-prices", NOW - timedelta(days=400), succeeded=True)
        for feed in ("aws-types", "azure-skus", "azure-docs"):
            save_feed_run(session, feed, NOW, succeeded=False)
    _, found = examine(database_url)
    assert found["feed azure-prices"][::2] == ("warning", "vmsizes refresh azure-prices")
    assert found["feed azure-prices"][1].endswith(", which failed")
    assert found["feed aws-prices"][::2] == ("warning", "vmsizes refresh aws-prices")
    for feed, given in {"aws-types": "--file FILE", "azure-skus": "--file FILE", "azure-docs": "FOLDER"}.items():
        assert found[f"feed {feed}"][2] == f"vmsizes refresh {feed} {given}"
    table = run(database_url, "doctor")
    assert table.stdout.splitlines()[-1] == "First: vmsizes refresh."


def test_a_catalog_of_tomorrow_means_a_wrong_clock(engine: Engine, database_url: str) -> None:
    ingest(engine, reading(size("Standard_X1")), now=NOW + timedelta(days=40_000))
    code, found = examine(database_url)
    assert (code, found["clock"][0]) == (4, "error")


@pytest.mark.one_database
def test_without_a_database_the_rest_is_examined(tmp_path: Path) -> None:
    code, found = examine(f"sqlite:///{tmp_path / 'no.db'}")
    assert code == 4
    assert found["database"] == (
        "error",
        f"There is no database file {tmp_path / 'no.db'}",
        "correct VMSIZES_DATABASE_URL, or run `vmsizes migrate`, then `vmsizes ingest seeds`",
    )
    assert found["port"][0] == "ok"


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("setting", "allowed"),
    [
        ("VMSIZES_WORKERS=many", "expected a whole number"),
        ("VMSIZES_KEEP_ALIVE_SECONDS=nan", "expected a finite number"),
        ("VMSIZES_CACHE_MIB=9999999999", "must be at most 1,048,576"),
        ("VMSIZES_PUBLIC_URL=foo", "must be a URL: https://HOST/PATH"),
        ("VMSIZES_PUBLIC_URL=https://x.example/?a", "must be a URL without ? and #: https://HOST/PATH"),
        (
            "VMSIZES_CLOUDS=azur",
            f"has no seeds in {PROJECT / 'seeds'}; these are {', '.join(parse_clouds('', PROJECT / 'seeds'))}",
        ),
        ("VMSIZES_SEEDS=/nosuch", "is not a folder"),
        ("VMSIZES_WEBHOOK_ALLOWED_NETWORKS=10.1.0.5/16", "has host bits set; the network is 10.1.0.0/16"),
        ("VMSIZES_TRUSTED_PROXIES=10.1.0.5/16", "10.1.0.5/16 has host bits set; the network is 10.1.0.0/16"),
        ("VMSIZES_OTLP_ENDPOINT=collector:4318", "must be a URL: https://HOST/PATH"),
        ("VMSIZES_AZURE_PRICES_URL=ftp://127.0.0.1", "must be a URL: https://HOST/PATH"),
    ],
)
def test_a_setting_that_is_wrong_is_named(
    database_url: str, monkeypatch: pytest.MonkeyPatch, setting: str, allowed: str
) -> None:
    monkeypatch.setenv(*setting.split("=", 1))
    code, found = examine(database_url)
    assert (code, [*found]) == (4, ["settings"])
    assert found["settings"][1] == f"{setting}: {allowed}"


@pytest.mark.one_database
def test_a_url_of_no_database_is_a_setting_that_is_wrong() -> None:
    code, found = examine("mysql://somewhere/x")
    assert (code, [*found]) == (4, ["settings"])
    assert found["settings"][1].startswith("VMSIZES_DATABASE_URL: mysql://… is not supported")


@pytest.mark.one_database
def test_a_host_that_is_not_of_this_machine_is_named(seeded_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("nosuch.invalid", "192.0.2.1"):
        monkeypatch.setenv("VMSIZES_HOST", host)
        status, _, todo = examine(seeded_url)[1]["port"]
        assert (status, todo) == ("error", "correct VMSIZES_HOST"), host


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_port_is_taken_by_a_service_or_by_something_else(
    seeded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_service(seeded_url, tmp_path / "log") as service:
        monkeypatch.setenv("VMSIZES_PORT", str(service.port))
        assert examine(seeded_url)[1]["port"] == ("ok", f"a service answers at {service.url}", None)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.listen()
        taken = listener.getsockname()[1]
        monkeypatch.setenv("VMSIZES_PORT", str(taken))
        status, _, todo = examine(seeded_url)[1]["port"]
    assert (status, todo) == ("error", f"end what listens there, or vmsizes serve --port {taken + 1}")


@pytest.mark.one_database
def test_a_folder_that_cannot_be_written_is_named(
    seeded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("VMSIZES_FEEDS", str(tmp_path / "file"))
    status, _, todo = examine(seeded_url)[1]["fetched pages"]
    assert (status, todo) == ("warning", "give this user the right to write there, or set VMSIZES_FEEDS")


@pytest.mark.one_database
def test_a_file_with_a_damaged_page_is_said_to_be_damaged(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    url = f"sqlite:///{file}"
    engine = make_engine(url)
    migrations.upgrade(engine)
    ingest(engine, reading(size("Standard_X1"), regions=["eastus"], prices=(price("X1", "2"),)), now=NOW)
    engine.dispose()
    assert examine(url)[1]["database"][0] == "ok"
    with sqlite3.connect(file) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        (page,) = connection.execute("select rootpage from sqlite_master where name = 'ix_fact_source_id'").fetchone()
        (page_size,) = connection.execute("pragma page_size").fetchone()
    connection.close()
    with file.open("r+b") as opened:
        opened.seek((page - 1) * page_size)
        opened.write(b"\xff" * page_size)
    code, found = examine(url)
    assert (code, found["database"][0]) == (4, "error")
    assert "is damaged" in found["database"][1]
    assert "restore a copy" in (found["database"][2] or "")
