"""The document of the API is of no database."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind: that both give the same answers, other tests see."""
    return single_database
