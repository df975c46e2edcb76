"""Walks over pages: all of them are of one revision, so that each row comes once, or the walk is refused."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.models import Revision
from app.catalog.queries.cursors import Place
from app.catalog.tables import table_of
from app.db.statements import Ask, Question, Statement, answer
from app.errors import CursorGone

_REVISION = table_of(Revision).c
_NEWEST = Statement(select(_REVISION.number, _REVISION.digest).order_by(_REVISION.number.desc()).limit(1), short=True)


def newest_revision() -> Question[str]:
    """The mark of the revision that holds: its number, which only grows, and the begin of its digest."""
    rows = yield Ask(_NEWEST, {})
    return "-".join(f"{part}"[:8] for part in rows[0]) if rows else ""


def revision_of(session: Session) -> str:
    """The mark of the revision that holds; a walk is begun with it before its first page is read."""
    return answer(session, newest_revision())


def still(place: Place) -> Question[str]:
    """See, after a page was read, that nothing has changed since the page before; raises CursorGone."""
    now = yield from newest_revision()
    if now != place.revision:
        raise CursorGone(place.revision, now)
    return now
