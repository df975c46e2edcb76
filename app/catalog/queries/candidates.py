"""The candidates of a fit: every size that a question is about, with the one offer it would be bought at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import BindParameter, ColumnElement, Subquery, and_, bindparam, case, func, or_, select, true

from app.catalog.projections import PRICE_FIELDS, earliest_spot_day
from app.catalog.queries.filters import ActiveFilter, active_filters, filter_condition, priced_in_all
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.price_scope import (
    GPU,
    SERIES,
    SIZE,
    PriceScope,
    gpu,
    gpu_slice_gib,
    local_disk_gib,
    region_parameters,
    size,
    status_of,
)
from app.db.statements import BoundStatement, Rows, Statement, cached_statement

SELECTION_FILTERS = ("q", "name", "series", "gpu", "gpu_vendor", "verified", "disputed")
"""What says which sizes are asked about; everything else is a need, and its failure is told."""

PEAK_DTYPES = ("fp32", "tf32", "fp16", "bf16", "fp8", "fp4")
GPU_FACTS = (
    *("usable_memory_gib", "memory_bandwidth_gb_per_s", "compute_capability"),
    *(f"{kind}_tflops" for kind in PEAK_DTYPES),
)

_PLAIN = ("vcpus", "memory_gib", "gpu_memory_gib", "gpu_count_numerator", "gpu_count_denominator", "network_mbps")


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateStatementKey:
    """Everything a query of candidates is built from but its values."""

    price_scope: PriceScope
    filters: tuple[ActiveFilter, ...]
    traits: tuple[str, ...]
    available_in: int
    hardware: bool


def to_dicts(asked: BoundStatement, rows: Rows) -> list[Mapping[str, Any]]:
    """Give the rows of a query the names of its columns."""
    names = asked.statement.names
    return [dict(zip(names, row, strict=True)) for row in rows]


def candidates_query(
    scope: SizeSelection, traits: Sequence[str], *, today: date, priced_on: date | None = None
) -> BoundStatement:
    """The one query behind a fit of resources, with these traits of each size."""
    return _query(scope, today, priced_on, traits=tuple(traits))


def machines_query(scope: SizeSelection, *, today: date, priced_on: date | None = None) -> BoundStatement:
    """The one query behind a placement: with the facts of GPU and series."""
    return _query(scope, today, priced_on, hardware=True)


def _query(
    scope: SizeSelection, today: date, priced_on: date | None, *, traits: tuple[str, ...] = (), hardware: bool = False
) -> BoundStatement:
    """Ask with the prices of today, or with those that were in force on another day."""
    filters, values = active_filters(scope, SELECTION_FILTERS)
    everywhere = {f"everywhere_{index}": code for index, code in enumerate(scope.available_in)}
    ground = PriceScope.of(scope) if priced_on is None else PriceScope.as_of(scope)
    shape = CandidateStatementKey(
        price_scope=ground, filters=filters, traits=traits, available_in=len(everywhere), hardware=hardware
    )
    values |= everywhere | {"today": today.isoformat()}
    values |= region_parameters(scope) if priced_on is None or scope.region else {}
    values |= _past(priced_on) if priced_on is not None else {}
    return BoundStatement(_statement(shape), values)


def _past(day: date) -> dict[str, str]:
    return {"priced_on": day.isoformat(), "spot_since": earliest_spot_day(day).isoformat()}


@cached_statement(64)
def _statement(shape: CandidateStatementKey) -> Statement:
    """Every size in question; what an offer says is null where it has none in the asked regions."""
    ground = shape.price_scope
    everywhere: list[BindParameter[str]] = [bindparam(f"everywhere_{index}") for index in range(shape.available_in)]
    columns = [
        *(size.key, size.name, status_of(size).label("status"), size.verified, size.infiniband_gbps),
        *(size[name] for name in (*_PLAIN, *shape.traits)),
        *(ground.offer[name] for name in PRICE_FIELDS),
        ground.offer.priced_in.label("region"),
        local_disk_gib().label("local_disk_gib"),
        gpu_slice_gib().label("gpu_memory_gib_on_one_gpu"),
        (priced_in_all(ground, size.key, everywhere) if everywhere else true()).label("in_every_region"),
        *(_of_hardware() if shape.hardware else ()),
    ]
    query = (
        select(*columns)
        .join_from(SIZE, ground.offers, and_(ground.key == size.key, ground.has_offer), isouter=True)
        .where(*(filter_condition(asked, ground) for asked in shape.filters))
        .order_by(size.key)
    )
    if not shape.hardware:
        return Statement(query.join(GPU, GPU.c.id == size.gpu_id, isouter=True))
    joined = query.join(SERIES, SERIES.c.id == size.series_id, isouter=True)
    joined = joined.join(_OF_SERIES, _OF_SERIES.c.series_id == size.series_id, isouter=True)
    return Statement(joined.join(GPU, or_(GPU.c.id == size.gpu_id, _inherits()), isouter=True))


def _of_series() -> Subquery:
    """Each series whose described sizes all have the same GPU: which one, and how many where they all have as many."""
    described = SIZE.alias("described")
    each = [described.c[name] for name in ("gpu_count_numerator", "gpu_count_denominator", "vcpus")]
    ends = [
        end(one).label(f"{name}_{one.name}") for one in each for name, end in (("least", func.min), ("most", func.max))
    ]
    return (
        select(described.c.series_id, func.min(described.c.gpu_id).label("gpu_id"), *ends)
        .where(described.c.gpu_id.is_not(None), described.c.series_id.is_not(None))
        .group_by(described.c.series_id)
        .having(func.min(described.c.gpu_id) == func.max(described.c.gpu_id))
        .subquery("of_series")
    )


_OF_SERIES = _of_series()


def _inherits() -> ColumnElement[bool]:
    """Whether a size of which no source describes the GPU has that of its series; never where it is called another."""
    called = func.lower(size.gpu_model)
    same = or_(size.gpu_model.is_(None), called == func.lower(gpu.model), called == func.lower(gpu.family))
    return and_(size.gpu_id.is_(None), GPU.c.id == _OF_SERIES.c.gpu_id, same)


def _gpus_of_series(part: str) -> ColumnElement[int | None]:
    """The number of GPUs (a part of the fraction) that all described sizes of the series have, with as many vCPUs."""
    known = _OF_SERIES.c
    alike = [
        known[f"least_{name}"] == known[f"most_{name}"] for name in ("gpu_count_numerator", "gpu_count_denominator")
    ]
    vcpus = or_(size.vcpus.is_(None), and_(size.vcpus == known.least_vcpus, size.vcpus == known.most_vcpus))
    unknown = and_(size.gpu_id.is_(None) | (size.gpu_count_numerator.is_(None)), GPU.c.id == known.gpu_id)
    return case((and_(unknown, vcpus, *alike), known[f"least_{part}"]))


def _of_hardware() -> list[ColumnElement[Any]]:
    """What is known of a size's GPU and of how its GPUs are joined; a series knows that better than the GPU does."""
    domain = func.coalesce(SERIES.c.scale_up_domain_gpus, gpu.scale_up_domain_gpus, 1)
    facts = (gpu[name] for name in GPU_FACTS)
    counts = [
        _gpus_of_series(part).label(f"series_{part}") for part in ("gpu_count_numerator", "gpu_count_denominator")
    ]
    described = size.gpu_id.is_not(None) | GPU.c.id.is_(None)
    return [
        size.infiniband,
        *facts,
        gpu.memory_gib.label("marketed_memory_gib"),
        domain.label("domain_gpus"),
        SERIES.c.rack_vms,
        *counts,
        described.label("described"),
    ]
