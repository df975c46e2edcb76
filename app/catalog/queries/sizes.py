"""Search sizes, and render each as JSON text.

Rows become JSON text without objects: `size_json` and `offer` hold the size and its offer as JSON that was written at
ingest. The statements are in `app.catalog.queries.size_statements`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from sqlalchemy.orm import Session

from app.catalog.adjustments import Rules, load_rules
from app.catalog.projections import MAX_MEMORY_BUCKET, NO_OFFER_JSON, OFFER_JSON_FIELDS, memory_bucket
from app.catalog.queries.chosen_sizes import chosen_parameter, chosen_statement
from app.catalog.queries.column_needs import SORTED, ColumnNeeds
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
    to_sort_keys,
)
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.lookups import check_gpu_vendor, check_regions, get_size_keys, resolve_gpus, resolve_series
from app.catalog.queries.pagination import (
    CursorPosition,
    ListQuery,
    ensure_same_revision,
    read_page,
    read_position,
    revision_id,
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
from app.catalog.queries.size_statements import (
    StatementKey,
    count_statement,
    page_statement,
    size_statement,
)
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Rows, run_plan
from app.errors import NotFound

if TYPE_CHECKING:
    from app.catalog.queries.column_lists import ListColumns

STATUS_AND_OFFER_FIELDS = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""The fields of a size after those of its own JSON, in order."""

QUICK_CATALOG = 200_000
"""In a catalog of up to so many sizes a list along a kept order is found in a millisecond."""

RENDERED_COLUMNS = 3
"""A row is rendered from so many columns; behind them a page has the values of its sort keys."""


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
    found by its offset. `no_price` is there where no size has a price.
    """

    items: list[str]
    next_cursor: str | None
    total: int
    exchange_rate: CurrencyRate | None = None
    cursor: str | None = None
    no_price: NoPrice | None = None


def render_page(page: JsonPage) -> str:
    """Render a page of sizes."""
    cursor, rate = orjson.dumps(page.next_cursor).decode(), page.exchange_rate
    end = f',"exchange_rate":{exchange_rate_json(rate)}' if rate is not None else ""
    if page.no_price is not None:
        end += f',"no_price":{orjson.dumps(page.no_price).decode()}'
    return f'{{"items":[{",".join(page.items)}],"next_cursor":{cursor},"total":{page.total}{end}}}'


def find_sizes(search: SizeSearch, snapshot: CatalogSnapshot, today: date, *, offset: int = 0) -> QueryPlan[JsonPage]:
    """Find one page of a search; raises BadQuery for a name that the catalog does not have, and CursorGone.

    `offset` skips so many sizes: pages for people have numbers, which cursors have not.
    """
    check_days(search, today)
    search = normalize(search, snapshot)
    priced_on = search.as_of or today
    rate = yield from find_exchange_rate(search.currency, priced_on)
    identity = search.model_dump_json(exclude=search.page_param_names())
    if search.names_a_day:
        identity = f"{identity} {today}"
    check_sort(search.sort)
    position = None
    if search.cursor:
        position = read_position(
            search.cursor, identity, to_sort_keys(search.sort, PriceScope.of(search, snapshot.rules))
        )
    part = _Part(identity=identity, limit=search.limit, offset=offset, position=position)
    page = (yield from _find_on_columns(search, part, snapshot, today)) if reads_columns(search, snapshot) else None
    if page is None:
        _want_columns(search, snapshot)
        key, values = to_statement_key(search, today, snapshot.rules)
        key = replace(key, memory_buckets=_memory_buckets(search, snapshot))
        page = yield from _find_by_sql(key, values, part, snapshot)
    if rate is None:
        items = [render_size(row, today) for row in page.rows]
    else:
        items = [render_converted_size(row, today, rate) for row in page.rows]
    note = None if any(map(_has_price, page.rows)) else (yield from explain_no_price(search, snapshot, today))
    return JsonPage(
        items=items,
        next_cursor=page.next_cursor,
        total=page.total,
        exchange_rate=rate,
        cursor=page.cursor,
        no_price=note,
    )


def _has_price(row: Row) -> bool:
    """Return whether a row that a page is rendered from has a price under the purchase model of the search."""
    offer = row[RENDERED_COLUMNS - 1]
    return offer is not None and '"usd_per_hour":null' not in offer


_SEARCHING = {"q", "name", "gpu"}
"""The filters that search texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Which part of a list is wanted: `offset` skips sizes, `position` is where the page before ended."""

    identity: str
    limit: int
    offset: int
    position: CursorPosition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The rows that a page is rendered from; `cursor` is its own where it was found by an offset."""

    rows: Rows
    next_cursor: str | None
    total: int
    cursor: str | None = None


