"""The tools ask what the API answers, which is tested on both databases; here one kind is enough."""

from collections.abc import Iterator

import pytest

from app.db.databases import Database
from app.mcp.catalog import CatalogReader
from tests.conftest import TODAY
from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind of database."""
    return single_database


@pytest.fixture(scope="session")
def catalog(seeded_database: Database) -> Iterator[CatalogReader]:
    """The seeded catalog on TODAY."""
    reader = CatalogReader(seeded_database, lambda: TODAY)
    yield reader
    reader.close()
