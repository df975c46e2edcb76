"""Counts the prices of each source by the day on which they were last observed, at ingest.

All prices of a source are counted again where an ingest may have changed one of them.
"""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import CompoundSelect, delete, select, true, union
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import PRICE
from app.catalog.models import PriceDay
from app.catalog.store.bulk import add_counts
from app.catalog.store.price_runs import STAGED_LIST
from app.catalog.store.prices import STAGED_PRICE
from app.catalog.store.retract import DROPPED_PRICES

DAY = table_of(PriceDay)


def save_price_days(session: Session, sources: Sequence[str] | None = None) -> None:
    """Count the prices of all sources, or of some."""
    if sources is not None and not sources:
        return
    stored, some = (true() if sources is None else table.c.source_id.in_(sources) for table in (DAY, PRICE))
    session.execute(delete(DAY).where(stored))
    add_counts(
        session, DAY, "prices", select(PRICE.c.source_id, PRICE.c.seen_until, PRICE.c.approximate_date).where(some)
    )


def changed_sources(session: Session) -> list[str]:
    """Return the sources of which this ingest changed prices or lists of prices."""
    tables = (STAGED_PRICE, STAGED_LIST, DROPPED_PRICES)
    query: CompoundSelect[Any] = union(*(select(table.c.source_id) for table in tables))
    return list(session.execute(query).scalars())
