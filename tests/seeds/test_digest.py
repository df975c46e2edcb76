"""The same seeds give the same digest on every database and from every folder."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.catalog.store.revisions import compute_digest, latest_revision
from app.db.engines import make_engine
from app.db.engines import read_session as reads
from app.ingest.registry import read_seeds, relative_to
from app.ingest.run import ingest
from tests.seeded import seeded_sqlite_url


def test_any_database_gets_the_same_digest(seeded_engine: Engine) -> None:
    with reads(seeded_engine) as session:
        content, revision = compute_digest(session), latest_revision(session)
    sqlite = make_engine(seeded_sqlite_url())
    with reads(sqlite) as session:
        expected = latest_revision(session)
    sqlite.dispose()
    assert revision is not None
    assert expected is not None
    assert content[0] == revision["digest"] == expected["digest"]


@pytest.mark.one_database  # that prices are written again without a change is tested in tests/catalog, on each kind
def test_seeds_read_again_in_another_folder_change_nothing(
    few_prices_url: str, few_price_seeds: Path, tmp_path: Path
) -> None:
    engine = make_engine(few_prices_url)
    with reads(engine) as session:
        before = latest_revision(session)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.symlink_to(few_price_seeds)
    reading = relative_to(elsewhere, read_seeds(elsewhere))
    assert not any(str(tmp_path) in str(report) for report in reading.reports)
    again = ingest(engine, reading, now=datetime.now(UTC))
    engine.dispose()
    assert before is not None
    assert again.revision["digest"] == before["digest"]
    assert all(not change.has_changes for change in again.summary.changes.values())
