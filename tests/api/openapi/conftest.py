"""Fixtures of the tests of the OpenAPI document."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """Use one kind of database: the document does not depend on it."""
    return single_database