def reads_columns(search: SizeSearch, snapshot: CatalogSnapshot) -> bool:
    """Return whether a list is found on columns: if these are kept, and it is of today's prices."""
    return not search.names_a_day and ColumnNeeds.of(search).are_kept(snapshot)


def is_quick(search: SizeSearch, snapshot: CatalogSnapshot) -> bool:
    """Return whether a list is found on columns in a millisecond, which an event loop can spare.

    In a large catalog that is a list by an order and by prices that are kept, for which no texts are searched.
    """
    if snapshot.small:
        return True
    if snapshot.sizes > QUICK_CATALOG or search.model_fields_set & _SEARCHING:
        return False
    needs = ColumnNeeds.of(search)
    kept = (needs.prices_key, needs.order_key(search.sort))
    return snapshot.sizes <= SORTED or snapshot.columns.derived.has(kept)


def columns_to_load(search: SizeSearch, snapshot: CatalogSnapshot) -> ColumnNeeds | None:
    """Return columns that should be loaded before a list of a small catalog is found; None if there are none.

    They are loaded in some milliseconds, as long as a new statement takes; but the first list does not wait for NumPy.
    Raises BadQuery as `find_sizes` does.
    """
    if search.names_a_day or not snapshot.small or ColumnNeeds.of(search).are_kept(snapshot):
        return None
    return ColumnNeeds.of(normalize(search, snapshot)) if snapshot.columns.ask() else None


def _want_columns(search: SizeSearch, snapshot: CatalogSnapshot) -> None:
    """Have the columns of a list loaded for the next one; those that are kept may be outdated."""
    needs = ColumnNeeds.of(search)
    if not (search.names_a_day or needs.are_kept(snapshot)):
        snapshot.columns.want(needs, partial(load_columns, needs, snapshot))


def load_columns(needs: ColumnNeeds, snapshot: CatalogSnapshot) -> "QueryPlan[ListColumns]":
    """Load the columns of a list, and what is needed to read them: in a thread, never in an event loop."""
    from app.catalog.queries.column_lists import load_list_columns  # noqa: PLC0415  # loads NumPy

    return load_list_columns(needs, snapshot)


def _without_reading(plan: QueryPlan[T]) -> T | None:
    """Return the result of a plan that needs to read nothing, or None; an event loop does not wait for columns."""
    try:
        next(plan)
    except StopIteration as end:
        found: T = end.value
        return found
    plan.close()
    return None


def _find_on_columns(
    search: SizeSearch, part: _Part, snapshot: CatalogSnapshot, today: date
) -> QueryPlan[_Page | None]:
    """Find a page on columns that are kept; None if the catalog has changed since, as it has rows of its own."""
    from app.catalog.queries.column_lists import ColumnList  # noqa: PLC0415  # loads NumPy

    needs, position = ColumnNeeds.of(search), part.position
    columns = _without_reading(load_columns(needs, snapshot))
    if columns is None:
        return None
    listed = ColumnList(search, needs, columns, today)
    found = listed.first(part.offset + part.limit + 1, position.values if position is not None else None)
    shown, more = found[part.offset :][: part.limit], len(found) > part.offset + part.limit
    if position is not None and position.revision != snapshot.revision:
        yield from ensure_same_revision(position)
    rows = yield from _read_chosen(listed.offers_of(shown), needs, snapshot, today)
    if rows is None:
        return None

    def cursor_at(index: int) -> str:
        return write_cursor(part.identity, snapshot.revision, listed.values_at(int(found[index])))

    return _Page(
        rows=rows,
        next_cursor=cursor_at(part.offset + part.limit - 1) if more else None,
        total=listed.total,
        cursor=cursor_at(part.offset - 1) if part.offset and len(shown) else None,
    )


