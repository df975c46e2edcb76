"""The same seeds give the same digest on every database and from every folder."""

from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine

from app.catalog.store.revisions import compute_digest, latest_revision
from app.db import migrations
from app.db.engines import make_engine
from app.db.engines import read_session as reads
from app.ingest.registry import read_seeds, relative_to
from app.ingest.run import ingest
from tests.seeds.conftest import SEEDS


def test_any_database_gets_the_same_digest(seeded_engine: Engine, tmp_path: Path) -> None:
    with reads(seeded_engine) as session:
        theirs, revision = compute_digest(session), latest_revision(session)
    ours = make_engine(f"sqlite:///{tmp_path / 'own.db'}")
    migrations.upgrade(ours)
    reading = relative_to(SEEDS, read_seeds(SEEDS))
    assert not any(str(SEEDS) in str(report) for report in reading.reports)
    first = ingest(ours, reading, now=datetime.now(UTC))
    second = ingest(ours, reading, now=datetime.now(UTC))
    with reads(ours) as session:
        assert compute_digest(session) == theirs
    ours.dispose()
    assert revision is not None
    assert first.revision["digest"] == second.revision["digest"] == revision["digest"] == theirs[0]
    assert all(not change.has_changes for change in second.summary.changes.values())
