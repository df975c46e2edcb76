"""Facets: the counts and ranges that a panel of filters shows beside a list.

A facet ignores its own parameter: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range ignores its own bounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from app.catalog.fields import SHOWN_FIELDS
from app.catalog.queries.params import FILTERED_FIELDS, SizeSelection

_BOUNDS = {name: field for name, field in FILTERED_FIELDS.items() if name != field}
_TEXTS = {field: name for name, field in FILTERED_FIELDS.items() if SHOWN_FIELDS[field].kind == "text"}
_FLAGS = [field for field in FILTERED_FIELDS.values() if SHOWN_FIELDS[field].kind == "boolean"]

COUNTED_FACETS: Mapping[str, str] = {
    "gpu_model": "gpu",
    **{name: _TEXTS[name] for name in dict.fromkeys(("gpu_vendor", "series", "category", "status", *_TEXTS))},
}
"""Facets whose values are counted, each with the parameter that filters by it; regions are counted by their offers."""

FLAG_FACETS = tuple(dict.fromkeys(("verified", "disputed", *_FLAGS)))
"""Boolean columns: the number of sizes where each is true is counted."""

RANGE_FACETS: Mapping[str, Sequence[str]] = {
    field: tuple(name for name, bounded in _BOUNDS.items() if bounded == field)
    for field in ("usd_per_hour", *_BOUNDS.values())
}
"""Figures whose least and greatest value are taken, each with the parameters that are its bounds."""

FACET_OF_PARAM: Mapping[str, str] = {"gpu": "gpu_model", "cpu": "cpu_model", **FILTERED_FIELDS}
"""The facet that ignores each parameter; a parameter that is not here narrows all facets."""
FIGURES = {FACET_OF_PARAM[name] for name in FACET_OF_PARAM if name not in SizeSelection.model_fields}
FIGURES |= {*FLAG_FACETS, *RANGE_FACETS}
"""What filters of a VM itself are about; a size of which that is unknown may match."""


def unknown_note(unknown: Mapping[str, int], total: int | None = None) -> str | None:
    """Return a sentence of how many sizes may match by unknown field, and together; None if there are none."""
    if not unknown:
        return None
    if total is None and len(unknown) == 1:
        (total,) = unknown.values()
    more = "more sizes" if total is None else f"{total:,} more {'size' if total == 1 else 'sizes'}"
    fields = ", ".join(f"{name} for {count:,}" for name, count in unknown.items())
    return f"{more} may match: {fields.replace(' for ', ' is unknown for ', 1)}"


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
