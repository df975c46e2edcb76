"""The statements of a list of sizes: its page, its total, all of it, and one size.

What a client may choose freely is a parameter. The statements of pages and totals, of which there are as many as sets
of filters (`StatementKey`), are joined from fragments; the others are built by SQLAlchemy and cached.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from sqlalchemy import FromClause, Integer, Select, bindparam, column, literal_column, select, table
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import SizeJson
from app.catalog.queries.filters import (
    ALWAYS_ACTIVE,
    PRICE_FILTERS,
    PRICED_SORTS,
    SCOPE_FILTERS,
    ActiveFilter,
    Condition,
    filter_condition,
    sort_names,
    to_sort_keys,
)
from app.catalog.queries.pagination import SortKey, after_cursor, cursor_binds
from app.catalog.queries.price_scope import (
    GPU,
    SIZE,
    PriceScope,
    PriceScopeKey,
    sizes_with_offers,
    status_of,
    use_memory_index,
)
from app.db.fragments import Fragment, JoinedStatement, Source, StatementText, order_text, select_text
from app.db.statements import CompiledStatement, Statement, cached_statement, converters_of

SIZE_JSON = table_of(SizeJson)
INDEXED_PRICES = {"on_demand", "spot"}
"""The purchase models by whose price offers are indexed."""


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
    keys = [_sorted_by(name, key.price_scope) for name in sort_names(key.sort)]
    short = not key.price_scope.past and _is_indexed(key) and not _reads(SIZE, _conditions(key))
    names = ("doc", "status", "offer", *(f"key_{index}" for index in range(len(keys))))
    if _chooses_sizes_first(key):
        return JoinedStatement(names, partial(_join_chosen, key))
    return JoinedStatement(names, partial(_join_page, key), short=short)


@cached_statement(256)
def count_statement(key: StatementKey) -> Statement:
    """Build the statement that counts a list."""
    of_sizes = replace(key, sort=())
    counts_sizes = _compares_no_price(of_sizes) and _needs_sizes(of_sizes)
    scope_key = key.price_scope.scope_key
    alone = sizes_with_offers(scope_key) if counts_sizes and scope_key is not None else None
    return JoinedStatement(("count",), partial(_join_count, replace(key, price_scope=alone) if alone else key))


@cached_statement(64)
def list_statement(key: StatementKey) -> Statement:
    """Build the statement of a whole list in its order; rows begin as those of a page."""
    scope, conditions = key.price_scope, list_conditions(key)
    order = [clause for sort_key in to_sort_keys(key.sort, scope) for clause in sort_key.order_by]
    rows = join_tables(select(SIZE_JSON.c.doc, *_columns(scope)), scope, [*conditions, *order])
    rows = rows.join(SIZE_JSON, SIZE_JSON.c.size_key == scope.key)
    return Statement(rows.where(scope.has_offer, *conditions).order_by(*order))


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


def join_tables(query: Select[Any], scope: PriceScope, used: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Join the size, and its GPU, to the offers only where an expression uses one of their columns."""
    return _join(query, scope, size=uses_table(SIZE, used), gpu=uses_table(GPU, used))


def uses_table(searched: FromClause, used: Sequence[ColumnElement[Any]]) -> bool:
    """Return whether an expression uses a column of the table."""
    return any(getattr(part, "table", None) is searched for each in used for part in visitors.iterate(each))


def _columns(scope: PriceScope) -> list[ColumnElement[Any]]:
    """Return what a size is rendered from besides its own JSON."""
    return [status_of(scope.offer).label("status"), scope.json_of(scope.offer).label("offer")]


def _join(query: Select[Any], scope: PriceScope, *, size: bool, gpu: bool) -> Select[Any]:
    query = query.select_from(scope.source)
    if (size or gpu) and scope.offers is not SIZE:
        query = query.join(SIZE, SIZE.c.key == scope.key)
    if gpu:
        query = query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)
    return query


