"""Prices: those in force on a day, or all there ever were, of one size or of many."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, TypeVar

from pydantic import Field
from sqlalchemy import Date, Double, Integer, Select, String, bindparam, cast, exists, func, select
from sqlalchemy.sql import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.fields import FieldKind
from app.catalog.models import Price
from app.catalog.queries.filters import FILTERS, ActiveFilter, Filter, active_filters, any_of, equals, filter_condition
from app.catalog.queries.lookups import check_regions, get_size_keys, resolve_gpus
from app.catalog.queries.pagination import (
    CursorPosition,
    Listing,
    SortKey,
    after_cursor,
    ensure_same_revision,
    read_position,
    write_cursor,
)
from app.catalog.queries.params import (
    Day,
    JsonBool,
    LowerTextSet,
    OfferParams,
    Os,
    PageParams,
    Purchase,
    QueryParams,
    RegionSet,
)
from app.catalog.queries.price_scope import GPU, SIZE, PriceScope
from app.catalog.queries.sizes import age_days, resolve_series
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, Row, Statement, cached_statement
from app.db.statements import QueryPlan as Answering
from app.errors import BadQuery, NotFound

PRICE = table_of(Price)
price = PRICE.c

PRICE_COLUMNS: Mapping[str, FieldKind] = {
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

PRICE_ROW_COLUMNS = tuple(name for name in PRICE_COLUMNS if name != "price_age_days")
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
PRICE_ORDER = [SortKey(name=name, expression=price[name], nullable=False) for name in PRICE_KEY]
_DAY = bindparam("day", type_=Date)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceStatementKey:
    """All of a question about prices but its values; `after` says that a page begins behind a place."""

    filters: tuple[ActiveFilter, ...]
    history: bool
    after: bool = False


@cached_statement(64)
def price_page_statement(shape: PriceStatementKey) -> Statement:
    """Take one page; rows are READ, then the key of the size."""
    query = _rows(shape).add_columns(price.size_key)
    if shape.after:
        place = [bindparam(f"at_{index}", type_=price[name].type) for index, name in enumerate(PRICE_KEY)]
        query = query.where(after_cursor(PRICE_ORDER, place))
    return Statement(query.limit(bindparam("limit", type_=Integer)))


@cached_statement(64)
def price_list_statement(shape: PriceStatementKey) -> Statement:
    """Take all; rows are READ."""
    return Statement(_rows(shape))


@cached_statement(64)
def price_count_statement(shape: PriceStatementKey) -> Statement:
    """Count all: with the history each price, else each offer that had one by the day."""
    counted = select(*(price[name] for name in (PRICE_KEY if shape.history else OFFER_KEY)))
    named = {asked.name for asked in shape.filters}
    found = _joined(counted, named).where(price.valid_from <= _DAY, *_conditions(shape))
    return Statement(select(func.count()).select_from((found if shape.history else found.distinct()).subquery()))


def _rows(shape: PriceStatementKey) -> Select[tuple[object, ...]]:
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


def _conditions(shape: PriceStatementKey) -> list[ColumnElement[bool]]:
    ground = PriceScope.of(OfferParams())  # nothing that is asked of prices stands on offers
    return [filter_condition(asked, ground, PRICE_FILTERS) for asked in shape.filters]


def _joined(query: Select[tuple[object, ...]], named: set[str]) -> Select[tuple[object, ...]]:
    """Join the size, and its GPU, only where something of them is used."""
    query = query.select_from(PRICE)
    if named & {"size", "series", "gpu"}:
        query = query.join(SIZE, SIZE.c.key == price.size_key)
    return query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True) if "gpu" in named else query


class PriceFilter(QueryParams):
    """Which prices, of whatever size."""

    region: RegionSet = Field(default=(), description="In this region; in any of several.", examples=[["eastus"]])
    os: Os | None = Field(default=None, description="Of this operating system.")
    purchase: Purchase | None = Field(default=None, description="Of this purchase model.")
    as_of: Day | None = Field(
        default=None, description="In force on this day; default: today.", examples=["2026-07-01"]
    )
    history: JsonBool = Field(
        default=False, description="Every price up to that day, not only the one in force.", examples=[False]
    )


class PriceSearch(PriceFilter, PageParams):
    """Which prices of a size."""


class AllPricesFilter(PriceFilter):
    """Which prices, and of which sizes."""

    size: LowerTextSet = Field(
        default=(), description="Of this size, by any of its names; of any of several.", examples=[["nd40rs_v2"]]
    )
    series: LowerTextSet = Field(
        default=(), description="Of the sizes of a series, by its id or name; of any of several.", examples=[["ndv2"]]
    )
    gpu: LowerTextSet = Field(
        default=(), description="Of sizes with this GPU: a name or a glob, as GET /sizes takes it.", examples=[["A100"]]
    )


class AllPricesSearch(AllPricesFilter, PriceSearch):
    """A page of prices."""


Scope = TypeVar("Scope", bound=AllPricesFilter)


def find_prices(name: str, search: PriceSearch, snapshot: CatalogSnapshot, today: date) -> Answering[Listing]:
    """Find a size's prices by region, system and purchase model; raises NotFound, or BadQuestion for a region."""
    keys = yield from get_size_keys((name,))
    check_regions(snapshot.regions, "region", search.region)
    given = search.model_fields_set | {"size"}
    found = yield from _page(AllPricesSearch.model_construct(given, **dict(search), size=keys), snapshot, today)
    items = [{column: value for column, value in item.items() if column != "size"} for item in found.items]
    return replace(found, items=items)


