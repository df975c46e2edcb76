"""Fixtures of the API's tests."""

from collections.abc import Iterator

import pytest

from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.factories import NOW, reading, size


@pytest.fixture
def service(database_url: str) -> Iterator[CacheMiddleware]:
    """A service of the test's own, with one size in its catalog."""
    service = create_asgi_app(Settings(_env_file=None, database_url=database_url), today=lambda: TODAY)
    ingest(service.app.state.engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    yield service
    service.app.state.engine.dispose()
