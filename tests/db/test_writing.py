"""Writers of one database take turns, and say what they wait for."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from app.catalog.revisions import latest_revision
from app.db import migrations
from app.db.engines import make_engine, read_session
from app.db.errors import WriterBusy
from app.db.writing import set_wait, write_session
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


@pytest.mark.takes_seconds
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


@pytest.mark.takes_seconds
def test_a_killed_ingest_ends_its_statement_and_the_next_one_gets_the_lock(
    engine: Engine, database_url: str, tmp_path: Path
) -> None:
    only_on_postgresql(engine)
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"]), now=NOW)
    with engine.begin() as connection:
        # As a statement over very many rows does, it neither reads from its client nor writes to it.
        connection.exec_driver_sql(
            "create function take_an_hour() returns trigger language plpgsql as "
            "$$ begin perform pg_sleep(3600); return null; end $$"
        )
        connection.exec_driver_sql(
            "create trigger slow before insert on price for each statement execute function take_an_hour()"
        )
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source\n"
        "X1,eastus,linux,on_demand,2,2026-08-01,false,prices\n"
    )
    (tmp_path / "sources.csv").write_text(
        "id,title,publisher,kind,url,published_on\nprices,Prices,us,third_party,,2026-08-01\n"
    )
    command = [str(Path(sys.executable).with_name("vmsizes")), "ingest", "prices", str(prices)]
    killed = subprocess.Popen(command, env={**os.environ, "VMSIZES_DATABASE_URL": database_url})

    def sleeping() -> list[int]:
        query = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
        with engine.connect() as connection:
            return [*connection.execute(text(query)).scalars()]

    wait_until(lambda: sleeping() or killed.poll() is not None)
    assert sleeping()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    wait_until(lambda: not sleeping(), "its statement has to end")
    with engine.begin() as connection:
        connection.exec_driver_sql("drop trigger slow on price")
    done = run_command(database_url, "ingest", "prices", str(prices), "--wait", "0")
    assert done.returncode == 0, done.stderr


def test_a_server_that_does_not_look_for_its_clients_is_written_to_and_that_is_logged_once(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    only_on_postgresql(engine)

    def rename(_connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: Any) -> Any:
        """Ask for a setting that the server does not have, as PostgreSQL 13 does not have that one."""
        return statement.replace("client_connection_check_interval", "client_connection_interval"), parameters

    event.listen(engine, "before_cursor_execute", rename, retval=True)
    with caplog.at_level("INFO", "app.db.writing"):
        for number in (1, 2):
            outcome = ingest(engine, reading(size(f"Standard_X{number}", vcpus=8)), now=NOW)
            assert outcome.revision["number"] == number
    event.remove(engine, "before_cursor_execute", rename)
    (message,) = (record.message for record in caplog.records)
    assert message == (
        "a statement of a killed command goes on in PostgreSQL until it is done: "
        'unrecognized configuration parameter "client_connection_interval"'
    )
