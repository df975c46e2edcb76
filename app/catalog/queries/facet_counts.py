"""Counts the facets of a search: the sets of sizes that have each value, intersected with those that are found."""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Any

from app.catalog.queries.facets import (
    COUNTED_FACETS,
    FACET_OF_PARAM,
    FIGURES,
    FLAG_FACETS,
    RANGE_FACETS,
    FacetCount,
    FacetRange,
    Facets,
    Undecided,
)
from app.catalog.queries.filters import PRICE_FILTERS
from app.catalog.queries.params import SizeFilter, check_days
from app.catalog.queries.size_sets import UNKNOWN, SizeQuestion, SizeSets, load_sets, priced_within
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan

_COLUMNS = {"series": "series_id"}
"""Columns of facets whose names differ."""
_OF_GPUS = {"gpu_memory_gib", "gpu_memory_gib_per_gpu", "nvlink", "gpudirect_rdma"}
"""Fields that do not apply to sizes without a GPU, so null does not mean unknown."""


def find_facets(search: SizeFilter, snapshot: CatalogSnapshot, today: date) -> QueryPlan[Facets]:
    """Find the facets of a search; raises BadQuery for a name that the catalog does not have, or a day."""
    check_days(search, today)
    search = normalize(search, snapshot)
    sets = yield from load_sets(snapshot)
    question = SizeQuestion(sets, search, snapshot, today)
    offered, prices = (yield from question.offered()), (yield from question.prices())
    met: dict[str, int] = {}
    for name in question.names:
        met[name] = yield from question.meets(name)
    found = reduce(and_, met.values(), offered)

    def without(facet: str) -> int:
        """Return the sizes that would be found without the facet's own filters."""
        return reduce(and_, (one for name, one in met.items() if FACET_OF_PARAM.get(name) != facet), offered)

    counts: dict[str, list[FacetCount]] = {}
    for name in COUNTED_FACETS:
        counts[name] = _count(without(name), (yield from _sets_by_value(sets, name, today)))
    counts["region"] = yield from _count_regions(
        question,
        search,
        offered_anywhere=reduce(and_, (one for name, one in met.items() if name not in PRICE_FILTERS), sets.all),
    )
    flags: list[FacetCount] = []
    for name in FLAG_FACETS:
        having = (yield from _sets_by_value(sets, name, today)).get(1, 0)
        flags.append(FacetCount(value=name, count=(without(name) & having).bit_count()))
    counts["flags"] = flags
    ranges: dict[str, FacetRange] = {}
    for name in RANGE_FACETS:
        figures = prices.usd if name == "usd_per_hour" else (yield from sets.values(_COLUMNS.get(name, name), today))
        ranges[name] = _range(name, [figures[place] for place in sets.places_in(without(name))])
    undecided = yield from _undecided(question, met, offered, today)
    return Facets(total=found.bit_count(), undecided=undecided, counts=counts, ranges=ranges)


def _sets_by_value(sets: SizeSets, name: str, today: date) -> QueryPlan[Mapping[Any, int]]:
    """Return the sizes that have each value of a figure; those whose value is unknown are under None."""

    def ask() -> QueryPlan[Mapping[Any, int]]:
        places = defaultdict[Any, list[int]](list)
        for place, value in enumerate((yield from sets.values(_COLUMNS.get(name, name), today))):
            places[value].append(place)
        return {value: sets.set_of(of_value) for value, of_value in places.items()}

    key: Hashable = ("by value", name, today if name == "status" else None)
    return sets.keep(key, ask)


def _count(found: int, by_value: Mapping[Any, int]) -> list[FacetCount]:
    """Count the values that some sizes have, greatest count first; among equal counts, unknown comes last."""
    counts = [(value, (found & having).bit_count()) for value, having in by_value.items()]
    ordered = sorted((-count, value is None, value or "", value) for value, count in counts if count)
    return [FacetCount(value=value, count=-count) for count, _, _, value in ordered]


def _count_regions(question: SizeQuestion, search: SizeFilter, *, offered_anywhere: int) -> QueryPlan[list[FacetCount]]:
    """Count how many sizes a search in each region alone would find, the greatest count first."""
    bounds = {name: getattr(search, name) for name in question.names if name in PRICE_FILTERS}
    counts: dict[str, int] = {}
    for region, prices in (yield from question.region_prices()).items():
        found = offered_anywhere & prices.offered
        for name, bound in bounds.items():
            found &= priced_within(question.sets, prices, name, bound)
        counts[region] = found.bit_count()
    ordered = sorted((-count, code) for code, count in counts.items() if count)
    return [FacetCount(value=code, count=-count) for count, code in ordered]


def _range(name: str, figures: list[float | None]) -> FacetRange:
    known = [figure for figure in figures if figure is not None and figure != UNKNOWN]
    least, most = (float(min(known)), float(max(known))) if known else (None, None)
    return FacetRange(min=_shown(name, least), max=_shown(name, most), unknown=len(figures) - len(known))


def _shown(name: str, value: float | None) -> float | None:
    """Round a number of GPUs to four digits, as in a list: a sixth is 0.1667."""
    return round(value, 4) if name == "gpu_count" and value is not None else value


def _undecided(question: SizeQuestion, met: Mapping[str, int], offered: int, today: date) -> QueryPlan[Undecided]:
    """Count the sizes that might match if their unknown figures were known."""
    unknown: dict[str, int] = {}
    for name in met:
        if FACET_OF_PARAM.get(name) in FIGURES:
            unknown[name] = yield from _unknown(question, FACET_OF_PARAM[name], today)
    possible = reduce(and_, (one | unknown.get(name, 0) for name, one in met.items()), offered)
    by_field: dict[str, int] = {FACET_OF_PARAM[name]: one & possible for name, one in unknown.items()}
    fields = [FacetCount(value=name, count=one.bit_count()) for name, one in by_field.items() if one]
    total = reduce(or_, by_field.values(), 0).bit_count()
    return Undecided(total=total, fields=fields, detail=_in_words(total, fields))


def _in_words(total: int, fields: list[FacetCount]) -> str | None:
    if not total:
        return None
    unknown = ", ".join(f"{one.value} for {one.count:,}" for one in fields)
    unknown = unknown.replace(" for ", " is unknown for ", 1)
    return f"{total:,} more {'size' if total == 1 else 'sizes'} may match: {unknown}"


def _unknown(question: SizeQuestion, facet: str, today: date) -> QueryPlan[int]:
    """Return the sizes whose value for a facet is unknown; a value that does not apply to a size is not unknown."""
    sets = question.sets
    if facet == "usd_per_hour":
        prices = yield from question.prices()
        return prices.offered & sets.set_of(place for place, usd in enumerate(prices.usd) if usd == UNKNOWN)
    unknown = (yield from _sets_by_value(sets, facet, today)).get(None, 0)
    lacking = 0
    if facet in _OF_GPUS:
        lacking = (yield from _sets_by_value(sets, "gpu_count", today)).get(0, 0)
    elif facet == "infiniband_gbps":
        lacking = (yield from _sets_by_value(sets, "infiniband", today)).get(0, 0)
    return unknown & ~lacking
