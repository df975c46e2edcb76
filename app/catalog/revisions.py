"""Read which revision of the catalog is the newest."""

from typing import Any

from app.catalog.statements import Statement
from app.catalog.tables import select_all
from app.db.statements import BoundStatement, Reader, fetch, to_dicts

_NEWEST = Statement("select number, digest from revision order by number desc limit 1", short=True)
_LATEST = Statement(f"{select_all('revision')} order by number desc limit 1", short=True)


def current_revision(reader: Reader) -> str:
    """Return the id of the current revision, empty before the first ingest."""
    rows = fetch(reader, BoundStatement(_NEWEST))
    return revision_id(*rows[0]) if rows else ""


def revision_id(number: int, digest: str) -> str:
    """Return the id of a revision: its number, which only grows, and the first digits of its digest."""
    return f"{f'{number}'[:8]}-{digest[:8]}"


def latest_revision(reader: Reader) -> dict[str, Any] | None:
    """Return the newest revision, or None where nothing was ingested yet."""
    query = BoundStatement(_LATEST)
    return next(iter(to_dicts(query, fetch(reader, query))), None)
