"""Offers as they are asked for: in one region, in the cheapest of several, or in the cheapest of all."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Select,
    Subquery,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
)

from app.catalog.models import Price
from app.catalog.tables import table_of

PURCHASES = ("on_demand", "spot")
ANYWHERE = "*"
"""The region of the offers of the cheapest of all regions."""

PRICES = tuple(f"{purchase}_{what}" for purchase in PURCHASES for what in ("usd_per_hour", "as_of", "approximate_date"))
"""What an offer says of the price of each purchase model."""

RATIOS = ("usd_per_gpu_hour", "usd_per_gpu_gib_hour")
"""What a GPU, and a GiB of its memory, costs at an offer; exact, and rounded once."""

SPOT_DAYS = 366
"""A spot price changes from month to month: one that is known from longer ago is history and no offer."""

_KEY = ("size_key", "region", "os")
COPIES = ("gpu_count", "gpu_memory_gib", "preview", "withdrawn", "retirement_date")
"""What an offer repeats of its size, so that a list is filtered without looking at the size."""

UNKNOWN = float("inf")
"""The rank of an offer whose price nobody knows: it comes last."""


def spot_since(day: date) -> date:
    """The earliest day whose spot prices are offers on another."""
    return day - timedelta(days=SPOT_DAYS)


def is_offer(price: Any, since: ColumnElement[date]) -> ColumnElement[bool]:
    """Whether a price may be an offer: a spot price must be known from an exact day, and not from before `since`."""
    return or_(price.purchase != "spot", and_(price.approximate_date.is_(False), price.valid_from >= since))


def cheapest(offers: FromClause, each: Sequence[str]) -> Subquery:
    """Of offers by one purchase model the first of each; among equals the first region."""
    place = func.row_number().over(
        partition_by=[offers.c[name] for name in each], order_by=(offers.c.rank_usd, offers.c.priced_in)
    )
    ranked = select(*offers.c, place.label("place")).subquery()
    return select(*(ranked.c[column.name] for column in offers.c)).where(ranked.c.place == 1).subquery("offer")


def offers_on(purchase: str, day: ColumnElement[date], since: ColumnElement[date]) -> Subquery:
    """The prices in force on a day of each size, region and system, ranked by one purchase model."""
    priced = _in_force(day, since).subquery().c
    rank = rank_of(cast(priced[f"{purchase}_usd_per_hour"], Double)).label("rank_usd")
    known = [priced[name] for name in (*_KEY, *PRICES)]
    return select(*known, rank, priced.region.label("priced_in")).subquery()


def rank_of(usd: ColumnElement[float]) -> ColumnElement[float]:
    """The place of a price: unknown ones come last."""
    return func.coalesce(usd, literal(UNKNOWN, Double))


def _in_force(day: ColumnElement[date], since: ColumnElement[date]) -> Select[Any]:
    """Of each price the newest that is in force, one column a purchase model."""
    price = table_of(Price).c
    newest = func.row_number().over(
        partition_by=[*(price[name] for name in _KEY), price.purchase], order_by=price.valid_from.desc()
    )
    ranked = select(*price, newest.label("age")).where(price.valid_from <= day, is_offer(price, since)).subquery().c
    columns: list[ColumnElement[Any]] = [ranked[name] for name in _KEY]
    for purchase in PURCHASES:
        of_this = ranked.purchase == purchase
        columns += [
            func.max(ranked.usd_per_hour).filter(of_this).label(f"{purchase}_usd_per_hour"),
            func.max(ranked.valid_from).filter(of_this).label(f"{purchase}_as_of"),
            (func.max(cast(ranked.approximate_date, Integer)).filter(of_this) == 1).label(
                f"{purchase}_approximate_date"
            ),
        ]
    return select(*columns).where(ranked.age == 1).group_by(*(ranked[name] for name in _KEY))
