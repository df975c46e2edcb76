"""Search sizes: the SQL of a page, of its total and of one size, and each size rendered as JSON text.

A statement is built once for each combination of filters and order (`StatementKey`) and cached; what a client may
choose freely is a parameter of it. Rows become JSON text without objects: `size_json` and `offer` hold the size and
its offer as JSON that was written at ingest.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from sqlalchemy import FromClause, Integer, Select, bindparam, func, literal_column, select, union_all
from sqlalchemy.orm import Session
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.adjustments import Rules, load_rules
from app.catalog.column_types import table_of
from app.catalog.models import SizeJson
from app.catalog.projections import MAX_MEMORY_BUCKET, NO_OFFER_JSON, OFFER_JSON_FIELDS, memory_bucket
from app.catalog.queries.exchange_rates import (
    USD,
    CurrencyRate,
    convert_prices,
    exchange_rate_json,
    find_exchange_rate,
)
from app.catalog.queries.filters import (
    FILTERS,
    SCOPE_FILTERS,
    ActiveFilter,
    Condition,
    active_filters,
    check_sort,
    filter_condition,
    to_sort_keys,
)
from app.catalog.queries.lookups import check_gpu_vendor, check_regions, get_size_key, resolve_gpus, resolve_series
from app.catalog.queries.pagination import (
    CursorPosition,
    ListQuery,
    SortKey,
    after_cursor,
    cursor_binds,
    read_page,
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
    GPU,
    SIZE,
    PriceScope,
    PriceScopeKey,
    price_parameters,
    status_of,
    use_memory_index,
)
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement, cached_statement, run_plan, single_statement

SIZE_JSON = table_of(SizeJson)
_INDEXED_SORTS = {("name",), ("usd_per_hour",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementKey:
    """All of a search but its values: what its statement is cached under.

    `after` says which values of the cursor are not null, and is None for the first page. With `memory_buckets` a list
    by price is merged from one index scan for each bucket of GPU memory; with `skips` it begins
    at the parameter `offset`.
    """

    price_scope: PriceScope
    filters: tuple[ActiveFilter, ...]
    sort: tuple[str, ...]
    after: tuple[bool, ...] | None = None
    memory_buckets: tuple[int, ...] = ()
    skips: bool = False


@cached_statement(256)
def page_statement(key: StatementKey) -> Statement:
    """Build the statement of a page: JSON of the size, status, JSON of the offer, then the values of the sort keys.

    The offers of the page are read first, so that only as many sizes are looked up as the page has.
    """
    scope, conditions = key.price_scope, list_conditions(key)
    sort_keys = to_sort_keys(key.sort, scope)
    labels = [sort_key.expression.label(f"key_{index}") for index, sort_key in enumerate(sort_keys)]
    page = _page_of_offers(key, sort_keys, labels, conditions)
    order = [
        clause
        for index, sort_key in enumerate(sort_keys)
        for clause in replace(sort_key, expression=page.c[f"key_{index}"]).order_by
    ]
    size_key = page.c[f"key_{[sort_key.name for sort_key in sort_keys].index('name')}"]
    offer = scope.json_of(page.c).label("offer")
    shown = (SIZE_JSON.c.doc, page.c.status, offer, *(page.c[label.key] for label in labels))
    query = select(*shown).join_from(page, SIZE_JSON, SIZE_JSON.c.size_key == size_key)
    short = not scope.past and key.sort in _INDEXED_SORTS and not uses_table(SIZE, [*conditions, *labels])
    return Statement(query.order_by(*order), short=short)


@cached_statement(64)
def list_statement(key: StatementKey) -> Statement:
    """Build the statement of a whole list in its order; rows begin as those of a page."""
    scope, conditions = key.price_scope, list_conditions(key)
    order = [clause for sort_key in to_sort_keys(key.sort, scope) for clause in sort_key.order_by]
    rows = join_tables(select(SIZE_JSON.c.doc, *_columns(scope)), scope, [*conditions, *order])
    rows = rows.join(SIZE_JSON, SIZE_JSON.c.size_key == scope.key)
    return Statement(rows.where(scope.has_offer, *conditions).order_by(*order))


@cached_statement(256)
def count_statement(key: StatementKey) -> Statement:
    """Build the statement that counts a list."""
    conditions, scope = list_conditions(key), key.price_scope
    query = join_tables(select(func.count()), scope, conditions).where(scope.has_offer, *conditions)
    if key.memory_buckets:
        first = literal_column(str(key.memory_buckets[0]), Integer)
        query = use_memory_index(query, scope.offers, scope.purchase).where(scope.offer.gpu_octave >= first)
    return Statement(query)


@cached_statement(4)
def size_statement(scope_key: PriceScopeKey) -> Statement:
    """Build the statement of one size by `key`; its row begins as one of a page."""
    key = bindparam("key", type_=SIZE_JSON.c.size_key.type)
    scope = PriceScope.for_sizes(scope_key, select(SIZE.c.key).where(SIZE.c.key == key))
    query = select(SIZE_JSON.c.doc, *_columns(scope)).join_from(
        SIZE_JSON, scope.offers, scope.key == SIZE_JSON.c.size_key
    )
    return Statement(query.where(scope.has_offer, SIZE_JSON.c.size_key == key), short=True)


def list_conditions(key: StatementKey) -> list[Condition]:
    """Return the conditions of a list, without those that choose offers."""
    return [filter_condition(one, key.price_scope) for one in key.filters if one.name not in SCOPE_FILTERS]


def _page_of_offers(
    key: StatementKey, sort_keys: Sequence[SortKey], labels: Sequence[Any], conditions: Sequence[Condition]
) -> FromClause:
    """Select the offers of a page: one index scan in their order, or one a memory bucket, merged.

    Prices rise with GPU memory, so a scan by price alone would pass nearly all cheap sizes before it finds a large one.
    """
    scope = key.price_scope
    status = status_of(scope.offer).label("status")
    offers = join_tables(select(status, *scope.json_columns, *labels), scope, [*conditions, *labels])
    offers = offers.where(scope.has_offer, *conditions)
    if key.after is not None:
        offers = offers.where(after_cursor(sort_keys, cursor_binds(sort_keys, key.after)))
    limit = bindparam("limit", type_=Integer)
    offset = bindparam("offset", type_=Integer) if key.skips else None
    order = [clause for sort_key in sort_keys for clause in sort_key.order_by]
    if not key.memory_buckets:
        return offers.order_by(*order).limit(limit).offset(offset).subquery("page")
    bucket, hinted = scope.offer.gpu_octave, use_memory_index(offers, scope.offers, scope.purchase)
    merged = union_all(
        *(
            select(hinted.where(bucket == literal_column(str(number), Integer)).order_by(*order).subquery())
            for number in key.memory_buckets
        )
    )
    return (
        merged.order_by(*(merged.selected_columns[label.key] for label in labels))
        .limit(limit)
        .offset(offset)
        .subquery("page")
    )


def _columns(scope: PriceScope) -> list[ColumnElement[Any]]:
    """Return what a size is rendered from besides its own JSON."""
    return [status_of(scope.offer).label("status"), scope.json_of(scope.offer).label("offer")]


def join_tables(query: Select[Any], scope: PriceScope, used: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Join the size, and its GPU, to the offers only where an expression uses one of their columns."""
    query = query.select_from(scope.source)
    if uses_table(SIZE, used):
        query = query.join(SIZE, SIZE.c.key == scope.key)
    if uses_table(GPU, used):
        query = query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)
    return query


