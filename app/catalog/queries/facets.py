"""Facets: the counts and ranges that a panel of filters shows beside a list, for all filters in three statements.

A facet ignores its own parameter: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range ignores its own bounds.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import CTE, ColumnElement, Double, and_, bindparam, cast, func, select, true, union_all

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Region
from app.catalog.queries.filters import (
    FILTERS,
    SCOPE_FILTERS,
    ActiveFilter,
    Condition,
    active_filters,
    filter_condition,
    priced_in_all,
)
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    PriceScope,
    literal_text,
    local_disk_gib,
    region_parameters,
    size,
    status_of,
)
from app.catalog.queries.size_statements import join_tables, uses_table
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Statement, cached_statement

REGION = table_of(Region)
FacetColumn = Callable[[PriceScope], ColumnElement[Any]]


@dataclass(frozen=True, slots=True)
class Facet:
    """A column whose values are counted, or whose range is taken, and the parameters that filter by it."""

    column: FacetColumn
    params: tuple[str, ...]


def _facet(name: str, *params: str) -> Facet:
    return Facet(lambda scope: scope.column(name), params)


COUNTED_FACETS: Mapping[str, Facet] = {
    "gpu_model": _facet("gpu_model", "gpu"),
    "gpu_vendor": _facet("gpu_vendor", "gpu_vendor"),
    "series": _facet("series_id", "series"),
    "category": _facet("category", "category"),
    "status": Facet(lambda scope: status_of(scope.offer), ("status",)),
    "arch": _facet("arch", "arch"),
}
"""Facets whose values are counted; regions are counted by another statement, in the offers of each."""

FLAG_FACETS = ("verified", "disputed", "infiniband", "nvlink", *SIZE_FLAGS)
"""Boolean columns: the number of sizes where each is true is counted."""

RANGE_FACETS: Mapping[str, Facet] = {
    "usd_per_hour": Facet(lambda scope: scope.usd, ("min_usd_per_hour", "max_usd_per_hour")),
    "gpu_memory_gib": _facet("gpu_memory_gib", "min_gpu_mem", "max_gpu_mem"),
    "gpu_memory_gib_per_gpu": _facet("gpu_memory_gib_per_gpu", "min_gpu_mem_per_gpu", "max_gpu_mem_per_gpu"),
    "gpu_count": _facet("gpu_count", "min_gpus", "max_gpus"),
    "vcpus": _facet("vcpus", "min_vcpus", "max_vcpus"),
    "memory_gib": _facet("memory_gib", "min_memory", "max_memory"),
    "local_disk_gib": Facet(lambda _scope: local_disk_gib(), ("min_local_disk",)),
    "network_mbps": _facet("network_mbps", "min_network_gbps"),
    "infiniband_gbps": _facet("infiniband_gbps", "min_infiniband_gbps"),
}
"""Columns whose least and greatest value are taken, for every parameter that is a bound."""

FACET_OF_PARAM: Mapping[str, str] = {
    **{
        own: name for facets in (COUNTED_FACETS, RANGE_FACETS) for name, facet in facets.items() for own in facet.params
    },
    **{name: name for name in FLAG_FACETS},
}
"""The facet that ignores each parameter; a parameter that is not here narrows all facets."""


@cached_statement(64)
def facet_figures(scope: PriceScope, filters: tuple[ActiveFilter, ...]) -> Statement:
    """Build the statement of one row: total, count of each flag, then least, greatest and unknown of ranges."""
    found, meets = _found(scope, filters)
    columns: list[ColumnElement[Any]] = [func.count().filter(_all(meets))]
    columns += [func.count().filter(_all(meets, but=name), found.c[name].is_(True)) for name in FLAG_FACETS]
    for name in RANGE_FACETS:
        value, others = found.c[name], _all(meets, but=name)
        columns += [cast(func.min(value).filter(others), Double), cast(func.max(value).filter(others), Double)]
        columns.append(func.count().filter(others, value.is_(None)))
    return Statement(select(*(column.label(f"c{index}") for index, column in enumerate(columns))).select_from(found))


@cached_statement(64)
def facet_counts(scope: PriceScope, filters: tuple[ActiveFilter, ...]) -> Statement:
    """Build the statement of rows of facet, value and count, the greatest count first."""
    found, meets = _found(scope, filters)
    each = [
        select(literal_text(name).label("facet"), found.c[name].label("value"), func.count().label("count"))
        .where(_all(meets, but=name))
        .group_by(found.c[name])
        for name in COUNTED_FACETS
    ]
    rows = union_all(*each).subquery()
    return Statement(select(rows).order_by(rows.c.facet, rows.c.count.desc(), rows.c.value.is_(None), rows.c.value))


@cached_statement(64)
def facet_regions(os: str, purchase: str, filters: tuple[ActiveFilter, ...]) -> Statement:
    """Build the statement of rows of region and count: how many sizes a search in this region alone would find."""
    in_region = and_(OFFER.c.region == REGION.c.code, OFFER.c.os == literal_text(os))
    scope = PriceScope(os=os, purchase=purchase, offers=OFFER, has_offer=in_region)
    of_sizes: list[Condition] = []
    of_offers: list[Condition] = []
    for one in filters:
        each = _in_all(scope, one.count) if one.name == "available_in" else filter_condition(one, scope)
        (of_sizes if uses_table(SIZE, [each]) or uses_table(GPU, [each]) else of_offers).append(each)
    found = select(func.count()).select_from(OFFER).where(in_region, *of_offers)
    if of_sizes:  # evaluated once for each size, not again in every region
        keys = select(SIZE.c.key).join_from(SIZE, GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True).where(*of_sizes)
        found = found.where(OFFER.c.size_key.in_(keys.correlate(None)))
    count = found.correlate(REGION).scalar_subquery().label("count")
    return Statement(select(REGION.c.code, count).order_by(count.desc(), REGION.c.code))


def _in_all(scope: PriceScope, count: int) -> Condition:
    """Return the condition that a size, rather than an offer of it, is priced in every region of `available_in`."""
    return priced_in_all(scope, size.key, [bindparam(f"available_in_{index}") for index in range(count)])


def _found(scope: PriceScope, filters: Iterable[ActiveFilter]) -> tuple[CTE, Mapping[str, Condition]]:
    """Select the sizes that meet all filters of no facet, and whether each meets the filters of each facet."""
    narrowing = [filter_condition(one, scope) for one in filters if one.name not in FACET_OF_PARAM]
    by_facet: dict[str, list[Condition]] = {}
    for one in filters:
        if one.name in FACET_OF_PARAM:
            by_facet.setdefault(FACET_OF_PARAM[one.name], []).append(filter_condition(one, scope))
    columns = {name: facet.column(scope) for name, facet in (COUNTED_FACETS | RANGE_FACETS).items()}  # type: ignore[operator]
    columns |= {name: size[name] for name in FLAG_FACETS}
    columns |= {f"meets_{name}": and_(*conditions) for name, conditions in by_facet.items()}
    shown = [column.label(name) for name, column in columns.items()]
    found = join_tables(select(*shown), scope, [*narrowing, *shown]).where(scope.has_offer, *narrowing).cte("found")
    return found, {name: found.c[f"meets_{name}"] for name in by_facet}


def _all(meets: Mapping[str, Condition], but: str = "") -> Condition:
    return and_(true(), *(met for name, met in meets.items() if name != but))


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetCount:
    """How many sizes have a value; null is unknown, or no GPU."""

    value: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FacetRange:
    """The least and the greatest known value, and for how many sizes it is unknown."""

    min: float | None
    max: float | None
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The number of sizes that all filters leave, and the counts and ranges of each facet."""

    total: int
    counts: Mapping[str, Sequence[FacetCount]]
    ranges: Mapping[str, FacetRange]


