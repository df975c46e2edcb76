"""Sizes: from a typed search to one page, each size as the JSON text that is shown."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any, TypeVar

import orjson
from sqlalchemy import FromClause, Integer, Select, bindparam, func, literal_column, select, union_all
from sqlalchemy.orm import Session
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import SizeJson
from app.catalog.projections import MAX_MEMORY_BUCKET, NO_OFFER_JSON, OFFER_JSON_FIELDS, memory_bucket
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
from app.catalog.queries.lookups import check_gpu_vendor, check_regions, get_series_ids, get_size_key, resolve_gpus
from app.catalog.queries.pagination import (
    CursorPosition,
    SortKey,
    after_cursor,
    ensure_same_revision,
    read_position,
    write_cursor,
)
from app.catalog.queries.params import SizeList, SizeSearch, SizeSelection
from app.catalog.queries.price_scope import GPU, SIZE, PriceScope, region_parameters, status_of
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement, cached_statement, run_plan, single_statement
from app.errors import BadQuery, NotFound

SIZE_JSON = table_of(SizeJson)
_INDEXED = {("name",), ("usd_per_hour",)}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementKey:
    """All of a question but its values: what statement answers it.

    `after` says which keys of the place where the page begins are known, and is None for the first page; `octaves`
    are those of GPU memory to merge a list by price from; without any it is walked as it is.
    """

    price_scope: PriceScope
    filters: tuple[ActiveFilter, ...]
    sort: tuple[str, ...]
    after: tuple[bool, ...] | None = None
    memory_buckets: tuple[int, ...] = ()


@cached_statement(256)
def page_statement(shape: StatementKey) -> Statement:
    """Take the page's offers, then the documents of these alone; rows end with the keys of the order."""
    terms = to_sort_keys(shape.sort, shape.price_scope)
    conditions = _conditions(shape)
    keys = [term.expression.label(f"key_{index}") for index, term in enumerate(terms)]
    page = _walk(shape, terms, keys, conditions)
    ordered = [clause for index, term in enumerate(terms) for clause in _again(term, page.c[f"key_{index}"])]
    size_key = page.c[f"key_{[term.name for term in terms].index('name')}"]
    query = (
        select(SIZE_JSON.c.doc, *page.c).join_from(page, SIZE_JSON, SIZE_JSON.c.size_key == size_key).order_by(*ordered)
    )
    return Statement(query, short=shape.sort in _INDEXED and not uses_table(SIZE, [*conditions, *keys]))


@cached_statement(64)
def list_statement(shape: StatementKey) -> Statement:
    """Take all offers of a question in its order, each with its document."""
    ground, conditions = shape.price_scope, _conditions(shape)
    order = [clause for term in to_sort_keys(shape.sort, ground) for clause in term.order_by]
    rows = join_tables(select(SIZE_JSON.c.doc, *_columns(ground)), ground, [*conditions, *order])
    return Statement(
        rows.join(SIZE_JSON, SIZE_JSON.c.size_key == ground.key).where(ground.has_offer, *conditions).order_by(*order)
    )


@cached_statement(256)
def count_statement(shape: StatementKey) -> Statement:
    """Count what a question finds on all its pages."""
    conditions, ground = _conditions(shape), shape.price_scope
    query = join_tables(select(func.count()), ground, conditions).where(ground.has_offer, *conditions)
    if shape.memory_buckets:
        query = _hinted(query, ground).where(
            ground.offer.gpu_octave >= literal_column(str(shape.memory_buckets[0]), Integer)
        )
    return Statement(query)


@cached_statement(4)
def size_statement(ground: PriceScope) -> Statement:
    """Take one size by `key`: the same columns as of a page."""
    query = select(SIZE_JSON.c.doc, *_columns(ground)).join_from(
        SIZE_JSON, ground.offers, ground.key == SIZE_JSON.c.size_key
    )
    asked = SIZE_JSON.c.size_key == bindparam("key", type_=SIZE_JSON.c.size_key.type)
    return Statement(query.where(ground.has_offer, asked), short=True)


def _conditions(shape: StatementKey) -> list[Condition]:
    return [filter_condition(asked, shape.price_scope) for asked in shape.filters if asked.name not in SCOPE_FILTERS]


