"""What to relax of a search that finds nothing: each filter in turn is left out, and what is left is counted."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

from app.catalog.queries.facets import RANGE_FACETS
from app.catalog.queries.params import FACET_OF_PARAM, SizeList
from app.catalog.queries.size_sets import SizeQuestion
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog

_IGNORED = frozenset(("sort", "as_of", "known_at"))
"""Parameters that leave nothing out."""

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
    search = normalize(search, catalog.snapshot)
    names = [name for name in search.model_fields_set - _IGNORED if not _is_default(search, name)]
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


def _is_default(search: SizeList, name: str) -> bool:
    return bool(getattr(search, name) == SizeList.model_fields[name].default)


def _relaxed(catalog: Catalog, search: SizeList, names: tuple[str, ...]) -> Relaxation:
    instead = {name: _INSTEAD.get(name) for name in names}
    bound = names[0] if len(names) == 1 and FACET_OF_PARAM.get(names[0]) in RANGE_FACETS else ""
    count, reached = _count(catalog, search, instead, bound)
    relaxation = Relaxation(names=names, instead=instead, count=count)
    if not bound or not count or reached is None:
        return relaxation
    # What a figure's bound is compared with may differ from the figure itself, as of a slice of a GPU: it is tried.
    nearest = _as_parameter(bound, reached)
    nearest_count, _ = _count(catalog, search, {bound: nearest}, "")
    if not nearest_count:
        return relaxation
    return Relaxation(names=names, instead={bound: nearest}, count=count, nearest=nearest, nearest_count=nearest_count)


def _count(catalog: Catalog, search: SizeList, instead: Mapping[str, Any], bound: str) -> tuple[int, float | None]:
    given = {name: getattr(search, name) for name in search.model_fields_set if name not in instead}
    changed = {name: str(value) if isinstance(value, Fraction) else value for name, value in instead.items()}
    relaxed = SizeList(**given, **{name: value for name, value in changed.items() if value is not None})
    question = SizeQuestion(catalog, relaxed)
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