def _read_chosen(
    chosen: Sequence[tuple[str, str]], needs: ColumnNeeds, snapshot: CatalogSnapshot, today: date
) -> QueryPlan[Rows | None]:
    """Read the rows of sizes and their offers, unless they are kept; None if the catalog has changed."""
    scope = (needs.os, needs.purchase, today)
    kept, found = snapshot.rows.of(scope), dict[tuple[str, str], Row]()
    missing = [one for one in chosen if one not in kept]
    if missing:
        values = {"chosen": chosen_parameter(missing), "today": today.isoformat()}
        read = yield BoundStatement(chosen_statement(needs.os, needs.purchase), values)
        if len(read) != len(missing) or revision_id(*read[0][RENDERED_COLUMNS:]) != snapshot.revision:
            return None
        found = {one: row[:RENDERED_COLUMNS] for one, row in zip(missing, read, strict=True)}
        snapshot.rows.add(scope, found)
    return [found[one] if one in found else kept[one] for one in chosen]


def _find_by_sql(key: StatementKey, values: dict[str, Any], part: _Part, snapshot: CatalogSnapshot) -> QueryPlan[_Page]:
    # The row before a page that is found by its offset is read, too: the page's cursor is its position.
    before = 1 if part.offset else 0
    values = values | {"limit": part.limit + before + 1}
    if before:
        key, values = replace(key, skips=True), values | {"offset": part.offset - before}
    query = ListQuery(
        identity=part.identity,
        page=_bind_page(key, values, part.position),
        count=lambda: BoundStatement(count_statement(key), values),
        limit=part.limit + before,
        position=part.position,
        key_of=lambda row: row[RENDERED_COLUMNS:],
        skips=key.skips,
    )
    found = yield from read_page(query, snapshot)
    rows = found.rows[before:]
    cursor = write_cursor(part.identity, snapshot.revision, query.key_of(found.rows[0])) if before and rows else None
    return _Page(rows=rows, next_cursor=found.next_cursor, total=found.total, cursor=cursor)


def _bind_page(key: StatementKey, values: dict[str, Any], position: CursorPosition | None) -> BoundStatement:
    if position is None:
        return BoundStatement(page_statement(key), values)
    key = replace(key, after=tuple(value is not None for value in position.values))
    return BoundStatement(page_statement(key), values | position.parameters)


def search_sizes(session: Session, search: SizeSearch, *, today: date) -> JsonPage:
    """Find one page of a search in a session."""
    return run_plan(session, find_sizes(search, load_snapshot(session), today))


def get_size(session: Session, name: str, params: SizeParams | None = None, *, today: date) -> str:
    """Return one size by any of its names as JSON text, with its cheapest on-demand Linux price; raises NotFound."""
    params = params or SizeParams()
    rules = load_rules(session) if params.names_a_day else ()
    return run_plan(session, _find_size(name, params, today, rules, None))


def find_size(name: str, params: SizeParams, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    """Find one size as `get_size` does."""
    return _find_size(name, params, today, snapshot.rules, snapshot.series)


def _find_size(
    name: str, params: SizeParams, today: date, rules: Rules, series: Mapping[str, str] | None
) -> QueryPlan[str]:
    check_days(params, today)
    everywhere = DatedSelection(as_of=params.as_of, known_at=params.known_at)
    (key,) = yield from get_size_keys((name,), series)
    values = {"key": key, **price_parameters(everywhere, today)}
    rows = yield BoundStatement(size_statement(PriceScopeKey.of(everywhere, rules)), values)
    if not rows:  # an ingest removed it after its name was looked up
        raise NotFound("size", name)
    (row,) = rows
    rate = yield from find_exchange_rate(params.currency, params.as_of or today)
    if rate is None:
        return render_size(row, today)
    return f'{render_converted_size(row, today, rate)[:-1]},"exchange_rate":{exchange_rate_json(rate)}}}'


def normalize(selection: SelectionT, snapshot: CatalogSnapshot) -> SelectionT:
    """Replace names of series and GPUs by those of the catalog; raises BadQuery for one that the catalog lacks."""
    check_regions(snapshot.regions, "region", selection.region)
    check_regions(snapshot.regions, "available_in", selection.available_in)
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


def _memory_buckets(search: SizeSearch, snapshot: CatalogSnapshot) -> tuple[int, ...]:
    """Return the memory buckets to merge a list by price from; none where one index scan serves."""
    least, most = search.min_gpu_mem, search.max_gpu_mem
    by_on_demand_price = search.sort == ("usd_per_hour",) and search.purchase == "on_demand"
    if not by_on_demand_price or len(search.region) > 1 or not least or search.names_a_day:
        return ()
    first, last = memory_bucket(least), memory_bucket(most) if most else MAX_MEMORY_BUCKET
    return tuple(bucket for bucket in snapshot.memory_buckets if first <= bucket <= last)
