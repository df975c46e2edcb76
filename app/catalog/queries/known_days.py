"""The days between which it matters what was known: before the first no price was, from the last on all are."""

from dataclasses import dataclass
from datetime import date
from functools import partial

from sqlalchemy import func, select

from app.catalog.in_force import LIST, PRICE
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Statement, cached_statement


@dataclass(frozen=True, slots=True)
class KnownDays:
    """The days on which the catalog took in its first and its last price or list of prices."""

    first: date
    last: date


_KNOWN_DAYS = "known days"


def find_known_days(snapshot: CatalogSnapshot) -> QueryPlan[KnownDays | None]:
    """Find between which days it matters what was known; None in a small catalog, or where it is not kept yet."""
    if snapshot.small:
        return None
    if not snapshot.has(_KNOWN_DAYS):
        snapshot.columns.want(_KNOWN_DAYS, partial(_load_known_days, snapshot))
        return None
    return (yield from _load_known_days(snapshot))


def _load_known_days(snapshot: CatalogSnapshot) -> QueryPlan[KnownDays]:
    return snapshot.keep(_KNOWN_DAYS, _read_known_days)


def _read_known_days() -> QueryPlan[KnownDays]:
    ((first, *last),) = yield BoundStatement(_known_days_statement(), {})
    return KnownDays(first or date.max, max((day for day in last if day is not None), default=date.min))


@cached_statement(1)
def _known_days_statement() -> Statement:
    of_lists = select(func.max(LIST.c.known_from)).scalar_subquery()
    return Statement(select(func.min(PRICE.c.known_from), func.max(PRICE.c.known_from), of_lists))
