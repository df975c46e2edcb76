"""Read what the similarity of sizes is computed from, and their prices."""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import Select, cast, select

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
from app.db.statements import BoundStatement, cached_statement

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "arch", "vcpus", "memory_gib", "provider"),
    *("cpu_vendor", "cpu_model", "uncached_disk_iops", "network_mbps"),
)


def neighbours_query(keys: Sequence[str], params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of what similarity is computed from, by key, with JSON of what rules did to the price.

    The columns of the offer are null for a size without one.
    """
    values = key_parameters(keys) | price_parameters(params, today)
    return BoundStatement(_neighbours_statement(PriceScopeKey.of(params, rules)), values)


@cached_statement(32)
def _neighbours_statement(scope_key: PriceScopeKey) -> Select[Any]:
    scope = PriceScope.for_keys(scope_key)
    these = select(size.key.label("size_key")).where(is_listed(size.key, KEYS)).cte("these")
    columns = [
        *(size.key, status_of(size).label("status"), gpu.family.label("gpu_family")),
        scope.offer.priced_in.label("region"),
        cast(usd_by(scope.offer, scope.purchase), UsdColumn).label("usd_per_hour"),
        scope.offer[f"{scope.purchase}_adjustment"].label("adjustment"),
        local_disk_gib().label("local_disk_gib"),
        *(size[name] for name in _SIZE_COLUMNS),
    ]
    return (
        scope.join_to_sizes(select(*columns).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
