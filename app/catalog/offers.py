"""Today's prices side by side: derived from the price history, and found again for the regions that are asked for."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, Subquery, func, select
from sqlalchemy.orm import Session

from app.catalog.models import BestOffer, Offer, Price
from app.catalog.store import Change, save_rows, table_of

PURCHASES = ("on_demand", "spot")
OFFERED = ("region", "on_demand_usd_per_hour", "on_demand_as_of", "spot_usd_per_hour", "spot_as_of")

_KEY = ("size_key", "region", "os")
_offer, _best = table_of(Offer), table_of(BestOffer)


def save_offers(session: Session, today: date) -> Change:
    """Derive the offers that hold on a day, and the best of each size; write those that differ."""
    offers = (dict(row) for row in session.execute(_in_force(today)).mappings())
    change = save_rows(session, Offer, offers, whole=True)
    best = [
        {"purchase": purchase, **{name: row[name] for name in ("size_key", "os", *OFFERED)}}
        for purchase in PURCHASES
        for row in session.execute(select(_cheapest(_offer, purchase, ("size_key", "os")))).mappings()
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


def _cheapest(offers: FromClause, purchase: str, each: Sequence[str]) -> Subquery:
    """Of the offers of each size the cheapest by a purchase model; an unknown price counts last."""
    price = offers.c[f"{purchase}_usd_per_hour"]
    place = func.row_number().over(
        partition_by=[offers.c[name] for name in each], order_by=(price.is_(None), price, offers.c.region)
    )
    ranked = select(*offers.c, place.label("place")).subquery()
    return select(*(ranked.c[column.name] for column in offers.c)).where(ranked.c.place == 1).subquery()


def offers_for(os: str, purchase: str, regions: Sequence[str]) -> FromClause:
    """One offer a size: in the asked region, in the cheapest of several, or, asked for none, in the cheapest of all.

    Each form reads only what it gives: an index on region and system, or the table of best offers.
    """
    if not regions:
        best = select(_best).where(_best.c.os == os, _best.c.purchase == purchase)
        return best.subquery("offer")
    here = select(_offer).where(_offer.c.os == os, _offer.c.region.in_(regions))
    if len(regions) == 1:
        return here.subquery("offer")
    return select(_cheapest(here.subquery(), purchase, ("size_key",))).subquery("offer")
