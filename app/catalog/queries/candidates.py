"""Read what sizes are compared by with the prices they would be bought at: the candidates of a fit, similar sizes."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from app.catalog.in_force import Rules
from app.catalog.projections import usd_by
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.filters import ActiveFilter, active_filters, filter_condition, priced_in_all
from app.catalog.queries.params import SimilarSearch, SizeSelection
from app.catalog.queries.price_scope import (
    GPU_MEMORY_GIB_ON_ONE_GPU,
    KEYS,
    LOCAL_DISK_GIB,
    PriceScope,
    PriceScopeKey,
    key_parameters,
    price_parameters,
    status_of,
)
from app.catalog.statements import cached_statement, exact
from app.db.dialects import Dialect, columns_of, parameters
from app.db.statements import BoundStatement, ColumnKind

SELECTION_FILTERS = ("q", "name", "series", "category", "gpu", "gpu_vendor", "verified", "disputed", "provider")
"""Filters that select candidates; everything else is a requirement, and a fit reports what fails it."""

_NAMING_FILTERS = {"q", "name", "series", "category"}
"""Filters that say which sizes are meant: a placement then also says why a size without a GPU does not fit.

Without them such sizes, nine of ten, are no candidates: each would only be rejected for what its category says already.
"""

PEAK_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
GPU_FACTS = (
    *("usable_memory_gib", "memory_bandwidth_gb_per_s", "compute_capability", "interconnect_gb_per_s"),
    *(f"{kind}_tflops" for kind in PEAK_DTYPES),
)

_SIZE_COLUMNS = (
    *("vcpus", "memory_gib", "gpu_memory_gib", "gpu_count_numerator", "gpu_count_denominator", "network_mbps"),
)


class _Asked(NamedTuple):
    """What the prices of candidates are written into a statement by: all but its values."""

    scope: PriceScopeKey
    purchases: tuple[str, ...]
    available_in: int
    adjusted: bool
    computed: bool


def candidates_query(
    selection: SizeSelection,
    purchases: Collection[str],
    traits: Sequence[str],
    keys: Sequence[str],
    *,
    today: date,
    rules: Rules,
    computed: bool = False,
) -> BoundStatement:
    """Return the query of the sizes of a fit of resources, with prices by these purchase models and these columns.

    The formulas of prices are columns where the catalog has `computed` ones.
    """
    asked, values = _to_asked(selection, purchases, today, rules, computed=computed)
    return BoundStatement(_candidates_statement(asked, tuple(traits)), values | key_parameters(keys))


def machines_query(
    selection: SizeSelection, purchases: Collection[str], *, today: date, rules: Rules, computed: bool = False
) -> BoundStatement:
    """Return the query of a placement, with prices by these purchase models and the figures of GPU and series."""
    filters, values = active_filters(selection, SELECTION_FILTERS)
    asked, of_prices = _to_asked(selection, purchases, today, rules, computed=computed)
    return BoundStatement(_machines_statement(asked, filters), values | of_prices)


def _to_asked(
    selection: SizeSelection, purchases: Collection[str], today: date, rules: Rules, *, computed: bool
) -> tuple[_Asked, dict[str, Any]]:
    ordered = tuple(purchase for purchase in PURCHASE_MODELS if purchase in purchases)
    asked = _Asked(PriceScopeKey.of(selection, rules), ordered, len(selection.available_in), bool(rules), computed)
    available_in = {f"available_in_{index}": code for index, code in enumerate(selection.available_in)}
    return asked, available_in | price_parameters(selection, today)


_KINDS: Mapping[str, ColumnKind] = {
    **exact(*(f"{purchase}_usd_per_hour" for purchase in PURCHASE_MODELS)),
    **dict.fromkeys(("in_every_region", "described"), "flag"),
}


@cached_statement(64, kinds=_KINDS)
def _candidates_statement(sql: Dialect, asked: _Asked, traits: tuple[str, ...]) -> str:
    scope = PriceScope.for_keys(sql, asked.scope)
    return f"""{_select(scope, asked, [columns_of("size", traits)] if traits else [])}
        where {sql.is_listed("size.key", KEYS)} order by size.key"""


@cached_statement(64, kinds=_KINDS)
def _machines_statement(sql: Dialect, asked: _Asked, filters: tuple[ActiveFilter, ...]) -> str:
    """Write the statement of sizes with the series of each, and its GPU or that of its series."""
    scope = PriceScope.of_key(sql, asked.scope)
    conditions = [filter_condition(condition, scope) for condition in filters]
    if not any(condition.name in _NAMING_FILTERS for condition in filters):
        conditions.append("(size.gpu_count is null or size.gpu_count > 0)")
    return f"""{_select(scope, asked, _HARDWARE)}
        left join series on series.id = size.series_id
        left join ({_SERIES_GPUS}) as series_gpus on series_gpus.series_id = size.series_id
        left join gpu on gpu.id = size.gpu_id or {_HAS_GPU_OF_SERIES}
        where {" and ".join(conditions)} order by size.key"""


def _select(scope: PriceScope, asked: _Asked, more: Sequence[str]) -> str:
    """Select sizes with their prices; the columns of the offer are null for a size without one in the scope."""
    offer, regions = scope.offer, parameters("available_in", asked.available_in)
    columns = [
        f"size.key, size.name, {status_of(scope.sql, 'size')} as status, size.verified, size.provider",
        f"size.infiniband_gbps, {columns_of('size', _SIZE_COLUMNS)}",
        *(column for purchase in asked.purchases for column in _prices(scope, purchase)),
        *(f"{offer}.{purchase}_adjustment" for purchase in asked.purchases if asked.adjusted),
        *(f"{offer}.{purchase}_formula" for purchase in asked.purchases if asked.computed),
        f"{offer}.priced_in as region, {LOCAL_DISK_GIB} as local_disk_gib",
        f"{GPU_MEMORY_GIB_ON_ONE_GPU} as gpu_memory_gib_on_one_gpu",
        f"{priced_in_all(scope, 'size.key', regions)} as in_every_region",
        *more,
    ]
    return f"select {', '.join(columns)} from size {scope.join_to_sizes()}"


def _prices(scope: PriceScope, purchase: str) -> list[str]:
    """Write the columns of one purchase model; the price is exact, because costs are."""
    offer = scope.offer
    return [
        f"{usd_by(scope.sql, offer, purchase)} as {purchase}_usd_per_hour",
        f"{offer}.{purchase}_as_of, {offer}.{purchase}_approximate_date",
        f"{offer}.{purchase}_median_usd is not null as {purchase}_unusual, {offer}.{purchase}_disputed",
    ]


_COUNTED = ("gpu_count_numerator", "gpu_count_denominator")
_ENDS = ", ".join(
    f"{end}(described.{name}) as {kind}_{name}"
    for name in (*_COUNTED, "vcpus")
    for kind, end in (("least", "min"), ("most", "max"))
)
_SERIES_GPUS = f"""select described.series_id, min(described.gpu_id) as gpu_id, {_ENDS}
    from size as described where described.gpu_id is not null and described.series_id is not null
    group by described.series_id having min(described.gpu_id) = max(described.gpu_id)"""
"""The series whose described sizes all have the same GPU: its id, and the least and greatest counts.