def find_all_prices(search: AllPricesSearch, snapshot: CatalogSnapshot, today: date) -> Answering[Listing]:
    """Find prices by size, region, system and purchase model; raises BadQuestion for a size, series or region."""
    settled = yield from normalize_prices(search, snapshot)
    found = yield from _page(settled, snapshot, today)
    return found


def normalize_prices(scope: Scope, snapshot: CatalogSnapshot) -> Answering[Scope]:
    """Bring sizes and series to the catalog's own keys, and refuse what is unknown here."""
    check_regions(snapshot.regions, "region", scope.region)
    try:
        keys = (yield from get_size_keys(scope.size)) if scope.size else ()
    except NotFound as unknown:
        raise BadQuery("size", unknown.name, f"{unknown} GET /sizes lists them.") from None
    gpus = resolve_gpus(snapshot.gpus, scope.gpu)
    return scope.model_copy(update={"size": keys, "series": resolve_series(snapshot.series, scope.series), "gpu": gpus})


def to_price_statement_key(scope: AllPricesFilter, today: date) -> tuple[PriceStatementKey, dict[str, Any]]:
    """The shape of a question that was settled, and the values of its parameters."""
    filters, values = active_filters(scope, PRICE_FILTERS, PRICE_FILTERS)
    return PriceStatementKey(filters=filters, history=scope.history), values | {
        "day": (scope.as_of or today).isoformat()
    }


def _page(search: AllPricesSearch, snapshot: CatalogSnapshot, today: date) -> Answering[Listing]:
    shape, values = to_price_statement_key(search, today)
    question = f"prices {search.model_dump_json(exclude=search.page_param_names())} {today}"
    counted = price_count_statement(shape)
    values |= {"limit": search.limit + 1}
    place = read_position(search.cursor, question, PRICE_ORDER) if search.cursor else None
    rows = yield BoundStatement(price_page_statement(replace(shape, after=place is not None)), values | _at(place))
    revision = snapshot.revision if place is None else (yield from ensure_same_revision(place))
    total = snapshot.cached_total(question)
    if total is None:
        ((total,),) = yield BoundStatement(counted, values)
        snapshot.remember_total(question, total)
    page = rows[: search.limit]
    following = write_cursor(question, revision, _place(page[-1])) if len(rows) > len(page) else None
    items = [to_price_item(row[:-1], today) for row in page]
    return Listing(items=items, next_cursor=following, total=total)


def to_price_item(row: Row, today: date) -> dict[str, Any]:
    """A price as it is shown, with the days that have passed since it was known to hold."""
    shown = dict(zip(PRICE_ROW_COLUMNS, row, strict=True))
    return shown | {"price_age_days": age_days(shown["valid_from"], today)}


def _at(place: CursorPosition | None) -> dict[str, Any]:
    values = enumerate(place.values if place is not None else ())
    return {f"at_{index}": value.isoformat() if isinstance(value, date) else value for index, value in values}


def _place(row: Row) -> list[Any]:
    """Where a row stands, by PRICE_KEY: the key of its size is its last column."""
    _, region, os, purchase, valid_from, *_, key = row
    return [key, region, os, purchase, date.fromisoformat(valid_from)]
