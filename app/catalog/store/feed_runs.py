"""Notes how the refresh of a feed ended, also one that failed and changed nothing else."""

from datetime import datetime

from sqlalchemy.orm import Session

from app.catalog.models import FeedRun


def save_feed_run(session: Session, feed: str, ended_at: datetime, *, succeeded: bool) -> None:
    """Note when a feed was refreshed last; when it last succeeded stays as it is where this one did not."""
    run = session.get(FeedRun, feed)
    if run is None:
        run = FeedRun(feed=feed, ended_at=ended_at)
        session.add(run)
    run.ended_at = ended_at
    if succeeded:
        run.succeeded_at = ended_at
