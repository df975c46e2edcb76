"""When each source was last part of an ingest that changed the catalog."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import desc, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Revision

MAX_REVISIONS = 500
"""How many of the newest revisions are read."""
MAX_SOURCES = 200
"""How many sources are told of, those that changed last."""


def load_last_ingests(session: Session) -> Mapping[str, datetime]:
    """Load when each source last changed the catalog, by its id, the newest first; bounded by the two limits above."""
    revision = table_of(Revision).c
    newest = select(revision.created_at, revision.source_ids).order_by(desc(revision.number)).limit(MAX_REVISIONS)
    last: dict[str, datetime] = {}
    for created_at, source_ids in session.execute(newest):
        for source_id in source_ids:
            if len(last) < MAX_SOURCES:
                last.setdefault(source_id, created_at)
    return last
