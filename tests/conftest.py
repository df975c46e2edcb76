"""What tests ask for by name: a test that names a database runs once on each kind of `VMSIZES_TEST_DATABASES`."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine

from app import schema
from app.db import make_engine
from tests.databases import CHOSEN, START, Databases, versions


def pytest_configure() -> None:
    """Stop a run that would leave out a database without being asked to."""
    try:
        versions()
    except RuntimeError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header() -> str:
    """Say what the tests run on."""
    return f"databases: {versions()}"


@pytest.fixture(scope="session", params=CHOSEN)
def databases(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    """One kind of database, running."""
    with START[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="session")
def template_url(databases: Databases) -> str:
    """A database with the schema and nothing else, to be copied."""
    url = databases.create()
    engine = make_engine(url)
    schema.upgrade(engine)
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
    """A database of one's own, with the schema and no rows."""
    url = databases.copy(template_url)
    yield url
    databases.drop(url)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    """An engine for a database of one's own, with the schema and no rows."""
    engine = make_engine(database_url)
    yield engine
    engine.dispose()
