"""The statements of the rows that sizes are rendered from: of some sizes, of one, and of a whole list."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import FromClause, Select, bindparam, select
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import SizeJson
from app.catalog.queries.filters import (
    SCOPE_FILTERS,
    ActiveFilter,
    Condition,
    filter_condition,
    to_sort_keys,
)
from app.catalog.queries.price_scope import (
    GPU,
    KEYS,
    SIZE,
    PriceScope,
    PriceScopeKey,
    status_of,
)
from app.db.functions import is_listed
from app.db.statements import Statement, cached_statement

SIZE_JSON = table_of(SizeJson)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementKey:
    """All of a search but its values: what its statement is cached under."""

    price_scope: PriceScope
    filters: tuple[ActiveFilter, ...]
    sort: tuple[str, ...]


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


@cached_statement(64)
def rows_statement(scope_key: PriceScopeKey) -> Statement:
    """Build the statement of the sizes of KEYS: their keys, and then what rows of pages have."""
    scope = PriceScope.for_keys(scope_key)
    query = select(scope.key.label("key"), SIZE_JSON.c.doc, *_columns(scope)).select_from(
        scope.source.join(SIZE_JSON, SIZE_JSON.c.size_key == scope.key)
    )
    return Statement(query.where(scope.has_offer, is_listed(scope.key, KEYS)))


def list_conditions(key: StatementKey) -> list[Condition]:
    """Return the conditions of a list, without those that choose offers."""
    return [
        filter_condition(condition, key.price_scope) for condition in key.filters if condition.name not in SCOPE_FILTERS
    ]


def join_tables(query: Select[Any], scope: PriceScope, used: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Join the size, and its GPU, to the offers only where an expression uses one of their columns."""
    return _join(query, scope, size=uses_table(SIZE, used), gpu=uses_table(GPU, used))


def uses_table(searched: FromClause, used: Sequence[ColumnElement[Any]]) -> bool:
    """Return whether an expression uses a column of the table."""
    return any(getattr(part, "table", None) is searched for clause in used for part in visitors.iterate(clause))


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
