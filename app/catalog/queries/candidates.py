"""Read what sizes are compared by with the prices they would be bought at: the candidates of a fit, similar sizes."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Select,
    Subquery,
    and_,
    bindparam,
    case,
    cast,
    func,
    or_,
    select,
    true,
)

from app.catalog.column_types import UsdColumn
from app.catalog.in_force import Rules
from app.catalog.projections import usd_by
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.filters import ActiveFilter, active_filters, filter_condition, priced_in_all
from app.catalog.queries.params import SimilarSearch, SizeSelection
from app.catalog.queries.price_scope import (
    GPU,
    KEYS,
    SERIES,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    gpu_memory_gib_on_one_gpu,
    key_parameters,
    literal_text,
    local_disk_gib,
    price_parameters,
    size,
    status_of,
)
from app.db.functions import is_listed
from app.db.statements import BoundStatement, cached_statement

SELECTION_FILTERS = ("q", "name", "series", "category", "gpu", "gpu_vendor", "verified", "disputed", "provider")
"""Filters that select candidates; everything else is a requirement, and a fit reports what fails it."""

_NAMING_FILTERS = {"q", "name", "series", "category"}
"""Filters that say which sizes are meant: a placement then also tells why a size without a GPU does not fit.

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


@cached_statement(64)
def _candidates_statement(asked: _Asked, traits: tuple[str, ...]) -> Select[Any]:
    query = _select(PriceScope.for_keys(asked.scope), asked, [size[name] for name in traits])
    return query.where(is_listed(size.key, KEYS))


@cached_statement(64)
def _machines_statement(asked: _Asked, filters: tuple[ActiveFilter, ...]) -> Select[Any]:
    scope, series_gpus = PriceScope.of_key(asked.scope), _series_gpus()
    query = _select(scope, asked, _hardware_columns(series_gpus))
    query = query.where(*(filter_condition(condition, scope) for condition in filters))
    if not any(condition.name in _NAMING_FILTERS for condition in filters):
        query = query.where(or_(size.gpu_count.is_(None), size.gpu_count > 0))
    # The series of each size, and its GPU, or that of its series.
    query = query.join(SERIES, SERIES.c.id == size.series_id, isouter=True)
    query = query.join(series_gpus, series_gpus.c.series_id == size.series_id, isouter=True)
    return query.join(GPU, or_(GPU.c.id == size.gpu_id, _has_gpu_of_series(series_gpus)), isouter=True)


def _select(scope: PriceScope, asked: _Asked, more: Sequence[ColumnElement[Any]]) -> Select[Any]:
    """Select sizes by key, with their prices; the columns of the offer are null for a size without one in the scope."""
    regions: list[BindParameter[str]] = [bindparam(f"available_in_{index}") for index in range(asked.available_in)]
    columns = [
        *(size.key, size.name, status_of(size).label("status"), size.verified, size.provider, size.infiniband_gbps),
        *(size[name] for name in _SIZE_COLUMNS),
        *(column for purchase in asked.purchases for column in _prices(scope.offer, purchase)),
        *(scope.offer[f"{purchase}_adjustment"] for purchase in asked.purchases if asked.adjusted),
        *(scope.offer[f"{purchase}_formula"] for purchase in asked.purchases if asked.computed),
        scope.offer.priced_in.label("region"),
        local_disk_gib().label("local_disk_gib"),
        gpu_memory_gib_on_one_gpu().label("gpu_memory_gib_on_one_gpu"),
        (priced_in_all(scope, size.key, regions) if regions else true()).label("in_every_region"),
        *more,
    ]
    return scope.join_to_sizes(select(*columns).select_from(SIZE)).order_by(size.key)


def _prices(offer: Any, purchase: str) -> list[ColumnElement[Any]]:
    """Return the columns of one purchase model; the price is a Decimal, because costs are exact."""
    return [
        cast(usd_by(offer, purchase), UsdColumn).label(f"{purchase}_usd_per_hour"),
        offer[f"{purchase}_as_of"],
        offer[f"{purchase}_approximate_date"],
        offer[f"{purchase}_median_usd"].is_not(None).label(f"{purchase}_unusual"),
        offer[f"{purchase}_disputed"],
    ]


def _series_gpus() -> Subquery:
    """Select the series whose described sizes all have the same GPU: its id, and the least and greatest counts.

    A size is described if a source says which GPU it has.
    """
    described = SIZE.alias("described")
    figures = [described.c[name] for name in ("gpu_count_numerator", "gpu_count_denominator", "vcpus")]
    ends = [
        end(figure).label(f"{name}_{figure.name}")
        for figure in figures
        for name, end in (("least", func.min), ("most", func.max))
    ]
    return (
        select(described.c.series_id, func.min(described.c.gpu_id).label("gpu_id"), *ends)
        .where(described.c.gpu_id.is_not(None), described.c.series_id.is_not(None))
        .group_by(described.c.series_id)
        .having(func.min(described.c.gpu_id) == func.max(described.c.gpu_id))
        .subquery("series_gpus")
    )


def _has_gpu_of_series(series_gpus: Subquery) -> ColumnElement[bool]:
    """Return the condition that a size whose GPU no source describes has that of its series.

    A size whose source names another GPU model does not.
    """
    model = func.lower(size.gpu_model)
    same = or_(size.gpu_model.is_(None), model == func.lower(gpu.model), model == func.lower(gpu.family))
    return and_(size.gpu_id.is_(None), GPU.c.id == series_gpus.c.gpu_id, same)


def _gpus_of_series(part: str, series_gpus: Subquery) -> ColumnElement[int | None]:
    """Return the number of GPUs (one part of the fraction) that all described sizes of the series have.

    It holds for a size whose vCPUs are as many as theirs, or unseries.
    """
    series = series_gpus.c
    alike = [
        series[f"least_{name}"] == series[f"most_{name}"] for name in ("gpu_count_numerator", "gpu_count_denominator")
    ]
    vcpus = or_(size.vcpus.is_(None), and_(size.vcpus == series.least_vcpus, size.vcpus == series.most_vcpus))
    unknown = and_(size.gpu_id.is_(None) | (size.gpu_count_numerator.is_(None)), GPU.c.id == series.gpu_id)
    return case((and_(unknown, vcpus, *alike), series[f"least_{part}"]))


def _hardware_columns(series_gpus: Subquery) -> list[ColumnElement[Any]]:
    """Return the figures of a size's GPU and of its interconnect; for the latter those of the series go first."""
    domain = func.coalesce(SERIES.c.scale_up_domain_gpus, gpu.scale_up_domain_gpus, 1)
    facts = (gpu[name] for name in GPU_FACTS)
    counts = [
        _gpus_of_series(part, series_gpus).label(f"series_{part}")
        for part in ("gpu_count_numerator", "gpu_count_denominator")
    ]
    described = size.gpu_id.is_not(None) | GPU.c.id.is_(None)
    # Fits ask whether VMs can work together: EFA and RoCE count like InfiniBand.
    has_fabric = case((size.fabric.is_not(None), size.fabric != literal_text("none")), else_=size.infiniband)
    return [
        has_fabric.label("infiniband"),
        size.fabric,
        *facts,
        gpu.id.label("gpu_id"),
        gpu.memory_gib.label("marketed_memory_gib"),
        domain.label("domain_gpus"),
        SERIES.c.rack_vms,
        *counts,
        described.label("described"),
    ]


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
        *(size[name] for name in _COMPARED),
    ]
    return (
        scope.join_to_sizes(select(*columns).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
