"""Which sizes are like one: its neighbours in the catalog, measured, the nearest first."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from app.catalog.queries.fit_params import SimilarSearch
from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.neighbours import ReferenceSize, neighbours_query, reference_query, to_neighbour
from app.catalog.queries.pagination import ensure_same_revision, offset_of, read_cursor, write_cursor
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan, Row
from app.fit.similarity import Neighbour, SizeTraits, sort_by_distance


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarSizes:
    """An answer: the size that was asked about, the page of those like it, and how many were measured."""

    size: SizeTraits
    page: list[Neighbour]
    next_cursor: str | None
    total: int


def find_similar(name: str, search: SimilarSearch, known: CatalogSnapshot, today: date) -> QueryPlan[SimilarSizes]:
    """Find the sizes of the asked place that are most like one; raises NotFound, or BadQuestion for a region."""
    check_regions(known.regions, "region", search.region)
    (key,) = yield from get_size_keys([name])
    ((*own,),) = yield reference_query(key, search, today)
    usd = yield from _reference_price(key, tuple(own), search, today)
    size = to_traits(tuple(own))
    centre = ReferenceSize(key=key, gpu_memory_gib=size.gpu_memory_gib, usd_per_hour=usd)
    rows = yield neighbours_query(centre, search, today)
    found = sort_by_distance(size, map(to_traits, rows))
    question = f"{key} {search.model_dump_json(exclude=search.page_param_names())} {today}"
    place = read_cursor(search.cursor, question, 1) if search.cursor else None
    start = offset_of(place, search.cursor)
    revision = known.revision if place is None else (yield from ensure_same_revision(place))
    end = start + search.limit
    following = write_cursor(question, revision, [end]) if end < len(found) else None
    return SimilarSizes(size=size, page=found[start:end], next_cursor=following, total=len(found))


def to_traits(row: Row) -> SizeTraits:
    """Take from a row what is compared."""
    known = to_neighbour(row)
    return SizeTraits(
        name=known["name"],
        status=known["status"],
        verified=known["verified"],
        series=known["series_id"],
        **{name: known[name] for name in ("gpu_id", "gpu_model", "gpu_family", "gpu_vendor", "gpu_memory_gib")},
        gpus=_gpus(known),
        **{name: known[name] for name in ("vcpus", "memory_gib", "region", "usd_per_hour")},
    )


def _gpus(known: Mapping[str, Any]) -> Fraction | None:
    parts = (known["gpu_count_numerator"], known["gpu_count_denominator"])
    return Fraction(*parts) if None not in parts else None


def _reference_price(key: str, own: Row, search: SimilarSearch, today: date) -> QueryPlan[float]:
    """The size's price in the asked place, else where it is cheapest; zero where nobody knows any."""
    usd = to_neighbour(own)["usd_per_hour"]
    if usd is None and search.region:
        (anywhere,) = yield reference_query(key, search.model_copy(update={"region": ()}), today)
        usd = to_neighbour(anywhere)["usd_per_hour"]
    return float(usd) if usd is not None else 0.0
