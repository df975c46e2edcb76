"""A page does not depend on the kind of database."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind of database."""
    return single_database
