"""Offers, derived from the price history at each ingest: what holds on a day, and the best of it for each size."""

from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from app.catalog.keep.store import Change, save_rows
from app.catalog.models import BestOffer, Offer, Price
from app.catalog.offers import OFFERED, PURCHASES, cheapest
from app.catalog.tables import table_of

_KEY = ("size_key", "region", "os")


def save_offers(session: Session, today: date) -> Change:
    """Derive the offers that hold on a day, and the best of each size; write those that differ."""
    offers = (dict(row) for row in session.execute(_in_force(today)).mappings())
    change = save_rows(session, Offer, offers, whole=True)
    best = [
        {"purchase": purchase, **{name: row[name] for name in ("size_key", "os", *OFFERED)}}
        for purchase in PURCHASES
        for row in session.execute(select(cheapest(table_of(Offer), purchase, ("size_key", "os")))).mappings()
    ]
    save_rows(session, BestOffer, best, whole=True)
    return change


def _in_force(today: date) -> Select[Any]:
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
