"""Stored responses wait for no database, and a bounded number of requests wait for a thread."""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import Any, cast

import pytest
from sqlalchemy import Engine

from app.api.executor import QueryExecutor
from app.db import executors
from app.db.databases import Database
from app.db.executors import ReadingThreads
from app.db.statements import DriverReader, QueueFull
from app.errors import Busy
from app.http import revision
from app.http.revision import PATIENCE_SECONDS, REFRESH_SECONDS, RevisionWatcher
from app.ingest.run import ingest
from tests.conftest import TODAY
from tests.factories import NOW, reading, size
from tests.waiting import LONGEST_SECONDS, until


class OneConnection:
    """A database with one connection: while it is taken, the database answers nobody."""

    def __init__(self, database: Database) -> None:
        self._database, self._taken = database, Lock()

    @contextmanager
    def connect(self) -> Iterator[DriverReader]:
        with self._taken, self._database.connect() as reader:
            yield reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.fixture
def narrow(engine: Engine, database: Database) -> Database:
    """A catalog with one connection."""
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    return cast("Database", OneConnection(database))


ATTEMPTS = 5
"""How often a time may be found too long because the process was paused meanwhile."""


async def seconds_to_refresh(watcher: RevisionWatcher) -> float:
    begun = time.monotonic()
    await watcher.refresh_soon()
    return time.monotonic() - begun


@pytest.mark.takes_seconds
def test_a_database_that_hangs_delays_a_stored_response_once_and_for_a_moment(narrow: Database) -> None:
    async def ask() -> list[float]:
        watcher = RevisionWatcher(narrow, lambda: TODAY, "1")
        try:
            await watcher.refresh()
            kept = watcher.state.generation
            with narrow.connect():
                await asyncio.sleep(2.2 * REFRESH_SECONDS)
                waits = [await seconds_to_refresh(watcher) for _ in range(3)]
            assert watcher.state.generation == kept is not None
            return waits
        finally:
            watcher.close()

    seen = []
    for _ in range(ATTEMPTS):
        first, *others = asyncio.run(ask())
        if first < 3 * PATIENCE_SECONDS and max(others) < PATIENCE_SECONDS / 2:
            return
        seen.append((first, others))
    pytest.fail(f"seconds that each of four requests waited: {seen}")


def test_a_state_that_has_just_expired_is_read_again_behind_the_request(
    narrow: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> None:
        watcher = RevisionWatcher(narrow, lambda: TODAY, "1")
        try:
            before = await watcher.refresh()
            await asyncio.sleep(1.1 * REFRESH_SECONDS)
            monkeypatch.setattr(revision, "REFRESH_SECONDS", LONGEST_SECONDS)  # however long it slept, it is "just"
            await watcher.refresh_soon()
            assert watcher.state is before
            await watcher.refresh()
            assert watcher.state is not before
            assert watcher.is_fresh
        finally:
            watcher.close()

    asyncio.run(ask())


@pytest.mark.takes_seconds
def test_a_read_behind_a_request_ends_with_the_service_without_an_error(
    narrow: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[object] = []

    async def ask() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        watcher = RevisionWatcher(narrow, lambda: TODAY, "1")
        await watcher.refresh()
        await asyncio.sleep(1.1 * REFRESH_SECONDS)
        monkeypatch.setattr(revision, "REFRESH_SECONDS", LONGEST_SECONDS)
        await watcher.refresh_soon()
        watcher.close()
        await asyncio.sleep(0.05)
        gc.collect()

    asyncio.run(ask())
    assert not reported


@pytest.mark.takes_seconds
def test_a_new_revision_is_answered_from_after_a_second(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    monkeypatch.setattr(revision, "PATIENCE_SECONDS", LONGEST_SECONDS)  # for a database that answers late

    async def ask() -> None:
        watcher = RevisionWatcher(database, lambda: TODAY, "1")
        try:
            before = await watcher.refresh()
            ingest(engine, reading(size("Standard_X1", vcpus=16)), now=NOW)
            await asyncio.sleep(2 * REFRESH_SECONDS)
            await watcher.refresh_soon()
            assert watcher.state.generation != before.generation
        finally:
            watcher.close()

    asyncio.run(ask())
    assert 2 * REFRESH_SECONDS <= 1


def test_requests_that_find_the_queue_full_are_told_to_come_again(
    engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "MAX_WAITING", 2)
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    go_on = Event()

    def wait(_reader: DriverReader) -> str:
        go_on.wait(LONGEST_SECONDS)
        return "answered"

    async def ask() -> None:
        threads = ReadingThreads(database, 1)
        jobs = [asyncio.create_task(threads.run(wait)) for _ in range(3)]
        await until(lambda: threads.unfinished == 3)
        with pytest.raises(QueueFull):
            await threads.run(wait)
        go_on.set()
        assert await asyncio.gather(*jobs) == ["answered"] * 3
        assert await threads.run(wait) == "answered"
        threads.close()

    asyncio.run(ask())


def test_an_executor_says_that_it_is_busy(engine: Engine, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)

    async def ask() -> None:
        watcher = RevisionWatcher(database, lambda: TODAY, "1")
        monkeypatch.setattr(executors, "MAX_WAITING", -executors.MAX_READERS)
        executor = QueryExecutor(database, watcher, lambda: TODAY)
        with pytest.raises(Busy, match="Retry"):
            await executor.ask(lambda _catalog: None)
        executor.close()
        watcher.close()

    asyncio.run(ask())
