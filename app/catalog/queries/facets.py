"""Facets: the counts and ranges that a panel of filters shows beside a list, and what to relax where it finds nothing.

A facet ignores its own parameter: with `gpu=A100` the counts of GPU models are those of all models that the other
filters leave, so that a second one can be chosen. Likewise a range ignores its own bounds.

"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import and_, or_
from typing import Any

import orjson

from app.catalog.fields import SHOWN_FIELDS
from app.catalog.queries.filters import FILTERS, PRICE_FILTERS
from app.catalog.queries.lookups import place_regions
from app.catalog.queries.params import FACET_OF_PARAM, FILTERED_FIELDS, SizeFilter, SizeList, check_days
from app.catalog.queries.size_sets import FIGURES_OF_THEIR_OWN, SizeQuestion
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery

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

_BOUNDED = {
    (field, name[:3]): figure
    for field, names in RANGE_FACETS.items()
    for name in names
    if (figure := FILTERS[name].figure) and figure != field
}
"""The figure behind a range's `min` or `max` where it differs from the field, such as a slice of a GPU's memory."""


def unknown_note(unknown: Mapping[str, int], total: int | None = None) -> str | None:
    """Return a sentence of how many sizes may match by unknown field, and together; None if there are none."""
    if not unknown:
        return None
    if total is None and len(unknown) == 1:
        (total,) = unknown.values()
    if total is None:
        more = f"At least {max(unknown.values()):,} more sizes"
    else:
        more = f"{total:,} more {'size' if total == 1 else 'sizes'}"
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


_COLUMNS = {"series": "series_id"}
"""Columns of facets whose names differ."""

_JOINED = frozenset({"disk_controller"})
"""Columns that join several names, each of which is counted."""

_FIGURES = tuple(
    dict.fromkeys(
        _COLUMNS.get(name, name)
        for name in (*COUNTED_FACETS, *FLAG_FACETS, *RANGE_FACETS)
        if name != "usd_per_hour" and name not in FIGURES_OF_THEIR_OWN
    )
    | dict.fromkeys(_BOUNDED.values())
)
"""The figures of sizes that facets count, which depend on nothing else."""


def find_facets(catalog: Catalog, search: SizeFilter) -> Facets:
    """Find the facets of a search; raises BadQuery for a name that the catalog does not have, or a day."""
    check_days(search, catalog.today)
    there = place_regions(search.model_copy(update={"region": ()}), catalog.snapshot.regions).region
    search = normalize(search, catalog.snapshot)
    question = SizeQuestion(catalog, search)
    question.read_together(_FIGURES)
    offered = question.offered()
    met: dict[str, int] = {}
    for name in question.names:
        met[name] = question.meets(name)
    matching = reduce(and_, met.values(), offered)

    def without(facet: str) -> int:
        """Return the sizes that would be found without the facet's own filters."""
        return reduce(and_, (sizes for name, sizes in met.items() if FACET_OF_PARAM.get(name) != facet), offered)

    counts: dict[str, list[FacetCount]] = {}
    for name in COUNTED_FACETS:
        by_value = question.sets_by_value(_COLUMNS.get(name, name))
        counts[name] = _count(without(name), _by_part(by_value) if name in _JOINED else by_value)
    anywhere = (sizes for name, sizes in met.items() if name not in {*PRICE_FILTERS, "min_zones"})
    in_regions = _count_regions(question, search, offered_anywhere=reduce(and_, anywhere, question.sets.all))
    counts["region"] = [entry for entry in in_regions if not there or entry.value in there]
    flags: list[FacetCount] = []
    for name in FLAG_FACETS:
        having = question.sets_by_value(name).get(1, 0)
        flags.append(FacetCount(value=name, count=(without(name) & having).bit_count()))
    counts["flags"] = flags
    ranges = {name: _range(question, name, without(name)) for name in RANGE_FACETS}
    undecided = _undecided(question)
    return Facets(total=matching.bit_count(), undecided=undecided, counts=counts, ranges=ranges)


def _by_part(by_value: Mapping[Any, int]) -> Mapping[Any, int]:
    """Return the sizes that have each of several names in a text, as the filter finds them."""
    by_part = defaultdict[Any, int](int)
    for text, sizes in by_value.items():
        for part in text.split(", ") if text is not None else (None,):
            by_part[part] |= sizes
    return by_part


def _count(matching: int, by_value: Mapping[Any, int]) -> list[FacetCount]:
    """Count the values that some sizes have, greatest count first; among equal counts, unknown comes last."""
    counts = [(value, (matching & having).bit_count()) for value, having in by_value.items()]
    ordered = sorted((-count, value is None, value or "", value) for value, count in counts if count)
    return [FacetCount(value=value, count=-count) for count, _, _, value in ordered]


def _count_regions(question: SizeQuestion, search: SizeFilter, *, offered_anywhere: int) -> list[FacetCount]:
    """Count how many sizes a search in each region alone would find, the greatest count first."""
    bounds = {name: getattr(search, name) for name in question.names if name in PRICE_FILTERS}
    counts: dict[str, int] = {}
    steps = question.region_price_steps() if bounds else {}
    in_zones = question.in_zones(search.min_zones) if search.min_zones is not None else None
    for region, prices in question.region_prices().items():
        offered = offered_anywhere & prices.offered
        for name, bound in bounds.items():
            offered &= steps[region].within(name, float(bound))
        if in_zones is not None:
            offered &= in_zones.get(region, 0)
        counts[region] = offered.bit_count()
    ordered = sorted((-count, code) for code, count in counts.items() if count)
    return [FacetCount(value=code, count=-count) for count, code in ordered]


