"""The tools answer from one revision, from the snapshot that the API of the process has of it if there is one."""

from dataclasses import replace
from typing import Any

import anyio
import pytest
from sqlalchemy import Engine

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_snapshot
from app.db import executors
from app.db.databases import Database
from app.errors import Busy
from app.ingest.run import ingest
from app.mcp.catalog import MAX_THREADS, CatalogReader, RevisionInfo
from app.questions import answer
from tests.conftest import TODAY
from tests.factories import NOW, reading, size


def used_by(database: Database, *served: CatalogSnapshot | None) -> list[CatalogSnapshot]:
    """Return the snapshots of questions that are asked while the API has these."""
    now = iter(served)
    reader = CatalogReader(database, lambda: TODAY, served=lambda: next(now))
    try:
        return [anyio.run(reader.run, lambda catalog, _: catalog.snapshot) for _ in served]
    finally:
        reader.close()


@pytest.fixture
def served(seeded_database: Database) -> CatalogSnapshot:
    with seeded_database.connect() as reader:
        return load_snapshot(reader)


def test_columns_of_the_api_are_not_loaded_again(seeded_database: Database, served: CatalogSnapshot) -> None:
    assert all(used is served for used in used_by(seeded_database, served, served))


def test_a_snapshot_of_another_revision_is_not_used(seeded_database: Database, served: CatalogSnapshot) -> None:
    outdated = replace(served, revision="0-of-an-hour-ago")
    first, second, third = used_by(seeded_database, outdated, None, served)
    assert first.revision == served.revision
    assert first is second
    assert third is served


def test_what_a_question_has_asked_of_the_database_is_kept_for_the_next(seeded_database: Database) -> None:
    reader, asked = CatalogReader(seeded_database, lambda: TODAY), list[str]()

    def ask_database() -> str:
        asked.append("database")
        return "answer"

    def ask(catalog: Catalog, _revision: RevisionInfo) -> str:
        return catalog.keep("question", ask_database)

    try:
        assert [anyio.run(reader.run, ask) for _ in range(2)] == ["answer", "answer"]
    finally:
        reader.close()
    assert asked == ["database"]


def test_a_question_is_asked_again_where_an_ingest_commits_meanwhile(engine: Engine, database: Database) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    reader, pages = CatalogReader(database, lambda: TODAY), list[list[str]]()

    def ask(catalog: Catalog, revision: RevisionInfo) -> Any:
        page = answer(catalog, "GET /sizes", SizeSearch())
        pages.append([item["name"] for item in page["items"]])
        if len(pages) == 1:
            ingest(engine, reading(size("Standard_X2", vcpus=8)), now=NOW)
        return revision["revision"]

    try:
        assert anyio.run(reader.run, ask) == 2
    finally:
        reader.close()
    assert pages == [["Standard_X1"], ["Standard_X2"]]


def test_a_tool_says_that_too_many_wait(seeded_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "MAX_WAITING", -MAX_THREADS)
    reader = CatalogReader(seeded_database, lambda: TODAY)
    with pytest.raises(Busy, match="Retry in some seconds"):
        anyio.run(reader.run, lambda _catalog, revision: revision)
    reader.close()
