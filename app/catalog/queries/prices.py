"""Prices: those in force on a day, or all there ever were, of one size or of many."""

from dataclasses import replace
from datetime import date
from typing import Any, TypeVar

from pydantic import Field

from app.catalog.queries.cursors import Place, write_cursor
from app.catalog.queries.filters import asked_filters
from app.catalog.queries.gpu_filters import resolve_gpus
from app.catalog.queries.lookups import check_regions
from app.catalog.queries.naming import find_keys
from app.catalog.queries.pagination import Listing, read_place
from app.catalog.queries.params import AnyOf, Day, Os, Page, Purchase, Question, Regions, Truth
from app.catalog.queries.price_rows import PRICE_FILTERS, PRICE_ORDER, READ, PriceShape, price_count, price_page
from app.catalog.queries.rendering import age_days
from app.catalog.queries.sizes import known_series
from app.catalog.queries.snapshot import Known
from app.catalog.queries.walks import still
from app.db.statements import Ask, Row
from app.db.statements import Question as Answering
from app.errors import BadQuestion, NotFound


class PriceFilter(Question):
    """Which prices, of whatever size."""

    region: Regions = Field(default=(), description="In this region; in any of several.", examples=[["eastus"]])
    os: Os | None = Field(default=None, description="Of this operating system.")
    purchase: Purchase | None = Field(default=None, description="Of this purchase model.")
    as_of: Day | None = Field(
        default=None, description="In force on this day; default: today.", examples=["2026-07-01"]
    )
    history: Truth = Field(
        default=False, description="Every price up to that day, not only the one in force.", examples=[False]
    )


class PriceSearch(PriceFilter, Page):
    """Which prices of a size."""


class PriceScope(PriceFilter):
    """Which prices, and of which sizes."""

    size: AnyOf = Field(
        default=(), description="Of this size, by any of its names; of any of several.", examples=[["nd40rs_v2"]]
    )
    series: AnyOf = Field(
        default=(), description="Of the sizes of a series, by its id or name; of any of several.", examples=[["ndv2"]]
    )
    gpu: AnyOf = Field(
        default=(), description="Of sizes with this GPU: a name or a glob, as GET /sizes takes it.", examples=[["A100"]]
    )


class AllPricesSearch(PriceScope, PriceSearch):
    """A page of prices."""


Scope = TypeVar("Scope", bound=PriceScope)


def find_prices(name: str, search: PriceSearch, known: Known, today: date) -> Answering[Listing]:
    """Find a size's prices by region, system and purchase model; raises NotFound, or BadQuestion for a region."""
    keys = yield from find_keys((name,))
    check_regions(known.regions, "region", search.region)
    given = search.model_fields_set | {"size"}
    found = yield from _page(AllPricesSearch.model_construct(given, **dict(search), size=keys), known, today)
    items = [{column: value for column, value in item.items() if column != "size"} for item in found.items]
    return replace(found, items=items)


def find_all_prices(search: AllPricesSearch, known: Known, today: date) -> Answering[Listing]:
    """Find prices by size, region, system and purchase model; raises BadQuestion for a size, series or region."""
    settled = yield from settle_prices(search, known)
    found = yield from _page(settled, known, today)
    return found


def settle_prices(scope: Scope, known: Known) -> Answering[Scope]:
    """Bring sizes and series to the catalog's own keys, and refuse what is unknown here."""
    check_regions(known.regions, "region", scope.region)
    try:
        keys = (yield from find_keys(scope.size)) if scope.size else ()
    except NotFound as unknown:
        raise BadQuestion("size", unknown.name, f"{unknown} GET /sizes lists them.") from None
    gpus = resolve_gpus(known.gpus, scope.gpu)
    return scope.model_copy(update={"size": keys, "series": known_series(scope.series, known), "gpu": gpus})


def price_shape(scope: PriceScope, today: date) -> tuple[PriceShape, dict[str, Any]]:
    """The shape of a question that was settled, and the values of its parameters."""
    filters, values = asked_filters(scope, PRICE_FILTERS, PRICE_FILTERS)
    return PriceShape(filters=filters, history=scope.history), values | {"day": (scope.as_of or today).isoformat()}


def _page(search: AllPricesSearch, known: Known, today: date) -> Answering[Listing]:
    shape, values = price_shape(search, today)
    question = f"prices {search.model_dump_json(exclude=search.of_page())} {today}"
    counted = price_count(shape)
    values |= {"limit": search.limit + 1}
    place = read_place(search.cursor, question, PRICE_ORDER) if search.cursor else None
    rows = yield Ask(price_page(replace(shape, after=place is not None)), values | _at(place))
    revision = known.revision if place is None else (yield from still(place))
    total = known.total_of(question)
    if total is None:
        ((total,),) = yield Ask(counted, values)
        known.learn_total(question, total)
    page = rows[: search.limit]
    following = write_cursor(question, revision, _place(page[-1])) if len(rows) > len(page) else None
    items = [shown_price(row[:-1], today) for row in page]
    return Listing(items=items, next_cursor=following, total=total)


def shown_price(row: Row, today: date) -> dict[str, Any]:
    """A price as it is shown, with the days that have passed since it was known to hold."""
    shown = dict(zip(READ, row, strict=True))
    return shown | {"price_age_days": age_days(shown["valid_from"], today)}


def _at(place: Place | None) -> dict[str, Any]:
    values = enumerate(place.values if place is not None else ())
    return {f"at_{index}": value.isoformat() if isinstance(value, date) else value for index, value in values}


def _place(row: Row) -> list[Any]:
    """Where a row stands, by PRICE_KEY: the key of its size is its last column."""
    _, region, os, purchase, valid_from, *_, key = row
    return [key, region, os, purchase, date.fromisoformat(valid_from)]
