"""What a refresh of exchange rates needs to know of the stored ones."""

from datetime import date

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import ExchangeRate


def load_rate_days(session: Session) -> frozenset[date]:
    """Load the days of which any source has rates."""
    return frozenset(session.execute(select(table_of(ExchangeRate).c.day).distinct()).scalars())
