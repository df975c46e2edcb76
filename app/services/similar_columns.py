"""Ranks the neighbours of a size on columns; each distance is computed once for each different figure."""

from collections.abc import Callable, Sequence
from datetime import date
from functools import cache
from typing import Any

from app.catalog.queries.column_neighbours import NeighbourColumns, find_neighbours
from app.catalog.queries.neighbours import ReferenceSize
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.fit.similarity import DISTANCE_DIGITS, SizeTraits, distance_parts

_AMOUNTS: dict[str, Callable[[NeighbourColumns], Sequence[Any]]] = {
    "gpu_memory_gib": lambda columns: columns.numbers("gpu_memory_gib"),
    "gpu_count": lambda columns: columns.gpu_counts,
    "usd_per_hour": lambda columns: columns.prices,
    "vcpus": lambda columns: columns.numbers("vcpus"),
    "memory_gib": lambda columns: columns.numbers("memory_gib"),
}
"""The figures of sizes by the name of the term of the distance that compares them."""


def rank_neighbours(
    size: SizeTraits, reference: ReferenceSize, search: SimilarSearch, known: CatalogSnapshot, today: date
) -> QueryPlan[list[str]]:
    """Return the keys of the neighbours of a size in the order of `app.fit.similarity.sort_by_distance`."""
    columns = yield from find_neighbours(reference, search, known, today)
    of_class, of_amounts = distance_parts(size)
    parts: list[Sequence[float]] = []
    if of_class is not None:
        gpus = zip(*(columns.texts(name) for name in ("gpu_id", "gpu_family", "gpu_vendor")), strict=True)
        class_distance = cache(of_class)
        parts.append([class_distance(*gpu) for gpu in gpus])
    for term, of_amount in of_amounts:
        parts.append(list(map(cache(of_amount), _AMOUNTS[term.name](columns))))
    distances = map(sum, zip(*parts, strict=True)) if parts else [0] * len(columns.at)
    prices = (float("inf") if usd is None else usd for usd in columns.prices)
    names = map(str.lower, columns.size_names)
    rounded = (round(distance, DISTANCE_DIGITS) for distance in distances)
    return [key for *_, key in sorted(zip(rounded, prices, names, columns.keys, strict=True))]