def _range(question: SizeQuestion, name: str, matching: int) -> FacetRange:
    if name == "usd_per_hour":
        steps = question.price_steps()
        least, most = steps.ends(matching)
        unknown = matching & ~steps.priced
    else:
        unknown = matching & question.sets_by_value(_COLUMNS.get(name, name)).get(None, 0)
        from_least, to_most = (
            [*question.sets_by_value(_BOUNDED.get((name, end), name)).items()] for end in ("min", "max")
        )
        least, most = _first(from_least, matching), _first(reversed(to_most), matching)
    return FacetRange(min=_shown(name, least), max=_shown(name, most), unknown=unknown.bit_count())


def _first(by_value: Iterable[tuple[Any, int]], matching: int) -> float | None:
    """Return the first known value that at least one matching size has."""
    return next((float(value) for value, sizes in by_value if value is not None and matching & sizes), None)


def _shown(name: str, value: float | None) -> float | None:
    """Round a number of GPUs to four digits, as in a list: a sixth is 0.1667."""
    return round(value, 4) if name == "gpu_count" and value is not None else value


def _undecided(question: SizeQuestion) -> Undecided:
    """Count the sizes that might match if their unknown figures were known."""
    by_field = question.undecided()
    fields = [FacetCount(value=name, count=sizes.bit_count()) for name, sizes in by_field.items()]
    total = reduce(or_, by_field.values(), 0).bit_count()
    return Undecided(
        total=total, fields=fields, detail=unknown_note({entry.value or "": entry.count for entry in fields}, total)
    )


_IGNORED = frozenset(("sort", "known_at"))
"""Parameters that leave nothing out; a day does where a region has no price on it."""

_INSTEAD: Mapping[str, Any] = {"status": ("any",)}
"""What takes the place of a filter that holds even if it is not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Filters that leave out everything together: how many sizes are found without them.

    Of a single bound `nearest` is the value that finds something, the nearest to the one given, and `nearest_count` how
    many sizes it finds. `instead` has the values to search with, None for a filter that is left out.
    """

    names: tuple[str, ...]
    instead: Mapping[str, Any]
    count: int
    nearest: float | Fraction | None = None
    nearest_count: int = 0


def find_relaxations(catalog: Catalog, search: SizeList) -> list[Relaxation]:
    """Find which filter to relax, and by how much; pairs of filters where no single one is enough.

    A bound that is moved comes before a filter that is given up; then those that find least, as they keep most of what
    was asked for.
    """
    names = [
        name
        for name in search.model_fields_set - _IGNORED
        if getattr(search, name) != SizeList.model_fields[name].default
    ]
    names += [name for name in _INSTEAD if name not in names]
    relaxations: list[Relaxation] = []
    for together in (1, 2):
        for chosen in combinations(sorted(names), together):
            relaxation = _relaxed(catalog, search, chosen)
            if relaxation.count:
                relaxations.append(relaxation)
        if relaxations:
            break
    return sorted(relaxations, key=lambda option: (option.nearest is None, option.count, option.names))


def _relaxed(catalog: Catalog, search: SizeList, names: tuple[str, ...]) -> Relaxation:
    instead = {name: _INSTEAD.get(name) for name in names}
    bound = names[0] if len(names) == 1 and FACET_OF_PARAM.get(names[0]) in RANGE_FACETS else ""
    count, reached = _count_without(catalog, search, instead, bound)
    relaxation = Relaxation(names=names, instead=instead, count=count)
    if not bound or not count or reached is None:
        return relaxation
    # What a figure's bound is compared with may differ from the figure itself, as of a slice of a GPU: it is tried.
    nearest = _as_parameter(bound, reached)
    nearest_count, _ = _count_without(catalog, search, {bound: nearest}, "")
    if not nearest_count:
        return relaxation
    return Relaxation(names=names, instead={bound: nearest}, count=count, nearest=nearest, nearest_count=nearest_count)


def _count_without(
    catalog: Catalog, search: SizeList, instead: Mapping[str, Any], bound: str
) -> tuple[int, float | None]:
    given = {name: getattr(search, name) for name in search.model_fields_set if name not in instead}
    changed = {name: str(value) if isinstance(value, Fraction) else value for name, value in instead.items()}
    relaxed = SizeList(**given, **{name: value for name, value in changed.items() if value is not None})
    try:
        # Normalize only after dropping the filter: a country turns into its regions, which would survive it.
        question = SizeQuestion(catalog, normalize(relaxed, catalog.snapshot))
    except BadQuery:  # zones are of one region
        return 0, None
    matching = question.found()
    if not bound:
        return matching.bit_count(), None
    figures = question.figures(FACET_OF_PARAM[bound])
    stated = [float(figures[place]) for place in question.sets.places_in(matching) if figures[place] is not None]
    reached = max if bound.startswith("min_") else min
    return matching.bit_count(), reached(stated, default=None)


def _as_parameter(bound: str, reached: float) -> float | Fraction:
    """Return a figure as its parameter has it: a network in Gbps, a part of a GPU as a fraction."""
    if bound == "min_network_gbps":
        return reached / 1000
    if FACET_OF_PARAM[bound] == "gpu_count":
        return Fraction(reached).limit_denominator(8)
    return int(reached) if reached.is_integer() else reached
