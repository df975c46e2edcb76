"""Today's prices side by side: what priced search and fit run on, derived from the price history."""

from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from app.catalog.models import Offer, Price
from app.catalog.store import Change, save_rows, table_of

PURCHASES = ("on_demand", "spot")
_KEY = ("size_key", "region", "os")


def save_offers(session: Session, today: date) -> Change:
    """Derive the offers that hold on a day and write those that differ."""
    return save_rows(session, Offer, (dict(row) for row in session.execute(_current(today)).mappings()), whole=True)


def _current(today: date) -> Select[Any]:
    """Of each price the newest that is in force, one column a purchase model."""
    price = table_of(Price).c
    newest = func.row_number().over(
        partition_by=[*(price[name] for name in _KEY), price.purchase], order_by=price.valid_from.desc()
    )
    ranked = select(*price, newest.label("age")).where(price.valid_from <= today).subquery().c
    columns: list[ColumnElement[Any]] = [ranked[name] for name in _KEY]
    for purchase in PURCHASES:
        of_this = ranked.purchase == purchase
        columns += [
            func.max(ranked.usd_per_hour).filter(of_this).label(f"{purchase}_usd_per_hour"),
            func.max(ranked.valid_from).filter(of_this).label(f"{purchase}_as_of"),
        ]
    return select(*columns).where(ranked.age == 1).group_by(*(ranked[name] for name in _KEY))