A size is described if a source says which GPU it has.
"""

_HAS_GPU_OF_SERIES = """size.gpu_id is null and gpu.id = series_gpus.gpu_id
    and (size.gpu_model is null or lower(size.gpu_model) in (lower(gpu.model), lower(gpu.family)))"""
"""The condition that a size whose GPU no source describes has that of its series.

A size whose source names another GPU model does not.
"""

_ALIKE = " and ".join(f"series_gpus.least_{part} = series_gpus.most_{part}" for part in _COUNTED)
_IS_OF_SERIES = f"""(size.gpu_id is null or size.gpu_count_numerator is null) and gpu.id = series_gpus.gpu_id
    and (size.vcpus is null or size.vcpus = series_gpus.least_vcpus and size.vcpus = series_gpus.most_vcpus)
    and {_ALIKE}"""
"""The condition that a size has as many GPUs as all described sizes of its series.

It holds for a size whose vCPUs are as many as theirs, or unknown.
"""

_DOMAIN_GPUS = """case when size.nvlink is false then 1
    when size.nvlink is true then coalesce(
        nullif(series.scale_up_domain_gpus, 1), nullif(gpu.scale_up_domain_gpus, 1),
        case when gpu.interconnect like 'PCIe%' then 2 end, size.gpu_count_numerator / size.gpu_count_denominator, 1)
    when gpu.interconnect like '%bridge%' then coalesce(series.scale_up_domain_gpus, 1)
    else coalesce(series.scale_up_domain_gpus, gpu.scale_up_domain_gpus, 1) end"""
"""How many GPUs share NVLink: what is stated of the size goes first, then its series, then its GPU.

A bridge joins two cards, and a VM has it only if a source says so: clouds sell the same cards without.
"""

_HARDWARE = [
    # Fits ask whether VMs can work together: EFA and RoCE count like InfiniBand.
    "case when size.fabric is not null then size.fabric <> 'none' else size.infiniband end as infiniband",
    f"size.fabric, {columns_of('gpu', GPU_FACTS)}, gpu.id as gpu_id, gpu.memory_gib as marketed_memory_gib",
    f"{_DOMAIN_GPUS} as domain_gpus, series.rack_vms",
    *(f"case when {_IS_OF_SERIES} then series_gpus.least_{part} end as series_{part}" for part in _COUNTED),
    "size.gpu_id is not null or gpu.id is null as described",
]
"""The figures of a size's GPU and of its interconnect; for the latter those of the series go first."""


_COMPARED = (
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


@cached_statement(32, kinds=exact("usd_per_hour"))
def _neighbours_statement(sql: Dialect, scope_key: PriceScopeKey) -> str:
    scope = PriceScope.for_keys(sql, scope_key)
    return f"""with these as (select key as size_key from size where {sql.is_listed("key", KEYS)})
        select size.key, {status_of(sql, "size")} as status, gpu.family as gpu_family,
        {scope.offer}.priced_in as region, {usd_by(sql, scope.offer, scope.purchase)} as usd_per_hour,
        {scope.offer}.{scope.purchase}_adjustment as adjustment, {LOCAL_DISK_GIB} as local_disk_gib,
        {columns_of("size", _COMPARED)}
        from these join size on size.key = these.size_key {scope.join_to_sizes()}
        left join gpu on gpu.id = size.gpu_id order by size.key"""
