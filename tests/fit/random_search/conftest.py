"""The properties are of the arithmetic: one kind of database is asked."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind."""
    return single_database
