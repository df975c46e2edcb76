"""Facets: the counts and ranges that a panel of filters shows beside a list.

A facet ignores its own parameter: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range ignores its own bounds.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Region
from app.catalog.queries.filters import active_names
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.price_scope import (
    PriceScope,
    local_disk_gib,
    status_of,
)

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
"""Facets whose values are counted; regions are counted by the offers of each."""

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
FIGURES = {*FLAG_FACETS, *RANGE_FACETS}
"""Facets of figures; a size whose figure is unknown may match a filter on it."""


def may_be_undecided(search: SizeFilter) -> bool:
    """Return whether a search filters by figures, so that sizes may match whose figures are unknown."""
    return any(FACET_OF_PARAM.get(name) in FIGURES for name in active_names(search, FACET_OF_PARAM))


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
class Undecided:
    """The sizes that may match: they meet every filter on known figures, and have an unknown one that is filtered by.

    `fields` counts these sizes by unknown field; `detail` is a sentence, None if there are no such sizes.
    """

    total: int
    fields: Sequence[FacetCount]
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The number of sizes that all filters leave, the undecided ones, and the counts and ranges of each facet."""

    total: int
    undecided: Undecided
    counts: Mapping[str, Sequence[FacetCount]]
    ranges: Mapping[str, FacetRange]


def render_facets(facets: Facets) -> str:
    """Render facets as the API does."""
    return orjson.dumps(
        {"total": facets.total, "undecided": facets.undecided, **facets.counts, **facets.ranges}
    ).decode()
