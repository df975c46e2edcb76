"""Facets: what a panel of filters shows beside a list, for all filters in one answer.

A facet leaves its own parameter out: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range leaves its own bounds out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from app.catalog.queries.facet_rows import COUNTED, FLAGS, RANGES, facet_counts, facet_figures, facet_regions
from app.catalog.queries.filters import FILTERS, PLACES, asked_filters
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.price_scope import Ground, region_values
from app.catalog.queries.sizes import settle
from app.catalog.queries.snapshot import Known
from app.db.statements import Ask, Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """How many sizes have a value; null is unknown, or for a GPU none."""

    value: str | None
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The least and the greatest value that is known, and of how many sizes it is not."""

    min: float | None
    max: float | None
    unknown: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """How many sizes all filters leave, and what each facet counts."""

    total: int
    counts: Mapping[str, Sequence[Count]]
    ranges: Mapping[str, Range]


def find_facets(search: SizeFilter, known: Known, today: date) -> Question[Facets]:
    """Find the facets of a search by three statements; raises BadQuestion for a region or series unknown here."""
    search = settle(search, known)
    filters, values = asked_filters(search, FILTERS)
    filters = tuple(asked for asked in filters if asked.name not in PLACES)
    ground = Ground.of(search)
    values |= region_values(search) | {"today": today.isoformat()}
    ((total, *figures),) = yield Ask(facet_figures(ground, filters), values)
    counted = yield Ask(facet_counts(ground, filters), values)
    regions = yield Ask(facet_regions(ground.os, ground.purchase, filters), values)
    counts: dict[str, list[Count]] = {name: [] for name in (*COUNTED, "region", "flags")}
    for name, value, count in counted:
        counts[name].append(Count(value=value, count=count))
    counts["region"] = [Count(value=code, count=count) for code, count in regions if count]
    flags, ends = figures[: len(FLAGS)], iter(figures[len(FLAGS) :])
    counts["flags"] = [Count(value=name, count=count) for name, count in zip(FLAGS, flags, strict=True)]
    triples = zip(RANGES, zip(ends, ends, ends, strict=True), strict=True)
    ranges = {
        name: Range(min=_shown(name, least), max=_shown(name, most), unknown=unknown)
        for name, (least, most, unknown) in triples
    }
    return Facets(total=total, counts=counts, ranges=ranges)


def _shown(name: str, value: float | None) -> float | None:
    """A sixth of a GPU is shown to four digits, as it is in a list."""
    return round(value, 4) if name == "gpu_count" and value is not None else value
