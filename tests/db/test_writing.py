"""Writers of one database take turns, and say what they wait for."""

import threading
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.catalog.store.revisions import latest_revision
from app.db import migrations
from app.db.engines import make_engine, read_session
from app.db.writing import WriterBusy, set_wait, write_session
from app.ingest.run import ingest
from tests.command_line import run_command
from tests.factories import NOW, price, reading, size
from tests.waiting import LONGEST_SECONDS, wait_until


def test_a_second_ingest_waits_for_the_first_and_both_are_kept(engine: Engine, database_url: str) -> None:
    second, waits = make_engine(database_url), []

    def ingest_second() -> None:
        ingest(second, reading(size("Standard_X2", vcpus=8)), now=NOW, progress=lambda doing, *_: waits.append(doing))

    thread = threading.Thread(target=ingest_second)
    with write_session(engine):
        thread.start()
        wait_until(lambda: waits)
        assert thread.is_alive()
    thread.join(timeout=LONGEST_SECONDS)
    assert not thread.is_alive()
    assert waits[0] == "waiting up to 300 s for another ingest or migration"
    ingest(engine, reading(size("Standard_X3", vcpus=8)), now=NOW)
    with read_session(engine) as session:
        newest = latest_revision(session)
    assert newest is not None
    assert newest["number"] == 2
    second.dispose()


def test_a_writer_that_has_read_first_waits_as_well(engine: Engine, database_url: str) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=(price("X1", "2"),)), now=NOW)
    engines = [make_engine(database_url) for _ in range(4)]
    failures: list[Exception] = []

    def write(number: int) -> None:
        try:
            ingest(engines[number], reading(size(f"Standard_Y{number}", vcpus=number + 1)), now=NOW)
        except Exception as error:  # noqa: BLE001  # the assertion shows it
            failures.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(engines))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with read_session(engine) as session:
        newest = latest_revision(session)
    assert newest is not None
    assert newest["number"] == 5
    for one in engines:
        one.dispose()


def test_a_bound_on_the_wait_ends_it(engine: Engine, database_url: str) -> None:
    second = make_engine(database_url)
    set_wait(second, 0)
    with write_session(engine), pytest.raises(WriterBusy, match="is writing"):
        ingest(second, reading(size("Standard_X2", vcpus=8)), now=NOW)
    with write_session(engine), pytest.raises(WriterBusy, match="is writing"):
        migrations.upgrade(second)
    ingest(second, reading(size("Standard_X2", vcpus=8)), now=NOW)
    second.dispose()


def test_a_command_says_what_it_waited_for(engine: Engine, database_url: str) -> None:
    with write_session(engine):
        done = run_command(database_url, "migrate", "--wait", "0.5")
    assert done.returncode == 4
    assert " ".join(done.stderr.split()) == (
        "error: Another ingest or migration has been writing for over 0.5 s. "
        "Try again when it has ended, or wait longer with --wait."
    )
    assert run_command(database_url, "migrate", "--wait", "0").returncode == 0


def test_a_schema_of_a_newer_version_is_refused_with_what_to_install(engine: Engine, database_url: str) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("update alembic_version set version_num = '9001'")
    done = run_command(database_url, "migrate")
    assert done.returncode == 4
    assert "The database has schema 9001; this version knows up to" in " ".join(done.stderr.split())
    assert "Install the version that migrated it or a later one" in " ".join(done.stderr.split())


def only_on_postgresql(engine: Engine) -> None:
    if engine.dialect.name != "postgresql":
        pytest.skip("SQLite runs its statements in the process that is killed, and has no cursors to plan")


def test_cursors_of_a_writer_are_planned_for_all_their_rows(engine: Engine) -> None:
    only_on_postgresql(engine)

    def fraction(session: Any) -> float:
        return float(session.execute(text("show cursor_tuple_fraction")).scalar_one())

    with write_session(engine) as session:
        assert fraction(session) == 1
    with read_session(engine) as session:
        assert fraction(session) == 0.1
