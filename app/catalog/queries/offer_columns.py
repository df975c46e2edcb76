"""The offers of a revision as columns, region by region, for what must look at all of them.

The first question that needs a region loads it, in a small catalog all regions at once, with the prices of all purchase
models: 4 bytes an offer, and 8 for each purchase model that any offer of the region has.
`app.catalog.queries.column_store` keeps those used last.

Offers come packed (`app.db.packed`): a driver takes the GIL for each row that it fetches, so that a thread which loads
rows while others compute waits for it again and again.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
)

from app.catalog.column_types import NANO_USD
from app.catalog.projections import RANK_COLUMNS, UNKNOWN_PRICE_RANK
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries.column_needs import offers_key
from app.catalog.queries.columns import Numbers, SizeColumns
from app.catalog.queries.price_scope import OFFER
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.packed import COMMA, SEPARATOR, joined_by_comma, joined_texts
from app.db.statements import BoundStatement, QueryPlan, Row, Statement

_ROWS = 5_000
"""So many offers of a large catalog are read at once, so that other threads come to run."""
_UNKNOWN = -1
"""Stands for an unknown price among nano-dollars."""
_LARGE, _LARGE_UNIT = 2.0**23, 2.0**29
"""Of prices from _LARGE dollars on not every double is the quotient of nano-dollars that a double holds. They are whole
multiples of 1 / _LARGE_UNIT, and stand as such below zero."""


Packed = Sequence[str]
"""The joined texts of offers: the keys of their sizes, and their prices by each purchase model."""


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
    if snapshot.small:
        keys = {region: offers_key(os, region) for region in codes}
        load = partial(_read_all, sizes.positions, os, {*snapshot.regions, *ANY_REGION.values(), *codes})
        kept = yield from snapshot.columns.keep_all(list(keys.values()), load)
        return OfferColumns(purchase=purchase, regions={region: kept[key] for region, key in keys.items()})
    found: dict[str, RegionOffers] = {}
    for region in codes:
        read = partial(_read_region, sizes.positions, os, region)
        found[region] = yield from snapshot.columns.keep(offers_key(os, region), read)
    return OfferColumns(purchase=purchase, regions=found)


def _read_all(
    positions: Mapping[str, int], os: str, regions: Iterable[str]
) -> QueryPlan[Mapping[Hashable, RegionOffers]]:
    """Read the offers of every OS, this one among them, in regions, also in those that have none."""
    rows: Sequence[Row] = yield BoundStatement(_all_offers_statement(), {})
    found = {(of, region): [packed] for of, region, *packed in rows}
    scopes = product({os, *(of for of, _ in found)}, regions)
    return {offers_key(*scope): _to_offers(positions, found.get(scope, [])) for scope in scopes}


def _read_region(positions: Mapping[str, int], os: str, region: str) -> QueryPlan[RegionOffers]:
    """Read the offers of a region, in steps."""
    parts: list[Packed] = []
    after: str | None = ""
    while after is not None:
        values = {"region": region, "os": os, "after": after}
        ((after, *packed),) = yield BoundStatement(_region_statement(), values)
        if after is not None:
            parts.append(packed)
    return _to_offers(positions, parts)


def _to_offers(positions: Mapping[str, int], parts: Iterable[Packed]) -> RegionOffers:
    """Return the offers of packed rows of a region; those of sizes without a position are of a later revision."""
    places: list[NDArray[np.int32]] = []
    prices: list[NDArray[np.int64]] = []
    for keys, *texts in parts:
        at = np.array([positions.get(key, -1) for key in keys.split(SEPARATOR)], dtype=np.int32)
        packed = np.array([np.fromstring(text, dtype=np.int64, sep=COMMA) for text in texts])
        places.append(at[at >= 0])
        prices.append(packed[:, at >= 0])
    at = np.concatenate([np.zeros(0, dtype=np.int32), *places])
    numbers = np.concatenate([np.zeros((len(RANK_COLUMNS), 0), dtype=np.int64), *prices], axis=1)
    order = np.argsort(at)
    found = map(_to_usd, numbers[:, order])
    return RegionOffers(at[order], dict(zip(PURCHASE_MODELS, found, strict=True)))


def _to_usd(packed: NDArray[np.int64]) -> Numbers:
    """Return prices as they are kept: one number where no offer has any."""
    unknown = packed == _UNKNOWN
    if unknown.all():
        return np.broadcast_to(np.float64(np.inf), packed.shape)
    usd = np.where(unknown, np.inf, packed / NANO_USD)
    is_large = packed < _UNKNOWN
    usd[is_large] = packed[is_large] / -_LARGE_UNIT
    return usd


@cache
def _all_offers_statement() -> Statement:
    """Build the statement of all offers: a packed row of each OS and region."""
    offer = OFFER.c
    columns: Sequence[ColumnElement[Any]] = (offer.os, offer.region, *_packed(offer))
    return Statement(select(*columns).group_by(offer.region, offer.os))


@cache
def _region_statement() -> Statement:
    """Build the statement of the next _ROWS offers of a region for an OS: the last key among them, and a packed row.

    Where there are no more, all columns are null.
    """
    offer = OFFER.c
    binds = {name: bindparam(name, type_=offer[name].type) for name in ("region", "os")}
    after = bindparam("after", type_=offer.size_key.type)
    query = select(offer.size_key, *(offer[name] for name in RANK_COLUMNS))
    query = query.where(offer.region == binds["region"], offer.os == binds["os"], offer.size_key > after)
    part = query.order_by(offer.size_key).limit(literal_column(str(_ROWS), Integer)).subquery().c
    columns: Sequence[ColumnElement[Any]] = (func.max(part.size_key), *_packed(part))
    return Statement(select(*columns))


def _packed(offer: Any) -> Sequence[ColumnElement[str]]:
    """Return the keys of offers, and their prices by each purchase model, as joined texts.

    Prices are whole numbers, from which the very doubles that are stored are computed, as a text of these may not be.
    """
    return [joined_texts(offer.size_key), *(joined_by_comma(_packed_price(offer[name])) for name in RANK_COLUMNS)]


def _packed_price(rank: ColumnElement[float]) -> ColumnElement[int]:
    def number(value: float) -> ColumnElement[float]:
        return literal_column(repr(float(value)), Double)

    return case(
        (rank < number(_LARGE), cast(func.round(rank * number(NANO_USD)), BigInteger)),
        (rank < literal(UNKNOWN_PRICE_RANK, Double), cast(rank * number(-_LARGE_UNIT), BigInteger)),
        else_=literal_column(str(_UNKNOWN), BigInteger),
    )
