"""Finds on columns which sizes a list of prices is of, where they are few or chosen by GPU.

Prices are in the order of their sizes, so that a page of a rare region, or of a GPU, would pass nearly all of them.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Date, bindparam, func, select

from app.catalog.in_force import PRICE, is_in_force, known_on
from app.catalog.queries.column_filters import any_gpu
from app.catalog.queries.column_needs import PriceNeeds
from app.catalog.queries.columns import SizeColumns, load_sizes
from app.catalog.queries.price_scope import literal_text, region_binds
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Statement

_SIZES = 20_000
"""The prices of so many sizes are counted at once."""
_FEW = 0.2
"""Among more than this share of sizes a page is found soon by reading prices one after another."""


@dataclass(frozen=True, slots=True)
class PricedSizes:
    """The sizes that have prices of a list: their positions, ascending, and how many prices each has."""

    at: NDArray[np.int32]
    counts: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Return the memory of the columns."""
        return self.at.nbytes + self.counts.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundSizes:
    """The sizes that a list of prices is of, and how many prices it has; None where that is not known."""

    keys: Sequence[str]
    at: NDArray[np.int32]
    total: int | None

    def __len__(self) -> int:
        """Return how many sizes these are."""
        return len(self.at)

    def keys_from(self, start: int, count: int) -> list[str]:
        """Return the keys of some of the sizes, in order."""
        return [self.keys[position] for position in self.at[start : start + count].tolist()]

    def place_of(self, key: str) -> int:
        """Return the place among the sizes of the first one with this key or a later one."""
        return int(np.searchsorted(self.at, bisect_left(self.keys, key)))


def load_price_columns(needs: PriceNeeds, snapshot: CatalogSnapshot) -> QueryPlan[PricedSizes | None]:
    """Load the sizes with any price that is meant, or return those that are kept; None for all."""
    sizes = yield from load_sizes(snapshot)
    if needs.all_prices:
        return None
    return (yield from snapshot.columns.keep(needs, partial(_read_priced_sizes, needs, sizes)))


def find_priced_sizes(
    needs: PriceNeeds, gpus: Sequence[str], snapshot: CatalogSnapshot
) -> QueryPlan[FoundSizes | None]:
    """Find the sizes that may have prices of a list; None where these are many, and may have none.

    If the needs have a day, each of the sizes has prices of the list, which are counted.
    """
    sizes = yield from load_sizes(snapshot)
    priced = yield from load_price_columns(needs, snapshot)
    if priced is None:
        at, total = np.flatnonzero(any_gpu(sizes, gpus)).astype(np.int32), None
    else:
        is_meant = any_gpu(sizes, gpus)[priced.at] if gpus else slice(None)
        at = priced.at[is_meant]
        total = int(priced.counts[is_meant].sum()) if needs.day is not None else None
    if total is None and len(at) > _FEW * len(sizes.keys):
        return None
    return FoundSizes(keys=sizes.keys, at=at, total=total)


def _read_priced_sizes(needs: PriceNeeds, sizes: SizeColumns) -> QueryPlan[PricedSizes]:
    statement = _counts_statement(replace(needs, day=None), has_day=needs.day is not None)
    values = {f"region_{index}": region for index, region in enumerate(needs.regions)}
    if needs.day is not None:
        values["day"] = needs.day.isoformat()
    at: list[int] = []
    counts: list[int] = []
    for first in range(0, len(sizes.keys), _SIZES):
        keys = sizes.keys[first : first + _SIZES]
        rows = yield BoundStatement(statement, {**values, "first": keys[0], "last": keys[-1]})
        known = [(sizes.positions[key], count) for key, count in rows if key in sizes.positions]
        at += [position for position, _ in known]
        counts += [count for _, count in known]
    return PricedSizes(np.array(at, dtype=np.int32), np.array(counts, dtype=np.int32))


@lru_cache(maxsize=32)
def _counts_statement(needs: PriceNeeds, *, has_day: bool) -> Statement:
    price = PRICE.c
    first, last = (bindparam(name, type_=price.size_key.type) for name in ("first", "last"))
    query = select(price.size_key, func.count().label("prices")).where(price.size_key >= first, price.size_key <= last)
    if needs.regions:
        query = query.where(price.region.in_(region_binds(len(needs.regions))))
    if needs.os:
        query = query.where(price.os == literal_text(needs.os))
    if needs.purchase:
        query = query.where(price.purchase == literal_text(needs.purchase))
    if has_day:
        day = bindparam("day", type_=Date)
        query = query.where(known_on(price, day, None) if needs.history else is_in_force(price, day, None))
    return Statement(query.group_by(price.size_key).order_by(price.size_key))
