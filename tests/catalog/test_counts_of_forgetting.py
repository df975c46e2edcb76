from collections.abc import Mapping

import pytest
from sqlalchemy import Engine

from app.catalog.store.upsert import TableChange
from app.ingest.run import forget, ingest
from tests.factories import NOW, reading, size, source

pytestmark = pytest.mark.first_database


def counts(changes: Mapping[str, TableChange], name: str) -> tuple[int, int, int]:
    return changes[name].changed, changes[name].unchanged, changes[name].removed


def test_a_removed_size_counts_once(engine: Engine) -> None:
    ingest(engine, reading([*size("X1", vcpus=8, series="X1"), *size("X2", vcpus=16, series="X1")]), now=NOW)
    notes = [*size("X1", by="notes", vcpus=9), *size("X9", by="notes", vcpus=4, series="X9")]
    ingest(engine, reading(notes, sources=[source("notes", kind="third_party")]), now=NOW)
    changes = forget(engine, "notes", now=NOW).summary.changes
    assert counts(changes, "size") == (1, 1, 1)
    assert counts(changes, "series") == (0, 1, 1)
