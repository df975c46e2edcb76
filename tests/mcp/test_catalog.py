"""The tools answer from the snapshot that the API of the process has, if it is of the current revision."""

from dataclasses import replace

import anyio
import pytest
from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.mcp.catalog import CatalogReader
from tests.conftest import TODAY


def used_by(engine: Engine, *served: CatalogSnapshot | None) -> list[CatalogSnapshot]:
    """Return the snapshots of questions that are asked while the API has these."""
    now = iter(served)
    reader = CatalogReader(engine, lambda: TODAY, served=lambda: next(now))
    try:
        return [anyio.run(reader.run, lambda catalog, _: catalog.snapshot) for _ in served]
    finally:
        reader.close()


@pytest.fixture
def served(seeded_engine: Engine) -> CatalogSnapshot:
    with Session(seeded_engine) as session:
        return load_snapshot(session)


def test_columns_of_the_api_are_not_loaded_again(seeded_engine: Engine, served: CatalogSnapshot) -> None:
    assert all(used is served for used in used_by(seeded_engine, served, served))


def test_a_snapshot_of_another_revision_is_not_used(seeded_engine: Engine, served: CatalogSnapshot) -> None:
    outdated = replace(served, revision="0-of-an-hour-ago")
    first, second, third = used_by(seeded_engine, outdated, None, served)
    assert first.revision == served.revision
    assert first is second
    assert third is served
