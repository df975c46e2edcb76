"""Finds lists of sizes on columns: which sizes meet the filters, in which order, and how many they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial, reduce
from operator import and_
from typing import Any

import numpy as np

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.projections import UNIT_PRICE_FIELDS
from app.catalog.queries.codes import Mask
from app.catalog.queries.column_filters import COLUMN_FILTERS, ColumnScope
from app.catalog.queries.column_needs import BY_PRICE, FILTERED_NUMBERS, SORTED, ColumnNeeds
from app.catalog.queries.column_order import (
    ColumnKey,
    Order,
    Positions,
    after_position,
    first_in_order,
    first_of_order,
    order_all,
    place_after,
)
from app.catalog.queries.column_store import DerivedColumns
from app.catalog.queries.columns import Numbers, SizeColumns, SortColumn, load_sizes, load_sort_column
from app.catalog.queries.filters import active_names, sort_names
from app.catalog.queries.offer_columns import OfferColumns, load_offers
from app.catalog.queries.params import PRICE_SORT_KEYS, SIZE_COLUMNS, SizeList
from app.catalog.queries.snapshot import CatalogSnapshot
from app.catalog.queries.unit_prices import unit_prices
from app.db.statements import QueryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumns:
    """The columns that a list needs, and what was computed from them before."""

    sizes: SizeColumns
    offers: OfferColumns
    sorts: Mapping[str, SortColumn]
    derived: DerivedColumns


def load_list_columns(needs: ColumnNeeds, snapshot: CatalogSnapshot) -> QueryPlan[ListColumns]:
    """Load the columns that a list needs, or return those that are kept."""
    sizes = yield from load_sizes(snapshot)
    sorts: dict[str, SortColumn] = {}
    for column in needs.sort_columns:
        sorts[column] = yield from load_sort_column(snapshot, column)
    regions = (*needs.regions, *needs.others)
    offers = yield from load_offers(snapshot, sizes, needs.os, needs.purchase, regions)
    return ListColumns(sizes=sizes, offers=offers, sorts=sorts, derived=snapshot.columns.derived)


class ColumnList:
    """A list of sizes on columns."""

    def __init__(self, search: SizeList, needs: ColumnNeeds, columns: ListColumns, today: date) -> None:
        self._needs, self._columns, self._names = needs, columns, sort_names(search.sort)
        self._regions = [columns.offers.regions[code] for code in needs.regions]
        sizes, self._ranks, offered = columns.sizes, *self._prices()
        scope = ColumnScope(
            sizes=sizes, offers=columns.offers, ranks=self._ranks, statuses=sizes.status(today), today=today
        )
        active = active_names(search, COLUMN_FILTERS)
        masks = (COLUMN_FILTERS[name](scope, getattr(search, name)) for name in active)
        self._found: Mask = reduce(and_, masks, offered)
        self.keys = [self._key(name) for name in self._names]
        self.total = int(np.count_nonzero(self._found))

    def first(self, count: int, after: Sequence[Any] | None) -> Positions:
        """Return the first sizes of the list, or those that come after a position: the values of its sort keys."""
        if self.total > SORTED:
            order = self._order()
            start = place_after(self.keys, order, after) if after is not None else 0
            return first_of_order(order, self._found, start, count)
        at: Positions = np.flatnonzero(self._found)
        return first_in_order(self.keys, at if after is None else after_position(self.keys, at, after), count)

    def values_at(self, position: int) -> list[Any]:
        """Return the values of the sort keys of a size."""
        return [key.value_at(position) for key in self.keys]

    def offers_of(self, positions: Positions) -> list[tuple[str, str]]:
        """Return the key of each of some sizes, and the region of its offer: of several the cheapest, or the first."""
        keys = [self._columns.sizes.keys[position] for position in positions.tolist()]
        regions = self._needs.regions
        if len(regions) == 1:
            return [(key, regions[0]) for key in keys]
        return [(key, regions[chosen]) for key, chosen in zip(keys, self._chosen(positions).tolist(), strict=True)]

    def _prices(self) -> tuple[Numbers, Mask]:
        """Return the price of each size, as `OfferColumns.ranks` does, and which have an offer."""

        def compute() -> tuple[Numbers, Mask]:
            ranks = self._columns.offers.ranks(count, self._needs.regions)
            return ranks, ~np.isnan(ranks)

        count = len(self._columns.sizes.keys)
        if count <= SORTED:
            return compute()
        return self._columns.derived.of(self._needs.prices_key, (self._columns.sizes, *self._regions), compute)

    def _order(self) -> Order:
        """Return the order of all sizes by the keys of the list."""
        sizes, sorts = self._columns.sizes, self._columns.sorts
        by_price = any(name.removeprefix("-") in BY_PRICE for name in self._names)
        columns = (sizes, *sorts.values(), *(self._regions if by_price else ()))
        compute = partial(order_all, self.keys, len(sizes.keys))
        return self._columns.derived.of(self._needs.order_key(self._names), columns, compute)

    def _key(self, name: str) -> ColumnKey:
        descending, field = name.startswith("-"), name.removeprefix("-")
        sizes = self._columns.sizes
        if field == "name":
            return ColumnKey(figures=sizes.order.take, kind=str, texts=sizes.keys, descending=descending)
        if field in PRICE_SORT_KEYS:
            purchase = PRICE_SORT_KEYS[field] or self._needs.purchase
            figures = self._ranks.take if purchase == self._needs.purchase else partial(self._usd_by, purchase)
            return ColumnKey(figures=figures, kind=float, descending=descending, is_price=True)
        if field in UNIT_PRICE_FIELDS:
            return ColumnKey(figures=partial(self._unit_price, field), kind=float, descending=descending)
        column = SIZE_COLUMNS[field]
        kind = table_of(Size).c[column].type.python_type
        if column in FILTERED_NUMBERS:
            return ColumnKey(figures=sizes.numbers[column].take, kind=kind, descending=descending)
        sort = self._columns.sorts[column]
        return ColumnKey(figures=sort.values.take, kind=kind, texts=sort.texts or (), descending=descending)

    def _unit_price(self, field: str, at: Positions) -> Numbers:
        return unit_prices(self._ranks.take(at), self._columns.sizes, field, at)

    def _usd_by(self, purchase: str, at: Positions) -> Numbers:
        """Return the price of the offer of some sizes by another purchase model."""
        if len(self._regions) == 1:
            return self._regions[0].usd_of(purchase, at)
        each = np.array([region.usd_of(purchase, at) for region in self._regions])
        usd: Numbers = each[self._chosen(at), np.arange(len(at))]
        return usd

    def _chosen(self, at: Positions) -> Positions:
        """Return the number of the region of some sizes' offers: the first of those where each is cheapest."""
        least = self._ranks.take(at)
        is_least = [region.usd_of(self._needs.purchase, at) == least for region in self._regions]
        chosen: Positions = np.array(is_least).argmax(axis=0)
        return chosen