def uses_table(table: FromClause, used: Sequence[ColumnElement[Any]]) -> bool:
    """Return whether an expression uses a column of the table."""
    return any(getattr(part, "table", None) is table for each in used for part in visitors.iterate(each))


STATUS_AND_OFFER_FIELDS = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""The fields of a size after those of its own JSON, in order."""

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


SelectionT = TypeVar("SelectionT", bound=SizeSelection)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPage:
    """A page of sizes, each as JSON text; the cursor of the next page (None at the end); how many there are in all.

    `exchange_rate` is that of a page that has its prices in another currency, too; `cursor` is that of a page that was
    found by its offset.
    """

    items: list[str]
    next_cursor: str | None
    total: int
    exchange_rate: CurrencyRate | None = None
    cursor: str | None = None


def render_page(page: JsonPage) -> str:
    """Render a page of sizes."""
    cursor, rate = orjson.dumps(page.next_cursor).decode(), page.exchange_rate
    end = f',"exchange_rate":{exchange_rate_json(rate)}' if rate is not None else ""
    return f'{{"items":[{",".join(page.items)}],"next_cursor":{cursor},"total":{page.total}{end}}}'


def find_sizes(search: SizeSearch, snapshot: CatalogSnapshot, today: date, *, offset: int = 0) -> QueryPlan[JsonPage]:
    """Find one page of a search; raises BadQuery for a name that the catalog does not have, and CursorGone.

    `offset` skips so many sizes: pages for people have numbers, which cursors have not.
    """
    check_days(search, today)
    search = normalize(search, snapshot)
    priced_on = search.as_of or today
    rate = None if search.currency == USD else (yield from find_exchange_rate(search.currency, priced_on))
    identity = search.model_dump_json(exclude=search.page_param_names())
    if search.names_a_day:
        identity = f"{identity} {today}"
    key, values = to_statement_key(search, today, snapshot.rules)
    key = replace(key, memory_buckets=_memory_buckets(search, snapshot))
    position = (
        read_position(search.cursor, identity, to_sort_keys(key.sort, key.price_scope)) if search.cursor else None
    )
    # The row before a page that is found by its offset is read, too: the page's cursor is its position.
    before = 1 if offset else 0
    values |= {"limit": search.limit + before + 1}
    if before:
        key, values = replace(key, skips=True), values | {"offset": offset - before}
    query = ListQuery(
        identity=identity,
        page=_bind_page(key, values, position),
        count=lambda: BoundStatement(count_statement(key), values),
        limit=search.limit + before,
        position=position,
        key_of=lambda row: row[RENDERED_COLUMNS:],
    )
    found = yield from read_page(query, snapshot)
    rows = found.rows[before:]
    cursor = write_cursor(identity, snapshot.revision, query.key_of(found.rows[0])) if before and rows else None
    if rate is None:
        items = [render_size(row, today) for row in rows]
    else:
        items = [render_converted_size(row, today, rate) for row in rows]
    return JsonPage(items=items, next_cursor=found.next_cursor, total=found.total, exchange_rate=rate, cursor=cursor)


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
    check_days(params, today)
    everywhere = DatedSelection(as_of=params.as_of, known_at=params.known_at)
    values = {"key": get_size_key(session, name), **price_parameters(everywhere, today)}
    rules = load_rules(session) if everywhere.names_a_day else ()
    statement = size_statement(PriceScopeKey.of(everywhere, rules))
    (row,) = run_plan(session, single_statement(BoundStatement(statement, values)))
    rate = run_plan(session, find_exchange_rate(params.currency, params.as_of or today))
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
    if search.sort != ("usd_per_hour",) or len(search.region) > 1 or not least or search.names_a_day:
        return ()
    first, last = memory_bucket(least), memory_bucket(most) if most else MAX_MEMORY_BUCKET
    return tuple(bucket for bucket in snapshot.memory_buckets if first <= bucket <= last)
