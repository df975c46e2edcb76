"""Shared fixtures; a test that uses a database runs once on each kind named in `VMSIZES_TEST_DATABASES`."""

import gc
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import pytest
from sqlalchemy import Dialect, Engine, event, make_url

from app.db import migrations
from app.db.databases import Database, open_database
from app.db.engines import make_engine
from app.http import revision
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests import seeded
from tests.databases import SELECTED_KINDS, START, Databases, kind_of, make_read_only, versions
from tests.factories import NOW, reading, size
from tests.servers import open_client, server
from tests.waiting import LONGEST_SECONDS

TODAY = date(2026, 9, 1)
"""The date of the service under test: after the newest price of seeds/, before the next size retires."""


# A deadline for each example would fail tests for what else the machine does: three processes share its cores.
# The examples are the same in each run, so that a run fails for what a change broke.
# `pytest --hypothesis-profile random` looks for new ones. A test that costs much takes a share of a profile's number.
hypothesis.settings.register_profile("random", deadline=None)
hypothesis.settings.register_profile("slow", deadline=None, derandomize=True)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
hypothesis.settings.load_profile("repeatable")

# A service within the process of the tests does not take its database for gone when that process gets no CPU for long.
revision.ANSWER_SECONDS = LONGEST_SECONDS


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --quick for `make test`, and --slow for CI and `make faults`."""
    parser.addoption("--quick", action="store_true", help="leave out the tests that are marked takes_seconds")
    parser.addoption("--slow", action="store_true", help="run also the tests that are marked slow, and more examples")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Choose how many random examples are tried, before the tests are imported."""
    if session.config.getoption("--slow") and not session.config.getoption("--hypothesis-profile"):
        hypothesis.settings.load_profile("slow")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what the options leave out, and what other kinds of database need not run; sort by kind."""
    slow, quick = config.getoption("--slow"), config.getoption("--quick")
    of_first_kind = {"one_database"} if slow else {"one_database", "first_database"}
    left_out = set() if slow else {"slow", "takes_seconds"} if quick else {"slow"}
    kept = [
        item
        for item in items
        if not any(
            mark.name in left_out or (mark.name in of_first_kind and kind_of(item) != SELECTED_KINDS[0])
            for mark in item.iter_markers()
        )
    ]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = sorted(kept, key=lambda item: SELECTED_KINDS.index(kind_of(item)))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """End all fixtures before a test of another kind: what a session shares was made for one kind of database.

    pytest would keep what a test that names no kind takes from one that does.
    """
    if nextitem is not None and kind_of(nextitem) != kind_of(item):
        item.session._setupstate.teardown_exact(None)


def pytest_configure() -> None:
    """Fail the run if a selected database is not available, instead of silently testing fewer."""
    try:
        versions()
    except RuntimeError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    """Return the versions of the databases for the header."""
    return f"databases: {versions()}"


@pytest.fixture(scope="session")
def single_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """The first kind of database; folders whose tests do not depend on the kind override `databases` with it."""
    with START[SELECTED_KINDS[0]](tmp_path_factory.mktemp("one")) as running:
        yield running


@pytest.fixture(scope="session", params=SELECTED_KINDS)
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """One kind of database, started."""
    with START[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def template_url(databases: Databases) -> str:
    """A database with the schema and no rows, to be copied."""
    url = databases.create()
    engine = make_engine(url)
    migrations.upgrade(engine)
    engine.dispose()
    return url


@pytest.fixture
def empty_url(databases: Databases) -> Iterator[str]:
    """A database without a schema."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def empty_engine(empty_url: str) -> Iterator[Engine]:
    """An engine for a database without a schema."""
    engine = make_engine(empty_url)
    yield engine
    engine.dispose()


