"""Facets: the counts and ranges that a panel of filters shows beside a list.

A facet ignores its own parameter: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range ignores its own bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from app.catalog.fields import SIZE_FLAGS
from app.catalog.queries.filters import active_names
from app.catalog.queries.params import SizeFilter

COUNTED_FACETS: Mapping[str, str] = {
    "gpu_model": "gpu",
    "gpu_vendor": "gpu_vendor",
    "series": "series",
    "category": "category",
    "status": "status",
    "arch": "arch",
}
"""Facets whose values are counted, each with the parameter that filters by it; regions are counted by their offers."""

FLAG_FACETS = ("verified", "disputed", "infiniband", "nvlink", *SIZE_FLAGS)
"""Boolean columns: the number of sizes where each is true is counted."""

RANGE_FACETS: Mapping[str, Sequence[str]] = {
    "usd_per_hour": ("min_usd_per_hour", "max_usd_per_hour"),
    "gpu_memory_gib": ("min_gpu_mem", "max_gpu_mem"),
    "gpu_memory_gib_per_gpu": ("min_gpu_mem_per_gpu", "max_gpu_mem_per_gpu"),
    "gpu_count": ("min_gpus", "max_gpus"),
    "vcpus": ("min_vcpus", "max_vcpus"),
    "memory_gib": ("min_memory", "max_memory"),
    "local_disk_gib": ("min_local_disk",),
    "network_mbps": ("min_network_gbps",),
    "infiniband_gbps": ("min_infiniband_gbps",),
}
"""Figures whose least and greatest value are taken, each with the parameters that are its bounds."""

FACET_OF_PARAM: Mapping[str, str] = {
    **{param: facet for facet, param in COUNTED_FACETS.items()},
    **{param: facet for facet, params in RANGE_FACETS.items() for param in params},
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
