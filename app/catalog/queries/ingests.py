"""When each source was last part of an ingest that changed the catalog, and how each feed was refreshed last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import desc, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import FeedRun, Revision

MAX_REVISIONS = 500
"""How many of the newest revisions are read."""
MAX_SOURCES = 1_000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRefresh:
    """The last refresh of a feed, and when one last succeeded; None for never."""

    feed: str
    ended_at: datetime
    succeeded_at: datetime | None

    @property
    def has_failed(self) -> bool:
        """Whether the last one was refused or could not be fetched, in part at least."""
        return self.succeeded_at is None or self.succeeded_at < self.ended_at


def load_feed_refreshes(session: Session) -> Sequence[FeedRefresh]:
    """Load the last refresh of each feed that was refreshed, by name."""
    run = table_of(FeedRun).c
    rows = session.execute(select(run.feed, run.ended_at, run.succeeded_at).order_by(run.feed))
    return [FeedRefresh(feed=row.feed, ended_at=row.ended_at, succeeded_at=row.succeeded_at) for row in rows]
