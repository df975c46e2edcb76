"""Sizes similar to a given one: candidates near it in memory and price, ranked by distance."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from app.catalog.adjustments import Rules
from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.neighbours import ReferenceSize, neighbours_query, reference_query, shown_query, to_neighbour
from app.catalog.queries.pagination import current_revision
from app.catalog.queries.params import SimilarSearch, check_days
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan, Row
from app.fit.similarity import Neighbour, SizeTraits, measure_distance, sort_by_distance
from app.services.ranked import paginate, to_adjustment, to_fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarSizes:
    """The reference size, one page of the sizes like it, the nearest first, and how many were compared."""

    size: SizeTraits
    page: Sequence[Neighbour]
    next_cursor: str | None
    total: int


def find_similar(
    name: str, search: SimilarSearch, known: CatalogSnapshot, today: date, *, on_columns: bool = False
) -> QueryPlan[SimilarSizes]:
    """Rank the sizes offered in the regions of `search` by similarity.

    `on_columns` is for a process that answers many searches of one revision, in a thread: the neighbours are found on
    columns that are kept. Raises NotFound, or BadQuery for a region or a day to come.
    """
    check_days(search, today)
    check_regions(known.regions, "region", search.region)
    (key,) = yield from get_size_keys((name,), known.series)
    ((*own,),) = yield reference_query(key, search, today, known.rules)
    usd = yield from _reference_price(key, tuple(own), search, today, known.rules)
    size = to_traits(tuple(own))
    reference = ReferenceSize(key=key, gpu_memory_gib=size.gpu_memory_gib, usd_per_hour=usd)
    request_key = f"{key} {search.model_dump_json(exclude=search.page_param_names())} {today}"
    if on_columns and not search.names_a_day:
        found = yield from _on_columns(_Question(size, reference, search, request_key), known, today)
        if found is not None:
            return found
    rows = yield neighbours_query(reference, search, today, known.rules)
    nearest = sort_by_distance(size, map(to_traits, rows))
    page = yield from paginate(nearest, search, request_key, known)
    neighbours = [measure_distance(size, other) for other in page.items]
    return SimilarSizes(size=size, page=neighbours, next_cursor=page.next_cursor, total=len(nearest))


@dataclass(frozen=True, slots=True)
class _Question:
    """The size whose neighbours are searched, and the search."""

    size: SizeTraits
    reference: ReferenceSize
    search: SimilarSearch
    request_key: str


def _on_columns(question: _Question, known: CatalogSnapshot, today: date) -> QueryPlan[SimilarSizes | None]:
    """Find and rank neighbours on columns, and read those that are shown; None where the catalog has changed since."""
    from app.services.similar_columns import rank_neighbours

    size, search = question.size, question.search
    ranked = yield from rank_neighbours(size, question.reference, search, known, today)
    page = yield from paginate(ranked, search, question.request_key, known)
    neighbours: list[Neighbour] = []
    if page.items:
        rows = yield shown_query(page.items, search, today, known.rules)
        if (yield from current_revision()) != known.revision:
            return None
        found = {to_neighbour(row)["key"]: to_traits(row) for row in rows}
        neighbours = [measure_distance(size, found[key]) for key in page.items]
    return SimilarSizes(size=size, page=neighbours, next_cursor=page.next_cursor, total=len(ranked))


def to_traits(row: Row) -> SizeTraits:
    """Map a row to the fields that similarity compares, and those that stand beside them."""
    known = to_neighbour(row)
    return SizeTraits(
        name=known["name"],
        status=known["status"],
        verified=known["verified"],
        series=known["series_id"],
        **{name: known[name] for name in ("gpu_id", "gpu_model", "gpu_family", "gpu_vendor", "gpu_memory_gib")},
        gpus=to_fraction(known["gpu_count_numerator"], known["gpu_count_denominator"]),
        **{name: known[name] for name in ("vcpus", "memory_gib", "region", "usd_per_hour")},
        adjustment=to_adjustment(known["adjustment"]),
    )


def _reference_price(key: str, own: Row, search: SimilarSearch, today: date, rules: Rules) -> QueryPlan[float]:
    """Return the size's price in USD/h in the regions of `search`, else its cheapest anywhere, else 0."""
    usd = to_neighbour(own)["usd_per_hour"]
    if usd is None and search.region:
        (anywhere,) = yield reference_query(key, search.model_copy(update={"region": ()}), today, rules)
        usd = to_neighbour(anywhere)["usd_per_hour"]
    return float(usd) if usd is not None else 0.0