def _join_page(key: StatementKey, kind: str) -> CompiledStatement:
    """Join the statement of a page: its offers by one index scan in their order, or one a memory bucket, merged.

    Prices rise with GPU memory, so a scan by price alone would pass nearly all cheap sizes before it finds a large one.
    """
    text, scope, sorts = StatementText(kind), key.price_scope, sort_names(key.sort)
    keys, values = [_sorted_by(name, scope) for name in sorts], _page_values(scope)
    names = [f"key_{index}" for index in range(len(keys))]
    columns = [f"{text.sql(fragment)} AS {name}" for name, fragment in values.columns.items()]
    columns += [f"{text.sql(each.fragment)} AS {name}" for each, name in zip(keys, names, strict=True)]
    limit = f"LIMIT {text.sql(_LIMIT)}" + (f" OFFSET {text.sql(_OFFSET)}" if key.skips else "")
    after = [_after(scope, key.sort, key.after)] if key.after is not None else []
    where = text.conditions([_has_offer(scope), *_conditions(key), *after])
    source = text.sql(_source(key, tuple(each.fragment for each in keys)))
    order = [each.order(text.sql(each.fragment)) for each in keys]
    if key.memory_buckets:
        bucket = text.sql(_bucket(scope))
        scans = (
            select_text(columns, source, where=[*where, f"{bucket} = {number}"], order=order)
            for number in key.memory_buckets
        )
        merged = " UNION ALL ".join(
            select_text(["*"], f"({scan}) AS bucket_{number}")
            for scan, number in zip(scans, key.memory_buckets, strict=True)
        )
        page = f"{merged} ORDER BY {', '.join(names)} {limit}"
    else:
        page = select_text(columns, source, where=where, order=order, limit=limit)
    size_key = f"page.key_{[name.removeprefix('-') for name in sorts].index('name')}"
    sql = select_text(
        ["size_doc.doc", "page.status", f"{text.sql(values.offer)} AS offer", *(f"page.{name}" for name in names)],
        f"({page}) AS page JOIN size_doc ON size_doc.size_key = {size_key}",
        order=[each.order(f"page.{name}") for each, name in zip(keys, names, strict=True)],
    )
    types = (*(SIZE_JSON.c.doc.type for _ in range(3)), *(each.key.expression.type for each in keys))
    return text.compiled(sql, converters_of(types, kind))


def _is_indexed(key: StatementKey) -> bool:
    """Return whether the order of a list is that of an index."""
    return key.sort == ("name",) or (key.sort == ("usd_per_hour",) and key.price_scope.purchase in INDEXED_PRICES)


def _chooses_sizes_first(key: StatementKey) -> bool:
    """Return whether a page is found among sizes alone, so that only its own offers are read.

    So it is where no price is compared and the offers lack a figure, or are computed, or where a list by name has
    filters: an index has the offers by name, but none of their figures.
    """
    if not _compares_no_price(key):
        return False
    filtered = any(one.name not in (*SCOPE_FILTERS, *ALWAYS_ACTIVE) for one in key.filters)
    return _needs_sizes(key) or (sort_names(key.sort) == ["name"] and filtered)


def _compares_no_price(key: StatementKey) -> bool:
    if key.price_scope.scope_key is None or key.memory_buckets:
        return False
    sorts = {name.removeprefix("-") for name in key.sort}
    return sorts.isdisjoint(PRICED_SORTS) and PRICE_FILTERS.isdisjoint(one.name for one in key.filters)


def _needs_sizes(key: StatementKey) -> bool:
    """Return whether the offers have not all that a list reads, or are computed for it."""
    scope = key.price_scope
    read = [*_conditions(key), *(_sorted_by(name, scope).fragment for name in sort_names(key.sort))]
    return scope.past or scope.cheapest is not None or _reads(SIZE, read) or _reads(GPU, read)


_CHOSEN = table("chosen", column("size_key", SIZE.c.key.type))


@lru_cache(maxsize=64)
def _chosen_scope(key: PriceScopeKey) -> PriceScope:
    return PriceScope.for_sizes(key, select(_CHOSEN.c.size_key))


@lru_cache(maxsize=64)
def _chosen_values(scope: PriceScope) -> tuple[Fragment, Fragment, Fragment]:
    values = (scope.key, status_of(scope.offer), scope.json_of(scope.offer))
    key, status, offer = (Fragment(value, _every_table(scope)) for value in values)
    return key, status, offer


def _join_chosen(key: StatementKey, kind: str) -> CompiledStatement:
    """Join the statement of a page whose sizes are chosen first; SQLite keeps to the order of a cross join."""
    scope_key = key.price_scope.scope_key
    if scope_key is None:
        raise ValueError("there is no scope of sizes alone")
    alone = sizes_with_offers(scope_key)
    text, sorts = StatementText(kind), sort_names(key.sort)
    keys = [_sorted_by(name, alone) for name in sorts]
    names = [f"key_{index}" for index in range(len(keys))]
    of_sizes = replace(key, price_scope=alone)
    limit = f"LIMIT {text.sql(_LIMIT)}" + (f" OFFSET {text.sql(_OFFSET)}" if key.skips else "")
    after = [_after(alone, key.sort, key.after)] if key.after is not None else []
    chosen = select_text(
        [
            "size.key AS size_key",
            *(f"{text.sql(each.fragment)} AS {name}" for each, name in zip(keys, names, strict=True)),
        ],
        text.sql(_source(of_sizes, tuple(each.fragment for each in keys))),
        where=text.conditions([_has_offer(alone), *_conditions(of_sizes), *after]),
        order=[each.order(text.sql(each.fragment)) for each in keys],
        limit=limit,
    )
    scope = _chosen_scope(scope_key)
    size_key, status, offer = (text.sql(one) for one in _chosen_values(scope))
    sql = select_text(
        ["size_doc.doc", f"{status} AS status", f"{offer} AS offer", *(f"chosen.{name}" for name in names)],
        f"chosen CROSS JOIN {text.sql(_tables(scope, size=False, gpu=False, hinted=False))}"
        " JOIN size_doc ON size_doc.size_key = chosen.size_key",
        where=[f"{size_key} = chosen.size_key", *text.conditions([_has_offer(scope)])],
        order=[each.order(f"chosen.{name}") for each, name in zip(keys, names, strict=True)],
    )
    types = (*(SIZE_JSON.c.doc.type for _ in range(3)), *(each.key.expression.type for each in keys))
    return text.compiled(sql, converters_of(types, kind), first=f"chosen AS ({chosen})")


