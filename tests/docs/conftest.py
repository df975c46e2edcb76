"""The guide runs on one kind of database; tests of the API show that both give the same answers."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind of database: the guide applies to both."""
    return single_database