def find_facets(search: SizeFilter, snapshot: CatalogSnapshot, today: date) -> QueryPlan[Facets]:
    """Find the facets of a search; raises BadQuery for a name that the catalog does not have."""
    search = normalize(search, snapshot)
    filters, values = active_filters(search, FILTERS)
    filters = tuple(one for one in filters if one.name not in SCOPE_FILTERS)
    scope = PriceScope.of(search, snapshot.rules)
    values |= region_parameters(search) | {"today": today.isoformat()}
    ((total, *figures),) = yield BoundStatement(facet_figures(scope, filters), values)
    counted = yield BoundStatement(facet_counts(scope, filters), values)
    regions = yield BoundStatement(facet_regions(scope.os, scope.purchase, filters), values)
    counts: dict[str, list[FacetCount]] = {name: [] for name in (*COUNTED_FACETS, "region", "flags")}
    for name, value, count in counted:
        counts[name].append(FacetCount(value=value, count=count))
    counts["region"] = [FacetCount(value=code, count=count) for code, count in regions if count]
    flags, ends = figures[: len(FLAG_FACETS)], iter(figures[len(FLAG_FACETS) :])
    counts["flags"] = [FacetCount(value=name, count=count) for name, count in zip(FLAG_FACETS, flags, strict=True)]
    triples = zip(RANGE_FACETS, zip(ends, ends, ends, strict=True), strict=True)
    ranges = {
        name: FacetRange(min=_shown(name, least), max=_shown(name, most), unknown=unknown)
        for name, (least, most, unknown) in triples
    }
    return Facets(total=total, counts=counts, ranges=ranges)


def _shown(name: str, value: float | None) -> float | None:
    """Round a number of GPUs to four digits, as in a list: a sixth is 0.1667."""
    return round(value, 4) if name == "gpu_count" and value is not None else value
