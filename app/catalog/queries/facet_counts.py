"""Counts the facets of a search, on the columns of all sizes."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from functools import reduce
from operator import and_, or_
from typing import Any

import numpy as np

from app.catalog.queries.codes import Codes, Mask
from app.catalog.queries.column_filters import COLUMN_FILTERS, PRICE_FILTERS, ColumnScope
from app.catalog.queries.columns import Numbers, load_sizes
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
from app.catalog.queries.filters import active_names
from app.catalog.queries.offer_columns import load_offers
from app.catalog.queries.params import SizeFilter, check_days
from app.catalog.queries.past_offers import load_past_offers
from app.catalog.queries.price_scope import named_days
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan

_COLUMNS = {"series": "series_id"}
"""The column of a counted facet that has another name."""
_OF_GPUS = {"gpu_memory_gib", "gpu_memory_gib_per_gpu", "nvlink", "gpudirect_rdma"}
"""Fields that do not apply to sizes without a GPU, so null does not mean unknown."""


def find_facets(search: SizeFilter, snapshot: CatalogSnapshot, today: date) -> QueryPlan[Facets]:
    """Find the facets of a search, in a thread; raises BadQuery for a name that the catalog does not have, or a day.

    The prices of a past day are computed from the price history.
    """
    check_days(search, today)
    search = normalize(search, snapshot)
    sizes = yield from load_sizes(snapshot)
    if named_days(search) is None:
        offers = yield from load_offers(snapshot, sizes, search.os, search.purchase)
    else:
        offers = yield from load_past_offers(search, sizes, snapshot, today)
    ranks = offers.ranks(len(sizes.positions), search.region)
    scope = ColumnScope(sizes=sizes, offers=offers, ranks=ranks, statuses=sizes.status(today), today=today)
    given = {name: getattr(search, name) for name in active_names(search, COLUMN_FILTERS)}
    masks = {name: COLUMN_FILTERS[name](scope, value) for name, value in given.items()}
    found = _Found(scope, masks)
    counts = {name: found.count(name, _column(scope, name)) for name in COUNTED_FACETS}
    counts["region"] = _count_regions(scope, masks, {name: given[name] for name in PRICE_FILTERS if name in given})
    counts["flags"] = [FacetCount(value=name, count=found.count_flag(name)) for name in FLAG_FACETS]
    ranges = {name: found.range_of(name, _numbers(scope, name)) for name in RANGE_FACETS}
    return Facets(total=found.total, undecided=_undecided(scope, masks), counts=counts, ranges=ranges)


def _undecided(scope: ColumnScope, masks: Mapping[str, Mask]) -> Undecided:
    """Count the sizes that might match if their unknown figures were known."""
    unknown = {name: _unknown(scope, FACET_OF_PARAM[name]) for name in masks if FACET_OF_PARAM.get(name) in FIGURES}
    offered = ~np.isnan(scope.ranks)
    possible = reduce(
        and_, (mask | unknown[name] if name in unknown else mask for name, mask in masks.items()), offered
    )
    by_field = {FACET_OF_PARAM[name]: mask & possible for name, mask in unknown.items()}
    counts = {name: int(np.count_nonzero(mask)) for name, mask in by_field.items()}
    fields = [FacetCount(value=name, count=count) for name, count in counts.items() if count]
    total = int(np.count_nonzero(reduce(or_, by_field.values(), np.zeros(len(offered), dtype=bool))))
    return Undecided(total=total, fields=fields, detail=_in_words(total, fields))


def _in_words(total: int, fields: Sequence[FacetCount]) -> str | None:
    if not total:
        return None
    unknown = ", ".join(f"{one.value} for {one.count:,}" for one in fields)
    unknown = unknown.replace(" for ", " is unknown for ", 1)
    return f"{total:,} more {'size' if total == 1 else 'sizes'} may match: {unknown}"


def _unknown(scope: ColumnScope, facet: str) -> Mask:
    """Return which sizes have an unknown value for a facet; a value that does not apply to a size is not unknown."""
    sizes = scope.sizes
    if facet == "usd_per_hour":
        unknown: Mask = np.isinf(scope.ranks)
    elif facet in FLAG_FACETS:
        unknown = sizes.flags[facet] == -1
    else:
        unknown = np.isnan(sizes.numbers[facet])
    lacking: Mask = np.zeros(len(unknown), dtype=bool)
    if facet in _OF_GPUS:
        lacking = sizes.numbers["gpu_count"] == 0
    elif facet == "infiniband_gbps":
        lacking = sizes.is_flag("infiniband", value=False)
    return np.logical_and(unknown, ~lacking)


class _Found:
    """The sizes that a search finds, and for each facet those that it would find without the facet's own filters."""

    def __init__(self, scope: ColumnScope, masks: Mapping[str, Mask]) -> None:
        self._scope = scope
        narrowing = [mask for name, mask in masks.items() if name not in FACET_OF_PARAM]
        # Only these sizes are looked at further.
        at = np.flatnonzero(reduce(and_, narrowing, ~np.isnan(scope.ranks)))
        own: dict[str, list[Mask]] = {}
        for name, mask in masks.items():
            if name in FACET_OF_PARAM:
                own.setdefault(FACET_OF_PARAM[name], []).append(mask[at])
        meets = {facet: reduce(and_, each) for facet, each in own.items()}
        self._all = at[_every(meets.values(), len(at))]
        self._without = {
            facet: at[_every((each for other, each in meets.items() if other != facet), len(at))] for facet in meets
        }

    @property
    def total(self) -> int:
        """The number of sizes that meet all filters."""
        return len(self._all)

    def count(self, facet: str, column: Codes) -> list[FacetCount]:
        """Count the values of a facet, the greatest count first, unknown behind others of its count."""
        return [
            FacetCount(value=value, count=count) for value, count in column.count(self._without.get(facet, self._all))
        ]

    def count_flag(self, flag: str) -> int:
        """Return how many sizes have a flag."""
        return int(np.count_nonzero(self._scope.sizes.flags[flag][self._without.get(flag, self._all)] == 1))

    def range_of(self, facet: str, numbers: Numbers) -> FacetRange:
        """Return the ends of a facet's known figures."""
        figures = numbers[self._without.get(facet, self._all)]
        known = figures[np.isfinite(figures)]
        ends = (float(known.min()), float(known.max())) if len(known) else (None, None)
        least, most = (_shown(facet, end) for end in ends)
        return FacetRange(min=least, max=most, unknown=len(figures) - len(known))


