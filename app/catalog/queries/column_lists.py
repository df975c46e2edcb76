"""Finds lists of sizes on columns: which sizes meet the filters, in which order, and how many they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.projections import UNIT_PRICE_FIELDS
from app.catalog.queries.column_filters import COLUMN_FILTERS, ColumnScope
from app.catalog.queries.column_needs import FILTERED_NUMBERS, ColumnNeeds
from app.catalog.queries.column_order import ColumnKey, Positions, after_position, first_in_order
from app.catalog.queries.columns import Numbers, SizeColumns, SortColumn, load_sizes, load_sort_column
from app.catalog.queries.filters import active_names, sort_names
from app.catalog.queries.offer_columns import OfferColumns, load_offers
from app.catalog.queries.params import PRICE_SORT_KEYS, SIZE_COLUMNS, SizeList
from app.catalog.queries.snapshot import CatalogSnapshot
from app.catalog.queries.unit_prices import unit_prices
from app.db.statements import QueryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumns:
    """The columns that a list needs."""

    sizes: SizeColumns
    offers: OfferColumns
    sorts: Mapping[str, SortColumn]


def load_list_columns(needs: ColumnNeeds, snapshot: CatalogSnapshot) -> QueryPlan[ListColumns]:
    """Load the columns that a list needs, or return those that are kept."""
    sizes = yield from load_sizes(snapshot)
    sorts: dict[str, SortColumn] = {}
    for column in needs.sort_columns:
        sorts[column] = yield from load_sort_column(snapshot, column)
    regions = (*needs.regions, *needs.others)
    offers = yield from load_offers(snapshot, sizes, needs.os, needs.purchase, regions)
    return ListColumns(sizes=sizes, offers=offers, sorts=sorts)


class ColumnList:
    """A list of sizes on columns."""

    def __init__(self, search: SizeList, needs: ColumnNeeds, columns: ListColumns, today: date) -> None:
        sizes, offers = columns.sizes, columns.offers
        ranks = offers.ranks(len(sizes.keys), needs.regions)
        scope = ColumnScope(sizes=sizes, offers=offers, ranks=ranks, statuses=sizes.status(today), today=today)
        active = active_names(search, COLUMN_FILTERS)
        masks = (COLUMN_FILTERS[name](scope, getattr(search, name)) for name in active)
        self._at: Positions = np.flatnonzero(reduce(and_, masks, ~np.isnan(ranks)))
        self._needs, self._columns, self._ranks = needs, columns, ranks
        self.keys = [self._key(name) for name in sort_names(search.sort)]

    @property
    def total(self) -> int:
        """The number of sizes of the list."""
        return len(self._at)

    def first(self, count: int, after: Sequence[Any] | None) -> Positions:
        """Return the first sizes of the list, or those that come after a position: the values of its sort keys."""
        at = self._at if after is None else after_position(self.keys, self._at, after)
        return first_in_order(self.keys, at, count)

    def values_at(self, position: int) -> list[Any]:
        """Return the values of the sort keys of a size."""
        return [key.value_at(position) for key in self.keys]

    def offers_of(self, positions: Positions) -> list[tuple[str, str]]:
        """Return the key of each of some sizes, and the region of its offer: of several the cheapest, or the first."""
        keys = [self._columns.sizes.keys[position] for position in positions.tolist()]
        regions = self._needs.regions
        if len(regions) == 1:
            return [(key, regions[0]) for key in keys]
        return [(key, regions[chosen]) for key, chosen in zip(keys, self._chosen()[positions].tolist(), strict=True)]

    def _key(self, name: str) -> ColumnKey:
        descending, field = name.startswith("-"), name.removeprefix("-")
        sizes = self._columns.sizes
        if field == "name":
            return ColumnKey(values=sizes.order, kind=str, texts=sizes.keys, descending=descending)
        if field in PRICE_SORT_KEYS:
            purchase = PRICE_SORT_KEYS[field] or self._needs.purchase
            if purchase == self._needs.purchase:
                return ColumnKey(values=self._ranks, kind=float, descending=descending, is_price=True)
            others = {code: self._columns.offers.regions[code].usd[purchase] for code in self._needs.regions}
            return ColumnKey(values=self._of_offers(others), kind=float, descending=descending, is_price=True)
        if field in UNIT_PRICE_FIELDS:
            return ColumnKey(values=unit_prices(self._ranks, sizes, field), kind=float, descending=descending)
        column = SIZE_COLUMNS[field]
        kind = table_of(Size).c[column].type.python_type
        if column in FILTERED_NUMBERS:
            return ColumnKey(values=sizes.numbers[column], kind=kind, descending=descending)
        sort = self._columns.sorts[column]
        return ColumnKey(values=sort.values, kind=kind, texts=sort.texts or (), descending=descending)

    def _of_offers(self, columns: Mapping[str, Numbers]) -> Numbers:
        """Return a figure of the offer of each size, from columns of the offers of each region."""
        figures = np.full(len(self._ranks), np.nan)
        chosen = self._chosen() if len(columns) > 1 else None
        for number, (region, column) in enumerate(columns.items()):
            at = self._columns.offers.regions[region].sizes
            if chosen is not None:
                is_chosen = chosen[at] == number
                figures[at[is_chosen]] = column[is_chosen]
            else:
                figures[at] = column
        return figures

    def _chosen(self) -> Positions:
        """Return the number of the region of each size's offer: the first of those where it is cheapest."""
        offers, regions = self._columns.offers, self._needs.regions
        chosen = np.full(len(self._ranks), -1, dtype=np.int64)
        for number, region in reversed(list(enumerate(regions))):
            at = offers.regions[region].sizes
            is_least = offers.usd(region) == self._ranks[at]
            chosen[at[is_least]] = number
        return chosen