def _walk(
    shape: StatementKey, terms: Sequence[SortKey], keys: Sequence[Any], conditions: Sequence[Condition]
) -> FromClause:
    """The offers of a page: along an index in its order, or merged from a walk for each octave.

    Prices rise with GPU memory, so a walk by price would pass by nearly all cheap sizes before it finds a large one.
    """
    ground = shape.price_scope
    walk = join_tables(select(*_columns(ground), *keys), ground, [*conditions, *keys]).where(
        ground.has_offer, *conditions
    )
    if shape.after is not None:
        walk = walk.where(after_cursor(terms, _place(shape.after, terms)))
    limit = bindparam("limit", type_=Integer)
    order = [clause for term in terms for clause in term.order_by]
    if not shape.memory_buckets:
        return walk.order_by(*order).limit(limit).subquery("page")
    octave = ground.offer.gpu_octave
    hinted = _hinted(walk, ground)
    of_each = [
        select(hinted.where(octave == literal_column(str(number), Integer)).order_by(*order).subquery())
        for number in shape.memory_buckets
    ]
    merged = union_all(*of_each)
    keyed = [merged.selected_columns[key.key] for key in keys]
    return merged.order_by(*keyed).limit(limit).subquery("page")


def _hinted(query: Select[Any], ground: PriceScope) -> Select[Any]:
    """SQLite needs to be told the index: from a sample it cannot know that one octave is less than a region."""
    return query.with_hint(ground.offers, "indexed by ix_offer_gpu", "sqlite")


def _columns(ground: PriceScope) -> list[ColumnElement[Any]]:
    """What a size is rendered from, but for its document."""
    return [status_of(ground.offer).label("status"), ground.offer.doc.label("offer")]


