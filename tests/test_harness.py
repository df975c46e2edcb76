"""The test harness itself: isolated databases, shared read-only ones, a real server."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import DBAPIError
from starlette.types import Receive, Scope, Send

from app.db.engines import make_engine
from app.settings import PROJECT
from tests.conftest import pytest_configure
from tests.databases import Databases, SqliteFiles, make_read_only
from tests.servers import get, server
from tests.workers import LONGEST, TOGETHER

A_SOURCE = text("insert into source (id, title, publisher, kind, sha256) values ('a', 'A', 'B', 'third_party', '')")


@pytest.mark.parametrize("_run", ["first", "second"])
def test_no_test_sees_the_rows_of_another(engine: Engine, _run: str) -> None:
    with engine.begin() as connection:
        assert connection.scalar(text("select count(*) from source")) == 0
        connection.execute(A_SOURCE)


def test_a_copy_holds_the_rows_of_the_original(databases: Databases, database_url: str) -> None:
    original = make_engine(database_url)
    with original.begin() as connection:
        connection.execute(A_SOURCE)
    original.dispose()
    copy = make_engine(databases.copy(database_url))
    with copy.connect() as connection:
        assert connection.scalar(text("select id from source")) == "a"
    copy.dispose()


def test_a_shared_database_refuses_to_be_written(database_url: str) -> None:
    shared = make_engine(database_url)
    make_read_only(shared)
    with shared.connect() as connection:
        assert connection.scalar(text("select count(*) from source")) == 0
        with pytest.raises(DBAPIError, match=r"(?i)read-?only"):
            connection.execute(A_SOURCE)
    shared.dispose()


def test_what_tests_share_is_of_the_kind_of_the_test(databases: Databases, template_url: str) -> None:
    kind = "sqlite" if isinstance(databases, SqliteFiles) else "postgresql"
    assert make_url(template_url).get_backend_name() == kind


def test_a_run_that_asks_for_an_unknown_database_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.databases.SELECTED_KINDS", ("sqlite", "oracle"))
    with pytest.raises(pytest.UsageError, match="choose from sqlite, postgresql"):
        pytest_configure()


OF_A_WORKER = """
import os, signal
def test_passes(): pass
def test_fails(): assert 1 == 2
def test_kills_its_process(): os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("name", "code", "shown"),
    [
        ("test_fails", pytest.ExitCode.TESTS_FAILED, "1 failed, 1 passed"),
        ("test_kills_its_process", pytest.ExitCode.INTERNAL_ERROR, "a worker ended with -9 at test_of_a_worker.py"),
    ],
)
def test_workers_report_what_fails_and_what_ends_them(tmp_path: Path, name: str, code: int, shown: str) -> None:
    file = tmp_path / "test_of_a_worker.py"
    file.write_text(OF_A_WORKER)
    command = [sys.executable, "-m", "pytest", "-p", "tests.workers", "-c", os.devnull, f"--rootdir={tmp_path}"]
    command += [f"{file}::test_passes", f"{file}::{name}"]
    run = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stdout
    assert shown in run.stdout


def test_what_is_begun_first_is_there() -> None:
    assert [name for name in (*LONGEST, *TOGETHER) if not (PROJECT / name).exists()] == []


def test_a_server_answers_over_http_and_goes_through_its_lifespan() -> None:
    seen = []

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        seen.append("up")
        yield
        seen.append("down")

    app = FastAPI(lifespan=lifespan)
    app.get("/ping")(lambda: "pong")
    with server(app) as base_url:
        assert get(f"{base_url}/ping").json() == "pong"
    assert seen == ["up", "down"]
    with pytest.raises(httpx.ConnectError):
        get(f"{base_url}/ping")


def test_a_server_that_cannot_start_is_an_error() -> None:
    async def broken(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "lifespan.startup.failed", "message": "no catalog"})

    with pytest.raises(RuntimeError, match="did not start"), server(broken):
        pass


def test_the_service_is_served_for_tests_that_ask_for_a_client(client: httpx.Client) -> None:
    assert client.get("/healthz").status_code == 200
