"""Search sizes, and render each as JSON text.

Rows become JSON text without objects: `size_json` and `offer` hold the size and its offer as JSON that was written at
ingest. The statements are in `app.catalog.queries.size_statements`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from itertools import islice
from typing import Any, TypeVar

import orjson

from app.catalog.adjustments import Rules
from app.catalog.projections import NO_OFFER_JSON, OFFER_JSON_FIELDS
from app.catalog.queries.exchange_rates import (
    CurrencyRate,
    convert_prices,
    exchange_rate_json,
    find_exchange_rate,
)
from app.catalog.queries.filters import (
    FILTERS,
    active_filters,
    check_sort,
    sort_names,
    to_sort_keys,
)
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.lookups import check_gpu_vendor, check_regions, get_size_keys, resolve_gpus, resolve_series
from app.catalog.queries.pagination import (
    CursorPosition,
    ensure_same_revision,
    read_position,
    write_cursor,
)
from app.catalog.queries.params import (
    DatedSelection,
    SizeList,
    SizeParams,
    SizeSearch,
    SizeSelection,
    check_days,
)
from app.catalog.queries.price_scope import (
    PriceScope,
    PriceScopeKey,
    price_parameters,
)
from app.catalog.queries.region_places import place_regions
from app.catalog.queries.size_sets import IS_SET, NATURAL_NAME, SizeQuestion, SortColumn, place_after
from app.catalog.queries.size_statements import StatementKey, size_statement
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, short_if
from app.db.statements import BoundStatement, Row, Rows
from app.errors import BadQuery, CatalogChanged, NotFound

STATUS_AND_OFFER_FIELDS = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""The fields of a size after those of its own JSON, in order."""

RENDERED_COLUMNS = 3
"""How many columns a row is rendered from."""


def render_size(row: Row, today: date) -> str:
    """Render a size as JSON text from a row that begins with its JSON, its status and its offer (None for no offer)."""
    size_json, status, offer = row[:RENDERED_COLUMNS]
    offer = offer or NO_OFFER_JSON
    # The JSON of an offer ends with `"price_as_of":"2026-09-01"}`, or with null.
    age = age_days(offer[-12:-2], today) if offer[-2] == '"' else "null"
    return f'{size_json[:-1]},"status":"{status}",{offer[1:-1]},"price_age_days":{age}}}'


@lru_cache(maxsize=4096)
def age_days(day: str, today: date) -> int:
    """Return how many days have passed since an ISO day; cached, as there are only as many days as price lists."""
    return (today - date.fromisoformat(day)).days


def render_converted_size(row: Row, today: date, rate: CurrencyRate) -> str:
    """Render a size as `render_size` does, with its prices in the currency of the rate at the end."""
    size = render_size(row, today)
    converted = convert_prices(json.loads(size, parse_float=Decimal), rate)
    return f'{size[:-1]},"converted":{orjson.dumps(converted, default=float).decode()}}}'


T = TypeVar("T")
SelectionT = TypeVar("SelectionT", bound=SizeSelection)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPage:
    """A page of sizes, each as JSON text; the cursor of the next page (None at the end); how many there are in all.

    `exchange_rate` is that of a page that has its prices in another currency, too; `cursor` is that of a page that was
    found by its offset. `no_price` is there where no size has a price. `unknown` counts sizes that may match, by the
    unknown figure of theirs that a filter is on.
    """

    items: list[str]
    next_cursor: str | None
    total: int
    exchange_rate: CurrencyRate | None = None
    cursor: str | None = None
    no_price: NoPrice | None = None
    unknown: Mapping[str, int] = field(default_factory=dict)


def render_page(page: JsonPage) -> str:
    """Render a page of sizes."""
    cursor, rate = orjson.dumps(page.next_cursor).decode(), page.exchange_rate
    end = f',"exchange_rate":{exchange_rate_json(rate)}' if rate is not None else ""
    if page.no_price is not None:
        end += f',"no_price":{orjson.dumps(page.no_price).decode()}'
    total = f'"total":{page.total},"unknown":{orjson.dumps(page.unknown).decode()}'
    return f'{{"items":[{",".join(page.items)}],"next_cursor":{cursor},{total}{end}}}'


@short_if(lambda search, **_more: not search.names_a_day)
def find_sizes(catalog: Catalog, search: SizeSearch, *, offset: int = 0, natural: bool = False) -> JsonPage:
    """Find one page of a search; raises BadQuery for a name that the catalog does not have, and CursorGone.

    `offset` skips sizes: pages for people are numbered, which cursors are not. With `natural` a list by name has D2
    before D16, as people read it; cursors are always of the order of letters.
    """
    check_days(search, catalog.today)
    search = normalize(search, catalog.snapshot)
    priced_on = search.as_of or catalog.today
    rate = find_exchange_rate(catalog, search.currency, priced_on)
    identity = search.model_dump_json(exclude=search.page_param_names())
    if search.names_a_day:
        identity = f"{identity} {catalog.today}"
    check_sort(search.sort)
    position = None
    if search.cursor:
        position = read_position(
            search.cursor, identity, to_sort_keys(search.sort, PriceScope.of(search, catalog.snapshot.rules))
        )
        ensure_same_revision(catalog, position)
    question = SizeQuestion(catalog, search)
    places, total, columns = _first_places(question, search, position, offset, natural=natural)
    shown, more = places[offset:][: search.limit], len(places) > offset + search.limit
    rows = _read_rows(catalog, question, shown)

    def cursor_at(place: int) -> str:
        return write_cursor(identity, catalog.snapshot.revision, [column.values[place] for column in columns])

    if rate is None:
        items = [render_size(row, catalog.today) for row in rows]
    else:
        items = [render_converted_size(row, catalog.today, rate) for row in rows]
    note = None if any(map(_has_price, rows)) else explain_no_price(catalog, search)
    return JsonPage(
        items=items,
        next_cursor=cursor_at(shown[-1]) if more else None,
        total=total,
        exchange_rate=rate,
        cursor=cursor_at(places[offset - 1]) if offset and shown else None,
        no_price=note,
        unknown={name: sizes.bit_count() for name, sizes in question.undecided().items()},
    )


