"""The properties are of the arithmetic: one kind of database is asked."""

import pytest

from tests.databases import Databases


@pytest.fixture(scope="session")
def databases(one_kind: Databases) -> Databases:
    """One kind."""
    return one_kind
