"""Prices as SQL: a walk along the key of the table, so that neither a page nor an export sorts or gathers anything."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Date, Double, Integer, Select, String, bindparam, cast, exists, func, select
from sqlalchemy.sql import ColumnElement

from app.catalog.fields import Kind
from app.catalog.models import Price
from app.catalog.queries.filters import FILTERS, Asked, Filter, any_of, condition, equals
from app.catalog.queries.pagination import Term, beyond
from app.catalog.queries.params import OfferScope
from app.catalog.queries.price_scope import GPU, SIZE, Ground
from app.catalog.tables import table_of
from app.db.statements import Statement, by_shape

PRICE = table_of(Price)
price = PRICE.c

PRICE_COLUMNS: Mapping[str, Kind] = {
    "size": "text",
    "region": "text",
    "os": "text",
    "purchase": "text",
    "valid_from": "date",
    "usd_per_hour": "number",
    "approximate_date": "boolean",
    "source_id": "text",
    "price_age_days": "integer",
}
"""The columns of a price in the order of the list, each with its kind; its age is reckoned from `valid_from`."""

READ = tuple(name for name in PRICE_COLUMNS if name != "price_age_days")
"""The columns of a row of a query."""

PRICE_FILTERS: Mapping[str, Filter] = {
    "size": any_of(price.size_key),
    "series": FILTERS["series"],
    "gpu": FILTERS["gpu"],
    "region": any_of(price.region),
    "os": equals(price.os),
    "purchase": equals(price.purchase),
}
"""Every filter of prices by its name, but for the day and `history`."""

OFFER_KEY = ("size_key", "region", "os", "purchase")
PRICE_KEY = (*OFFER_KEY, "valid_from")
PRICE_ORDER = [Term(name=name, expression=price[name], nullable=False) for name in PRICE_KEY]
_DAY = bindparam("day", type_=Date)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceShape:
    """All of a question about prices but its values; `after` says that a page begins behind a place."""

    filters: tuple[Asked, ...]
    history: bool
    after: bool = False


@by_shape(64)
def price_page(shape: PriceShape) -> Statement:
    """Take one page; rows are READ, then the key of the size."""
    query = _rows(shape).add_columns(price.size_key)
    if shape.after:
        place = [bindparam(f"at_{index}", type_=price[name].type) for index, name in enumerate(PRICE_KEY)]
        query = query.where(beyond(PRICE_ORDER, place))
    return Statement(query.limit(bindparam("limit", type_=Integer)))


@by_shape(64)
def price_list(shape: PriceShape) -> Statement:
    """Take all; rows are READ."""
    return Statement(_rows(shape))


@by_shape(64)
def price_count(shape: PriceShape) -> Statement:
    """Count all: with the history each price, else each offer that had one by the day."""
    counted = select(*(price[name] for name in (PRICE_KEY if shape.history else OFFER_KEY)))
    named = {asked.name for asked in shape.filters}
    found = _joined(counted, named).where(price.valid_from <= _DAY, *_conditions(shape))
    return Statement(select(func.count()).select_from((found if shape.history else found.distinct()).subquery()))


def _rows(shape: PriceShape) -> Select[tuple[object, ...]]:
    shown = [
        SIZE.c.name.label("size"),
        *(price[name] for name in ("region", "os", "purchase")),
        cast(price.valid_from, String).label("valid_from"),
        cast(price.usd_per_hour, Double).label("usd_per_hour"),
        price.approximate_date,
        price.source_id,
    ]
    query = _joined(select(*shown), {"size", *(asked.name for asked in shape.filters)})
    query = query.where(price.valid_from <= _DAY, *_conditions(shape))
    if not shape.history:
        query = query.where(~_replaced())
    return query.order_by(*(price[name] for name in PRICE_KEY))


def _replaced() -> ColumnElement[bool]:
    """Whether a newer price of the same offer is in force."""
    newer = PRICE.alias("newer").c
    same = [newer[name] == price[name] for name in OFFER_KEY]
    return exists().where(*same, newer.valid_from > price.valid_from, newer.valid_from <= _DAY)


def _conditions(shape: PriceShape) -> list[ColumnElement[bool]]:
    ground = Ground.of(OfferScope())  # nothing that is asked of prices stands on offers
    return [condition(asked, ground, PRICE_FILTERS) for asked in shape.filters]


def _joined(query: Select[tuple[object, ...]], named: set[str]) -> Select[tuple[object, ...]]:
    """Join the size, and its GPU, only where something of them is used."""
    query = query.select_from(PRICE)
    if named & {"size", "series", "gpu"}:
        query = query.join(SIZE, SIZE.c.key == price.size_key)
    return query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True) if "gpu" in named else query