def read_sizes(catalog: Catalog, selection: DatedSelection, names: Sequence[str]) -> list[str]:
    """Return sizes as JSON text at the prices of a selection. Those without an offer are left out."""
    question = SizeQuestion(catalog, normalize(selection, catalog.snapshot))
    keys = get_size_keys(catalog, names, catalog.snapshot.series)
    offered = question.offered()
    places = [place for place in map(question.sets.place_of, keys) if offered >> place & 1]
    return [render_size(row, catalog.today) for row in _read_rows(catalog, question, places)]


def _has_price(row: Row) -> bool:
    """Return whether a row that a page is rendered from has a price under the purchase model of the search."""
    offer = row[RENDERED_COLUMNS - 1]
    return offer is not None and '"usd_per_hour":null' not in offer


def _first_places(
    question: SizeQuestion, search: SizeSearch, position: CursorPosition | None, offset: int, *, natural: bool
) -> tuple[list[int], int, list[SortColumn]]:
    """Find the places of a page, with those that its offset skips and the one behind it; the total; the sort keys."""
    matching = question.found()
    names = sort_names(search.sort)
    columns = question.sort_columns(names)
    if natural and names[0].removeprefix("-") == "name":
        names = [names[0].replace("name", NATURAL_NAME)]
    order = question.order(names)
    start = place_after(order, columns, position.values) if position is not None else 0
    flags = question.sets.flags(matching)
    listed = (place for place in islice(order, start, None) if flags[place] == IS_SET)
    return list(islice(listed, offset + search.limit + 1)), matching.bit_count(), columns


def _read_rows(catalog: Catalog, question: SizeQuestion, places: Sequence[int]) -> Rows:
    """Read the rows that sizes are rendered from, unless they are kept; raises CatalogChanged."""
    kept = catalog.snapshot.rows.of(question.priced_by)
    keys = [question.sets.keys[place] for place in places]
    missing = [key for key in keys if key not in kept]
    read: dict[str, Row] = {}
    if missing:
        read = {row[0]: row[1:] for row in catalog.fetch(question.rows_of(missing))}
        if len(read) != len(missing):
            raise CatalogChanged
        catalog.when_confirmed(partial(catalog.snapshot.rows.add, question.priced_by, read))
    return [read[key] if key in read else kept[key] for key in keys]


@short_if(lambda _name, params: not params.names_a_day)
def find_size(catalog: Catalog, name: str, params: SizeParams) -> str:
    """Return one size by any of its names as JSON text, with its cheapest on-demand Linux price; raises NotFound."""
    check_days(params, catalog.today)
    everywhere = DatedSelection(as_of=params.as_of, known_at=params.known_at)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    values = {"key": key, **price_parameters(everywhere, catalog.today)}
    rows = catalog.fetch(BoundStatement(size_statement(PriceScopeKey.of(everywhere, catalog.snapshot.rules)), values))
    if not rows:  # an ingest removed it after its name was looked up
        raise NotFound("size", name)
    (row,) = rows
    rate = find_exchange_rate(catalog, params.currency, params.as_of or catalog.today)
    if rate is None:
        return render_size(row, catalog.today)
    size = render_converted_size(row, catalog.today, rate)
    return f'{size[:-1]},"exchange_rate":{exchange_rate_json(rate)}}}'


def normalize(selection: SelectionT, snapshot: CatalogSnapshot) -> SelectionT:
    """Replace names of series and GPUs by those of the catalog; raises BadQuery for one that the catalog lacks."""
    check_regions(snapshot.regions, "region", selection.region)
    check_regions(snapshot.regions, "available_in", selection.available_in)
    selection = place_regions(selection, snapshot.regions)
    zones = getattr(selection, "min_zones", None)
    if zones is not None and len(selection.region) != 1:
        raise BadQuery("min_zones", zones, "needs region with one region, whose zones are counted")
    if selection.gpu_vendor is not None:
        check_gpu_vendor(snapshot.gpus, selection.gpu_vendor)
    # What the client did not give stays out of the model's set fields, by which active_filters goes.
    update: dict[str, Any] = {"series": resolve_series(snapshot.series, selection.series)} if selection.series else {}
    update |= {"gpu": resolve_gpus(snapshot.gpus, selection.gpu)} if selection.gpu else {}
    return selection.model_copy(update=update) if update else selection


def to_statement_key(search: SizeList, today: date, rules: Rules) -> tuple[StatementKey, dict[str, Any]]:
    """Return the key of a normalized list's statement, and the statement's parameters; raises BadQuery for its sort."""
    check_sort(search.sort)
    filters, values = active_filters(search, FILTERS)
    key = StatementKey(price_scope=PriceScope.of(search, rules), filters=filters, sort=search.sort)
    return key, values | price_parameters(search, today)
