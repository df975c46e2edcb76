"""Read what the similarity of sizes is computed from, and their prices."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from sqlalchemy import FromClause, Select, bindparam, cast, select

from app.catalog.adjustments import Rules
from app.catalog.column_types import UsdColumn
from app.catalog.projections import usd_by
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.price_scope import (
    GPU,
    KEYS,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    key_parameters,
    local_disk_gib,
    price_parameters,
    size,
    status_of,
)
from app.db.functions import is_listed
from app.db.statements import BoundStatement, Row, cached_statement

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "arch", "vcpus", "memory_gib", "provider"),
    *("cpu_vendor", "cpu_model", "uncached_disk_iops", "network_mbps"),
)
NEIGHBOUR_COLUMNS = (
    "key",
    "status",
    "gpu_family",
    "region",
    "usd_per_hour",
    "adjustment",
    "local_disk_gib",
    *_SIZE_COLUMNS,
)
"""The columns of a row: what a similarity is computed from, and JSON of what rules did to the price, else null."""


def to_neighbour(row: Row) -> Mapping[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip(NEIGHBOUR_COLUMNS, row, strict=True))


def reference_query(key: str, params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of a size with its offer; the columns of the offer are null where there is none."""
    values = {"key": key, **price_parameters(params, today)}
    return BoundStatement(_reference_statement(PriceScopeKey.of(params, rules)), values)


def shown_query(keys: Sequence[str], params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of sizes that are chosen already, each with its offer, in the order of their keys."""
    values = key_parameters(keys) | price_parameters(params, today)
    return BoundStatement(_shown_statement(PriceScopeKey.of(params, rules)), values)


@cached_statement(32)
def _reference_statement(scope_key: PriceScopeKey) -> Select[Any]:
    keys = select(size.key.label("size_key")).where(size.key == bindparam("key", type_=size.key.type))
    return _with_columns(keys.cte("these"), PriceScope.for_sizes(scope_key, keys))


@cached_statement(32)
def _shown_statement(scope_key: PriceScopeKey) -> Select[Any]:
    keys = select(size.key.label("size_key")).where(is_listed(size.key, KEYS))
    return _with_columns(keys.cte("these"), PriceScope.for_keys(scope_key))


def _with_columns(these: FromClause, scope: PriceScope) -> Select[Any]:
    """Select the NEIGHBOUR_COLUMNS of the sizes with these keys."""
    columns = {
        "key": size.key,
        "status": status_of(size),
        "gpu_family": gpu.family,
        "region": scope.offer.priced_in,
        "usd_per_hour": cast(usd_by(scope.offer, scope.purchase), UsdColumn),
        "adjustment": scope.offer[f"{scope.purchase}_adjustment"],
        "local_disk_gib": local_disk_gib(),
        **{name: size[name] for name in _SIZE_COLUMNS},
    }
    shown = (columns[name].label(name) for name in NEIGHBOUR_COLUMNS)
    return (
        scope.join_to_sizes(select(*shown).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