def join_tables(query: Select[Any], ground: PriceScope, used: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Join the size, and its GPU, only where something of them is used."""
    query = query.select_from(ground.offers)
    if uses_table(SIZE, used):
        query = query.join(SIZE, SIZE.c.key == ground.key)
    if uses_table(GPU, used):
        query = query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)
    return query


def uses_table(table: FromClause, used: Sequence[ColumnElement[Any]]) -> bool:
    """Whether something of a table is used."""
    return any(getattr(part, "table", None) is table for each in used for part in visitors.iterate(each))


def _place(after: tuple[bool, ...], terms: Sequence[SortKey]) -> list[Any]:
    places = zip(after, terms, strict=True)
    return [
        bindparam(f"at_{index}", type_=term.expression.type) if known else None
        for index, (known, term) in enumerate(places)
    ]


def _again(term: SortKey, column: ColumnElement[Any]) -> list[ColumnElement[Any]]:
    return SortKey(name=term.name, expression=column, descending=term.descending, nullable=term.nullable).order_by


STATUS_AND_OFFER_FIELDS = ("status", *OFFER_JSON_FIELDS, "price_age_days")
"""What is shown of a size after its document, in this order: its standing, its offer, how old the price is."""

RENDERED_COLUMNS = 3
"""So many values of a row are written; behind them a page has the keys of its order."""


def render_size(row: Row, today: date) -> str:
    """Write a size: `row` begins with its document, its standing and the document of its offer, None for no offer.

    The document of an offer ends with the day from which its price is known.
    """
    doc, status, offer = row[:RENDERED_COLUMNS]
    offer = offer or NO_OFFER_JSON
    age = age_days(offer[-12:-2], today) if offer[-2] == '"' else "null"
    return f'{doc[:-1]},"status":"{status}",{offer[1:-1]},"price_age_days":{age}}}'


@lru_cache(maxsize=4096)
def age_days(day: str, today: date) -> int:
    """How many days have passed since a day; there are as many days as price lists."""
    return (today - date.fromisoformat(day)).days


def render_page(items: Sequence[str], next_cursor: str | None, total: int) -> str:
    """Write a page of items that are JSON texts already."""
    return f'{{"items":[{",".join(items)}],"next_cursor":{orjson.dumps(next_cursor).decode()},"total":{total}}}'


Scope = TypeVar("Scope", bound=SizeSelection)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonPage:
    """A page of sizes, each as JSON text; the cursor of the next page, None at the end; how many there are in all."""

    items: list[str]
    next_cursor: str | None
    total: int


def find_sizes(search: SizeSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[JsonPage]:
    """Find the sizes that a search asks for; raises BadQuestion for what is unknown here, and CursorGone."""
    search = normalize(search, snapshot)
    question = search.model_dump_json(exclude=search.page_param_names())
    shape, values = to_statement_key(search)
    shape = replace(shape, memory_buckets=_memory_buckets(search, snapshot))
    place = (
        read_position(search.cursor, question, to_sort_keys(shape.sort, shape.price_scope)) if search.cursor else None
    )
    values |= {"today": today.isoformat(), "limit": search.limit + 1}
    rows = yield _page(shape, values, place)
    revision = snapshot.revision if place is None else (yield from ensure_same_revision(place))
    total = snapshot.cached_total(question)
    if total is None:
        ((total,),) = yield BoundStatement(count_statement(shape), values)
        snapshot.remember_total(question, total)
    page = rows[: search.limit]
    following = write_cursor(question, revision, page[-1][RENDERED_COLUMNS:]) if len(rows) > len(page) else None
    return JsonPage(items=[render_size(row, today) for row in page], next_cursor=following, total=total)


def search_sizes(session: Session, search: SizeSearch, *, today: date) -> JsonPage:
    """Find sizes, and wait for them."""
    return run_plan(session, find_sizes(search, load_snapshot(session), today))


def get_size(session: Session, name: str, *, today: date) -> str:
    """Get one size by any of its names, with its cheapest on-demand Linux price; raises NotFound."""
    ground, key = PriceScope.of(SizeSelection()), get_size_key(session, name)
    values = {"key": key, "today": today.isoformat(), **region_parameters(SizeSelection())}
    (row,) = run_plan(session, single_statement(BoundStatement(size_statement(ground), values)))
    return render_size(row, today)


def normalize(scope: Scope, snapshot: CatalogSnapshot) -> Scope:
    """Bring the series and GPUs that a question names to the catalog's own names, and refuse what is unknown here."""
    check_regions(snapshot.regions, "region", scope.region)
    check_regions(snapshot.regions, "available_in", scope.available_in)
    if scope.gpu_vendor is not None:
        check_gpu_vendor(snapshot.gpus, scope.gpu_vendor)
    settled: dict[str, Any] = {"series": resolve_series(snapshot.series, scope.series)} if scope.series else {}
    settled |= {"gpu": resolve_gpus(snapshot.gpus, scope.gpu)} if scope.gpu else {}
    return scope.model_copy(update=settled) if settled else scope


def resolve_series(names: Sequence[str], snapshot: CatalogSnapshot) -> tuple[str, ...]:
    """The ids of the series that a question names; raises BadQuestion."""
    try:
        return get_series_ids(snapshot.series, names)
    except NotFound as unknown:
        raise BadQuery("series", unknown.name, f"{unknown} GET /series lists them.") from None


def to_statement_key(search: SizeList) -> tuple[StatementKey, dict[str, Any]]:
    """The shape of a list that was settled, and the values of its parameters; raises BadQuestion for its order."""
    check_sort(search.sort)
    filters, values = active_filters(search, FILTERS)
    return StatementKey(
        price_scope=PriceScope.of(search), filters=filters, sort=search.sort
    ), values | region_parameters(search)


def _page(shape: StatementKey, values: dict[str, Any], place: CursorPosition | None) -> BoundStatement:
    """The page of a question: from its beginning or a place, by a walk or merged from walks."""
    if place is not None:
        values |= {f"at_{index}": _plain(value) for index, value in enumerate(place.values)}
        shape = replace(shape, after=tuple(value is not None for value in place.values))
    return BoundStatement(page_statement(shape), values)


def _memory_buckets(search: SizeSearch, snapshot: CatalogSnapshot) -> tuple[int, ...]:
    """The octaves of GPU memory to merge a list by price from: none where it is walked."""
    least, most = search.min_gpu_mem, search.max_gpu_mem
    if search.sort != ("usd_per_hour",) or len(search.region) > 1 or not least:
        return ()
    first, last = memory_bucket(least), memory_bucket(most) if most else MAX_MEMORY_BUCKET
    return tuple(octave for octave in snapshot.memory_buckets if first <= octave <= last)


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value
