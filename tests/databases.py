"""The kinds of database that the tests run on; each creates empty databases and copies prepared ones."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection

from app.db.databases import Database
from app.db.engines import make_engine
from app.db.postgresql import PostgresDatabase
from app.db.schema import MIGRATIONS
from app.db.sqlite import SqliteDatabase
from tests.postgres import installation, postgres_running, version

if TYPE_CHECKING:  # `tests.workers` needs none of what the application is made of
    from app.http.middleware import CacheMiddleware

SELECTED_KINDS = tuple(filter(None, os.environ.get("VMSIZES_TEST_DATABASES", "sqlite,postgresql").split(",")))


def schema_of(engine: Engine) -> str | None:
    """The revision of the schema of a database; None where there is none."""
    with engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def is_migrated(engine: Engine) -> bool:
    """Whether a database has the newest schema."""
    return schema_of(engine) == ScriptDirectory(str(MIGRATIONS)).get_current_head()


class Databases(Protocol):
    """Creates, copies and drops databases of one kind, which are named by their URLs."""

    def create(self) -> str:
        """Create an empty database and return its URL."""

    def copy(self, url: str) -> str:
        """Copy a database that has no connections and return the URL of the copy."""

    def drop(self, url: str) -> None:
        """Drop a database and its connections."""


class SqliteFiles:
    """SQLite databases in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._numbers = folder, count(1)

    def create(self) -> str:
        return f"sqlite:///{self._folder / f'{next(self._numbers)}.db'}"

    def copy(self, url: str) -> str:
        copy = self.create()
        log = Path(f"{_file(url)}-wal")
        assert not log.exists() or log.stat().st_size == 0, "all that was written is in the file itself"
        shutil.copyfile(_file(url), _file(copy))
        return copy

    def drop(self, url: str) -> None:
        for ending in ("", "-wal", "-shm"):
            Path(f"{_file(url)}{ending}").unlink(missing_ok=True)


def _file(url: str) -> str:
    file = make_url(url).database
    assert file is not None
    return file


class PostgresServer:
    """PostgreSQL databases on one running server."""

    def __init__(self, maintenance: Engine) -> None:
        self._engine, self._numbers = maintenance, count(1)

    def create(self) -> str:
        return self._create("")

    def copy(self, url: str) -> str:
        return self._create(f' template "{make_url(url).database}" strategy file_copy')

    def drop(self, url: str) -> None:
        self._run(f'drop database "{make_url(url).database}" with (force)')

    def _create(self, clause: str) -> str:
        name = f"test_{next(self._numbers)}"
        self._run(f'create database "{name}"{clause}')
        return self._engine.url.set(database=name).render_as_string(hide_password=False)

    def _run(self, statement: str) -> None:
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(statement))


@contextmanager
def _sqlite(folder: Path) -> Iterator[Databases]:
    yield SqliteFiles(folder)


@contextmanager
def _postgresql(_folder: Path) -> Iterator[Databases]:
    with postgres_running() as maintenance_url:
        engine = make_engine(maintenance_url)
        yield PostgresServer(engine)
        engine.dispose()


START: dict[str, Callable[[Path], AbstractContextManager[Databases]]] = {"sqlite": _sqlite, "postgresql": _postgresql}

VERSIONS: dict[str, Callable[[], str]] = {
    "sqlite": lambda: f"SQLite {sqlite3.sqlite_version}",
    "postgresql": lambda: f"PostgreSQL {'.'.join(map(str, version(installation())))}",
}


def first_on_each_kind(count: int, cases: Iterable[Any]) -> list[Any]:
    """Return parameters of a test: the first `count` are tried on each kind of database, the others on one only.

    For many cases that differ in values, or that are put together from parts which the first have, too.
    """
    return [case if number < count else _marked(case, pytest.mark.first_database) for number, case in enumerate(cases)]


def one_in(step: int, cases: Iterable[Any]) -> list[Any]:
    """Return parameters of a test: every case of number `step` is tried always, the others only with --slow.

    For many cases that run the same lines with other values.
    """
    return [case if number % step == 0 else _marked(case, pytest.mark.slow) for number, case in enumerate(cases)]


def _marked(case: Any, mark: pytest.MarkDecorator) -> Any:
    if isinstance(case, type(pytest.param())):
        return pytest.param(*case.values, marks=[*case.marks, mark], id=case.id)
    return pytest.param(case, marks=mark)


def kind_of(item: pytest.Item) -> str:
    """Return the kind of database that a test is run on: the first where it or its folder needs but one."""
    params: dict[str, str] = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("databases", SELECTED_KINDS[0])


def versions() -> str:
    """Return the selected kinds with their versions; raises RuntimeError for an unknown or missing one."""
    unknown = set(SELECTED_KINDS) - set(VERSIONS)
    if unknown or not SELECTED_KINDS:
        raise RuntimeError(f"VMSIZES_TEST_DATABASES={','.join(SELECTED_KINDS)}: choose from {', '.join(VERSIONS)}.")
    return ", ".join(VERSIONS[name]() for name in SELECTED_KINDS)


def writable(service: "CacheMiddleware") -> Engine:
    """Return an engine that writes to the database of a service, which opens SQLite read-only itself."""
    return make_engine(service.app.state.database.url, pooled=False)


def make_read_only(database: Engine | Database) -> None:
    """Make every connection read-only, for a database that tests share; readers of SQLite are."""
    if isinstance(database, SqliteDatabase):
        return
    engine: Any = database.engine if isinstance(database, PostgresDatabase) else database

    @event.listens_for(engine, "connect")
    def refuse(connection: DBAPIConnection, _record: object) -> None:
        if engine.dialect.name == "postgresql":
            connection.read_only = True
            return
        cursor = connection.cursor()
        cursor.execute("pragma query_only = on")
        cursor.close()