def _join_count(key: StatementKey, kind: str) -> CompiledStatement:
    text, scope = StatementText(kind), key.price_scope
    where = text.conditions([_has_offer(scope), *_conditions(key)])
    if key.memory_buckets:
        where.append(f"{text.sql(_bucket(scope))} >= {key.memory_buckets[0]}")
    return text.compiled(select_text(["count(*) AS count"], text.sql(_source(key)), where=where))


@dataclass(frozen=True, slots=True)
class _SortedBy:
    """A sort key, and the fragment of its expression."""

    key: SortKey
    fragment: Fragment

    def order(self, expression: str) -> str:
        """Return the ORDER BY of this key for an expression that has its value."""
        return order_text(expression, descending=self.key.descending, nullable=self.key.nullable)


@dataclass(frozen=True, slots=True)
class _PageValues:
    """What a page selects of each offer, by its name there, and the JSON of the offer made of it."""

    columns: dict[str, Fragment]
    offer: Fragment


_NO_TABLE = table("no_table")
_LIMIT, _OFFSET = (Fragment(bindparam(name, type_=Integer), _NO_TABLE) for name in ("limit", "offset"))


@lru_cache(maxsize=512)
def _sorted_by(name: str, scope: PriceScope) -> _SortedBy:
    key = to_sort_keys((name,), scope)[0]
    return _SortedBy(key, Fragment(key.expression, _every_table(scope)))


@lru_cache(maxsize=128)
def _page_values(scope: PriceScope) -> _PageValues:
    within, page = _every_table(scope), table("page", *(column(one.name, one.type) for one in scope.json_columns))
    columns = {"status": status_of(scope.offer)} | {one.name: one for one in scope.json_columns}
    fragments = {name: Fragment(one, within) for name, one in columns.items()}
    return _PageValues(fragments, Fragment(scope.json_of(page.c), page))


@lru_cache(maxsize=1024)
def _condition(active: ActiveFilter, scope: PriceScope) -> Fragment:
    return Fragment(filter_condition(active, scope), _every_table(scope))


def _conditions(key: StatementKey) -> list[Fragment]:
    return [_condition(one, key.price_scope) for one in key.filters if one.name not in SCOPE_FILTERS]


@lru_cache(maxsize=64)
def _has_offer(scope: PriceScope) -> Fragment:
    return Fragment(scope.has_offer, _every_table(scope))


@lru_cache(maxsize=64)
def _bucket(scope: PriceScope) -> Fragment:
    return Fragment(scope.offer.gpu_octave, _every_table(scope))


@lru_cache(maxsize=256)
def _after(scope: PriceScope, sort: tuple[str, ...], known: tuple[bool, ...]) -> Fragment:
    keys = to_sort_keys(sort, scope)
    return Fragment(after_cursor(keys, cursor_binds(keys, known)), _every_table(scope))


def _source(key: StatementKey, used: Sequence[Fragment] = ()) -> Source:
    """Return the tables that the conditions of a list, and other fragments, use columns of."""
    fragments = [*_conditions(key), *used]
    hinted = bool(key.memory_buckets)
    return _tables(key.price_scope, size=_reads(SIZE, fragments), gpu=_reads(GPU, fragments), hinted=hinted)


@lru_cache(maxsize=256)
def _tables(scope: PriceScope, *, size: bool, gpu: bool, hinted: bool) -> Source:
    query = _join(select(literal_column("1")), scope, size=size, gpu=gpu)
    return Source(use_memory_index(query, scope.offers) if hinted else query)


@lru_cache(maxsize=64)
def _every_table(scope: PriceScope) -> FromClause:
    """Return all tables that a list can join, in which its fragments are compiled: subqueries refer to them."""
    joined = scope.source if scope.offers is SIZE else scope.source.join(SIZE, SIZE.c.key == scope.key)
    return joined.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)


def _reads(searched: FromClause, fragments: Sequence[Fragment]) -> bool:
    return any(searched in fragment.tables for fragment in fragments)
