"""The offers of a revision as columns, region by region, for what must look at all of them.

A region is loaded by the first question that needs it, with the prices of all purchase models: 4 bytes an offer, and 8
for each purchase model that any offer of the region has. `app.catalog.queries.column_store` keeps those used last.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, bindparam, literal_column, select, tuple_

from app.catalog.projections import RANK_COLUMNS
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries.column_needs import offers_key
from app.catalog.queries.columns import Numbers, SizeColumns
from app.catalog.queries.price_scope import OFFER
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement

_ROWS = 5_000
"""So many offers are read at once, so that no more of them exist as rows, and other threads come to run."""
_KEY = (OFFER.c.on_demand_rank_usd, OFFER.c.size_key)
"""The rest of the key of an offer, behind region and OS: its order is that in which rows are stored."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RegionOffers:
    """The offers of a region for an OS: positions of sizes, ascending, and their prices by each purchase model.

    Prices are USD an hour; an unknown one is infinity.
    """

    sizes: NDArray[np.int32]
    usd: Mapping[str, Numbers]

    @property
    def nbytes(self) -> int:
        """Return the memory of the columns; one without any price has none."""
        return self.sizes.nbytes + sum(column.nbytes for column in self.usd.values() if column.strides != (0,))

    def usd_of(self, purchase: str, at: NDArray[np.int64]) -> Numbers:
        """Return the prices of some sizes; NaN for one without an offer."""
        places = np.searchsorted(self.sizes, at)
        offered = places < len(self.sizes)
        offered[offered] = self.sizes[places[offered]] == at[offered]
        usd = np.full(len(at), np.nan)
        usd[offered] = self.usd[purchase][places[offered]]
        return usd


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferColumns:
    """The offers of regions for an OS, with their prices by one purchase model.

    `any_region` is the code under which each size has its cheapest offer.
    """

    purchase: str
    regions: Mapping[str, RegionOffers]

    @property
    def any_region(self) -> str:
        """Return the code of the offers in the cheapest region."""
        return ANY_REGION[self.purchase]

    def usd(self, region: str) -> Numbers:
        """Return the prices of a region's offers by the purchase model."""
        return self.regions[region].usd[self.purchase]

    def ranks(self, count: int, regions: Sequence[str]) -> Numbers:
        """Return the price of each of `count` sizes, the least of several regions; NaN for one without an offer."""
        first, *others = regions or (self.any_region,)
        if not others and len(self.regions[first].sizes) == count:
            return self.usd(first)
        ranks = np.full(count, np.nan)
        ranks[self.regions[first].sizes] = self.usd(first)
        for region in others:
            at = self.regions[region].sizes
            ranks[at] = np.fmin(ranks[at], self.usd(region))
        return ranks


def load_offers(
    snapshot: CatalogSnapshot, sizes: SizeColumns, os: str, purchase: str, regions: Iterable[str] | None = None
) -> QueryPlan[OfferColumns]:
    """Load the offers of regions for an OS, or return those that are kept; by default of every region."""
    codes = (*sorted(snapshot.regions), ANY_REGION[purchase]) if regions is None else tuple(regions)
    found: dict[str, RegionOffers] = {}
    for region in codes:
        load = partial(_read_offers, sizes.positions, os, region)
        found[region] = yield from snapshot.columns.keep(offers_key(os, region), load)
    return OfferColumns(purchase=purchase, regions=found)


def _read_offers(positions: Mapping[str, int], os: str, region: str) -> QueryPlan[RegionOffers]:
    places: list[NDArray[np.int32]] = []
    ranks: list[Numbers] = []
    after: tuple[float, str] = (-1.0, "")
    while True:
        values = {"region": region, "os": os, "after_usd": after[0], "after_key": after[1]}
        rows: Sequence[Row] = yield BoundStatement(_offers_statement(), values)
        if rows:
            first, keys, *others = zip(*rows, strict=True)
            at = np.fromiter((positions.get(key, -1) for key in keys), dtype=np.int32, count=len(keys))
            places.append(at[at >= 0])
            ranks.append(np.array([first, *others], dtype=np.float64)[:, at >= 0])
        if len(rows) < _ROWS:
            break
        after = rows[-1][:2]
    at = np.concatenate([np.zeros(0, dtype=np.int32), *places])
    columns = np.concatenate([np.zeros((len(RANK_COLUMNS), 0)), *ranks], axis=1)
    order = np.argsort(at)
    found = map(_without_unknown, columns[:, order])
    return RegionOffers(at[order], dict(zip(PURCHASE_MODELS, found, strict=True)))


def _without_unknown(column: Numbers) -> Numbers:
    """Return a column as it is kept: one number where no offer has a price."""
    if np.isfinite(column).any():
        return np.ascontiguousarray(column)
    return np.broadcast_to(np.float64(np.inf), column.shape)


@lru_cache(maxsize=1)
def _offers_statement() -> Statement:
    offer: Any = OFFER.c
    binds = {name: bindparam(name, type_=offer[name].type) for name in ("region", "os")}
    after = (bindparam("after_usd", type_=_KEY[0].type), bindparam("after_key", type_=_KEY[1].type))
    query = select(*_KEY, *(offer[name] for name in RANK_COLUMNS[1:]))
    of_region = query.where(offer.region == binds["region"], offer.os == binds["os"])
    later = of_region.where(tuple_(*_KEY) > tuple_(*after)).order_by(*_KEY)
    return Statement(later.limit(literal_column(str(_ROWS), Integer)))
