"""These are properties of the arithmetic, so one kind of database is enough."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind of database."""
    return single_database
