"""The same seeds give the same digest on every database and from every folder."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from app.catalog.models import Size
from app.catalog.store.revisions import compute_digest, latest_revision
from app.db import migrations
from app.db.engines import make_engine
from app.db.engines import read_session as reads
from app.ingest.registry import read_seeds, relative_to
from app.ingest.run import ingest
from tests.factories import NOW
from tests.seeded import run_program, seeded_sqlite_url


def test_an_ingest_gives_the_same_digest_on_any_database(
    few_sizes_url: str, few_size_seeds: Path, tmp_path: Path
) -> None:
    sqlite = f"sqlite:///{tmp_path / 'few.db'}"
    engine = make_engine(sqlite)
    migrations.upgrade(engine)
    ingest(engine, relative_to(few_size_seeds, read_seeds(few_size_seeds)), now=NOW)
    engine.dispose()
    content, revision = digests(few_sizes_url)
    assert content == revision
    assert digests(sqlite) == (content, revision)


def test_any_database_computes_the_same_digest_of_the_same_rows(seeded_url: str) -> None:
    content, of_sqlite = digests(seeded_url)  # PostgreSQL has the row of the revision from SQLite
    assert content == of_sqlite


@pytest.mark.slow  # `make test` ingests them on SQLite, and PostgreSQL gets the rows by COPY
def test_all_seeds_give_the_same_digest_and_rows_on_any_database(database_url: str) -> None:
    run_program(database_url, "ingest", "seeds")
    assert digests(database_url) == digests(seeded_sqlite_url())
    assert row_counts(database_url) == row_counts(seeded_sqlite_url())


def row_counts(url: str) -> dict[str, int]:
    """Return how many rows each table has."""
    engine = make_engine(url)
    with reads(engine) as session:
        counts = {
            table.name: session.execute(select(func.count()).select_from(table)).scalar_one()
            for table in Size.metadata.sorted_tables
        }
    engine.dispose()
    return counts


def digests(url: str) -> tuple[str, str]:
    """Return the digest of what a catalog contains, and that of its revision."""
    engine = make_engine(url)
    with reads(engine) as session:
        content, revision = compute_digest(session), latest_revision(session)
    engine.dispose()
    assert revision is not None
    return content[0], revision["digest"]


@pytest.mark.one_database  # that prices are written again without a change is tested in tests/catalog, on each kind
def test_seeds_read_again_in_another_folder_change_nothing(
    few_sizes_url: str, few_size_seeds: Path, tmp_path: Path
) -> None:
    engine = make_engine(few_sizes_url)
    with reads(engine) as session:
        before = latest_revision(session)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(few_size_seeds)
    reading = relative_to(elsewhere, read_seeds(elsewhere))
    assert not any(str(tmp_path) in str(report) for report in reading.reports)
    again = ingest(engine, reading, now=datetime.now(UTC))
    engine.dispose()
    assert before is not None
    assert again.revision["digest"] == before["digest"]
    assert all(not change.has_changes for change in again.summary.changes.values())
