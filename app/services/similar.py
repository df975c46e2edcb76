"""Sizes similar to a given one: candidates near it in memory and price, ranked by distance."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.neighbours import ReferenceSize, find_neighbours, reference_query, shown_query, to_neighbour
from app.catalog.queries.params import SimilarSearch, check_days
from app.catalog.queries.region_places import place_regions
from app.catalog.queries.size_sets import SizeQuestion
from app.catalog.queries.snapshot import Catalog
from app.db.statements import Row
from app.fit.similarity import DISTANCE_DIGITS, Neighbour, SizeTraits, TermDistance, distance_parts, measure_distance
from app.schemas.compare import SimilarOut, SimilarPage, TermOut
from app.services.ranked import paginate, to_adjustment, to_fraction


def find_similar(catalog: Catalog, name: str, search: SimilarSearch) -> SimilarPage:
    """Rank the sizes offered in the regions of `search` by similarity.

    Raises NotFound, or BadQuery for a region or a day to come.
    """
    check_days(search, catalog.today)
    check_regions(catalog.snapshot.regions, "region", search.region)
    search = place_regions(search, catalog.snapshot.regions)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    ((*own,),) = catalog.fetch(reference_query(key, search, catalog.today, catalog.snapshot.rules))
    usd = _reference_price(catalog, key, tuple(own), search)
    size = to_traits(tuple(own))
    figures = {name: getattr(size, name) for name in ("gpu_memory_gib", "vcpus", "memory_gib")}
    reference = ReferenceSize(key=key, usd_per_hour=usd, **figures)
    question = SizeQuestion(catalog, search)
    ranked = _rank_neighbours(size, reference, question, by_provider=bool(search.provider))
    request_key = f"{key} {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    page = paginate(catalog, ranked, search, request_key)
    items: list[SimilarOut] = []
    if page.items:
        rows = catalog.fetch(shown_query(page.items, search, catalog.today, catalog.snapshot.rules))
        found = {to_neighbour(row)["key"]: to_traits(row) for row in rows}
        items = [_to_similar(measure_distance(size, found[key])) for key in page.items]
    return SimilarPage(size=size.name, items=items, next_cursor=page.next_cursor, total=len(ranked))


def _to_similar(neighbour: Neighbour) -> SimilarOut:
    size = neighbour.size
    return SimilarOut(
        size=size.name,
        distance=neighbour.distance,
        cheaper=neighbour.cheaper,
        bigger=neighbour.bigger,
        gpu_count=round(float(size.gpus), DISTANCE_DIGITS) if size.gpus is not None else None,
        gpu_fraction=str(size.gpus) if size.gpus is not None and size.gpus.denominator > 1 else None,
        **{name: getattr(size, name) for name in _SHOWN},
        terms=[_to_term(term) for term in neighbour.terms],
    )


_SHOWN = (
    *("provider", "status", "verified", "series", "gpu_model", "gpu_memory_gib", "vcpus", "memory_gib"),
    *("region", "usd_per_hour", "adjustment"),
)


def _to_term(measured: TermDistance) -> TermOut:
    baseline, value = (None if one is None else float(one) for one in (measured.baseline, measured.value))
    return TermOut(
        term=measured.term.name,
        unit=measured.term.unit,
        wanted=baseline,
        value=value,
        difference=measured.difference,
        difference_percent=measured.difference_percent,
        weight=measured.term.weight,
        distance=measured.distance,
        contribution=measured.contribution,
        detail=measured.detail,
    )


_FIGURES = ("gpu_id", "gpu_family", "gpu_vendor", "gpu_memory_gib", "vcpus", "memory_gib", "name")


def _rank_neighbours(
    size: SizeTraits, reference: ReferenceSize, question: SizeQuestion, *, by_provider: bool
) -> list[str]:
    """Return the keys of the neighbours of a size, nearest first; equally near ones by price, then by name.

    Each part of a distance is computed once for each different figure.
    """
    places = find_neighbours(question, reference, by_provider=by_provider)
    figures: dict[str, Sequence[Any]] = {}
    for name in _FIGURES:
        values = question.values(name)
        figures[name] = [values[place] for place in places]
    usd = question.figures("usd_per_hour")
    figures["usd_per_hour"] = [usd[place] for place in places]
    counts = question.gpu_counts()
    figures["gpu_count"] = [counts[place] for place in places]
    of_class, of_amounts = distance_parts(size)
    parts: list[Sequence[float]] = []
    if of_class is not None:
        gpus = zip(figures["gpu_id"], figures["gpu_family"], figures["gpu_vendor"], strict=True)
        class_distance = cache(of_class)
        parts.append([class_distance(*gpu) for gpu in gpus])
    parts += (list(map(cache(of_amount), figures[term.name])) for term, of_amount in of_amounts)
    distances = map(sum, zip(*parts, strict=True)) if parts else [0] * len(places)
    prices = (float("inf") if usd is None else usd for usd in figures["usd_per_hour"])
    rounded = (round(distance, DISTANCE_DIGITS) for distance in distances)
    keys = [question.sets.keys[place] for place in places]
    return [key for *_, key in sorted(zip(rounded, prices, map(str.lower, figures["name"]), keys, strict=True))]


def to_traits(row: Row) -> SizeTraits:
    """Map a row to the fields that similarity compares, and those that stand beside them."""
    known = to_neighbour(row)
    return SizeTraits(
        name=known["name"],
        provider=known["provider"],
        status=known["status"],
        verified=known["verified"],
        series=known["series_id"],
        **{name: known[name] for name in ("gpu_id", "gpu_model", "gpu_family", "gpu_vendor", "gpu_memory_gib")},
        gpus=to_fraction(known["gpu_count_numerator"], known["gpu_count_denominator"]),
        **{name: known[name] for name in ("vcpus", "memory_gib", "region", "usd_per_hour")},
        adjustment=to_adjustment(known["adjustment"]),
    )


def _reference_price(catalog: Catalog, key: str, own: Row, search: SimilarSearch) -> float:
    """Return the size's price in USD/h in the regions of `search`, else its cheapest anywhere, else 0."""
    usd = to_neighbour(own)["usd_per_hour"]
    if usd is None and search.region:
        everywhere = search.model_copy(update={"region": ()})
        (anywhere,) = catalog.fetch(reference_query(key, everywhere, catalog.today, catalog.snapshot.rules))
        usd = to_neighbour(anywhere)["usd_per_hour"]
    return float(usd) if usd is not None else 0.0