def _every(masks: Iterable[Mask], count: int) -> Mask:
    return reduce(and_, masks, np.ones(count, dtype=bool))


def _column(scope: ColumnScope, facet: str) -> Codes:
    return scope.statuses if facet == "status" else scope.sizes.texts[_COLUMNS.get(facet, facet)]


def _numbers(scope: ColumnScope, facet: str) -> Numbers:
    return scope.ranks if facet == "usd_per_hour" else scope.sizes.numbers[facet]


def _count_regions(scope: ColumnScope, masks: Mapping[str, Mask], prices: Mapping[str, Any]) -> list[FacetCount]:
    """Count how many sizes a search in each region alone would find, the greatest count first."""
    found = _every((mask for name, mask in masks.items() if name not in prices), len(scope.ranks))
    counts: dict[str, int] = {}
    for region, offers in scope.offers.regions.items():
        if region != scope.offers.any_region:
            usd = scope.offers.usd(region)
            met = [PRICE_FILTERS[name](usd, value) for name, value in prices.items()]
            counts[region] = int(np.count_nonzero(reduce(and_, met, found[offers.sizes])))
    ordered = sorted((-count, code) for code, count in counts.items() if count)
    return [FacetCount(value=code, count=-count) for count, code in ordered]


def _shown(name: str, value: float | None) -> float | None:
    """Round a number of GPUs to four digits, as in a list: a sixth is 0.1667."""
    return round(value, 4) if name == "gpu_count" and value is not None else value
