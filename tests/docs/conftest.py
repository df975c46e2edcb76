"""The guide is tried on one kind of database: that both answer alike is shown where the answers are tested."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(single_database: Databases) -> Databases:
    """One kind: what the guide tells is of both."""
    return single_database