@pytest.fixture
def database_url(databases: Databases, template_url: str) -> Iterator[str]:
    """A new database with the schema and no rows."""
    url = databases.copy(template_url)
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def reused_engine(template_url: str) -> Iterator[Engine]:
    """An engine that is connected to one database after the other: it compiles each statement only once."""
    engine = make_engine(template_url)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(reused_engine: Engine, database_url: str) -> Iterator[Engine]:
    """An engine for a new database with the schema and no rows."""
    reused_engine.url = make_url(database_url)

    def connect(dialect: Dialect, _record: object, arguments: list[Any], parameters: dict[str, Any]) -> None:
        if dialect.name == "sqlite":
            arguments[0] = reused_engine.url.database
        else:
            parameters["dbname"] = reused_engine.url.database

    event.listen(reused_engine, "do_connect", connect)
    yield reused_engine
    event.remove(reused_engine, "do_connect", connect)
    reused_engine.dispose()


@pytest.fixture
def database(engine: Engine, database_url: str) -> Iterator[Database]:
    """The database of `engine`, to read."""
    database = open_database(database_url)
    yield database
    database.dispose()


@pytest.fixture(scope="session")
def seeded_template_url(databases: Databases) -> str:
    """A database with everything in seeds/; a template must have no connections."""
    return seeded.seeded_url(databases)


@pytest.fixture(scope="session")
def seeded_url(databases: Databases, seeded_template_url: str) -> str:
    """A database with everything in seeds/, shared by all tests for reading."""
    return databases.copy(seeded_template_url)


@pytest.fixture(scope="session")
def all_clouds_url() -> str:
    """A read-only SQLite database with the seeds of all clouds."""
    return seeded.seeded_sqlite_url("all")


@pytest.fixture(scope="session")
def few_size_seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the seeds of documents, and few prices."""
    return seeded.link_few_seeds(tmp_path_factory.mktemp("few"))


@pytest.fixture(scope="session")
def few_sizes_template_url(databases: Databases) -> str:
    """A database with the sizes of documents and few prices, to be copied: what writes to it takes a fraction."""
    return seeded.seeded_url(databases, "few-sizes")


@pytest.fixture
def few_sizes_url(databases: Databases, few_sizes_template_url: str) -> Iterator[str]:
    """A new database with the sizes of documents and few prices, to write to."""
    url = databases.copy(few_sizes_template_url)
    yield url
    databases.drop(url)


@pytest.fixture(scope="session")
def seeded_engine(seeded_url: str) -> Iterator[Engine]:
    """A read-only engine for the seeded database."""
    engine = make_engine(seeded_url)
    make_read_only(engine)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def seeded_database(seeded_url: str) -> Iterator[Database]:
    """The seeded database, to read."""
    database = open_database(seeded_url)
    yield database
    database.dispose()


@pytest.fixture(scope="session")
def base_url(seeded_url: str) -> Iterator[str]:
    """The URL of the service on the seeded database, over real HTTP, on TODAY."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    make_read_only(service.app.state.database)
    with server(service) as url:
        yield url
    service.app.state.database.dispose()


@pytest.fixture(scope="session")
def client(base_url: str) -> Iterator[httpx.Client]:
    """An HTTP client of the service."""
    with open_client(base_url) as client:
        yield client


@pytest.fixture(scope="session")
def clouds_base_url(all_clouds_url: str) -> Iterator[str]:
    """The URL of a service with the seeds of all clouds."""
    with server(create_asgi_app(Settings(_env_file=None, database_url=all_clouds_url), today=lambda: TODAY)) as url:
        yield url


@pytest.fixture(scope="session")
def clouds(clouds_base_url: str) -> Iterator[httpx.Client]:
    """An HTTP client of that service."""
    with open_client(clouds_base_url) as client:
        yield client


@pytest.fixture
def service(engine: Engine, database_url: str) -> Iterator[CacheMiddleware]:
    """A service over a catalog with one size."""
    service = create_asgi_app(Settings(_env_file=None, database_url=database_url), today=lambda: TODAY)
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    yield service
    service.app.state.database.dispose()


def pytest_collection_finish() -> None:
    """Leave what is loaded by now to no later garbage collection, as the program does, and let few be done."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000)
