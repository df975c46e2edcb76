"""Orders of lists on columns: the same total order that `app.catalog.queries.filters.to_sort_keys` has in SQL."""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.codes import Mask
from app.catalog.queries.columns import Numbers

Positions = NDArray[np.int64]
Order = NDArray[np.int32]
"""The positions of all sizes in an order."""

_PROBES = 256
"""A place in an order is looked for among so many sizes at once: among 100,000 in three steps."""
_BLOCK = 1_024
"""So many sizes of an order are looked at first; then four times as many as before, each time."""


def distinct(values: Positions) -> Positions:
    """Return the different values, ascending: np.unique takes up to eight times as long, and imports numpy.ma, 1 MB."""
    ordered = np.sort(values)
    is_new = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return ordered[is_new]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnKey:
    """One key of an order: a figure of each size, by its position.

    `figures` tells those of some sizes, in an array of their own. `kind` is the type of a value in a cursor; for texts
    figures are their places among `texts`, for days ordinals. An unknown figure is NaN, or infinity if it `is_price`,
    and comes last either way.
    """

    figures: Callable[[Positions], Numbers]
    kind: type
    descending: bool = False
    texts: Sequence[str] = ()
    is_price: bool = False

    def ranks(self, at: Positions) -> Numbers:
        """Return numbers of some sizes that ascend in the order; infinity for an unknown figure."""
        ranks = self.figures(at)
        if self.descending:
            np.negative(ranks, out=ranks)
            if self.is_price:
                ranks[np.isneginf(ranks)] = np.inf
        return np.fmin(ranks, np.inf, out=ranks)  # of NaN and infinity the latter: NumPy takes long to partition NaN

    def rank_of(self, value: Any) -> float:
        """Return the rank of a value in a cursor; a text that no size has comes between two that sizes have."""
        if value is None:
            return np.inf
        if isinstance(value, date):
            rank: float = value.toordinal()
        elif isinstance(value, str):
            place = bisect_left(self.texts, value)
            rank = place if place < len(self.texts) and self.texts[place] == value else place - 0.5
        else:
            rank = float(value)
        return -rank if self.descending else rank

    def value_at(self, position: int) -> Any:
        """Return the value of a size for a cursor: of the type that the database returns."""
        value = float(self.figures(np.array([position]))[0])
        if np.isnan(value) or (self.descending and np.isinf(value)):
            return None
        if self.kind is str:
            return self.texts[int(value)]
        if self.kind is date:
            return date.fromordinal(int(value))
        return int(value) if self.kind is int else value


def after_position(keys: Sequence[ColumnKey], at: Positions, values: Sequence[Any]) -> Positions:
    """Return those of some sizes that come after the position with these values of the keys."""
    return at[_are_after(keys, at, values)]


def _are_after(keys: Sequence[ColumnKey], at: Positions, values: Sequence[Any]) -> Mask:
    later: Mask = np.zeros(len(at), dtype=bool)
    equal: Mask = np.ones(len(at), dtype=bool)
    for key, value in zip(keys, values, strict=True):
        ranks, rank = key.ranks(at), key.rank_of(value)
        later |= equal & (ranks > rank)
        equal &= ranks == rank
    return later


def first_in_order(keys: Sequence[ColumnKey], at: Positions, count: int) -> Positions:
    """Return the first `count` of some sizes in the order of the keys, the last of which no two sizes share.

    Only the sizes that are returned are sorted: one key after another tells which sizes are before all others, and
    which are equal to the last one that may be returned, so that the next key decides.
    """
    found: list[Positions] = []
    left, missing = at, count
    for key in keys:
        if len(left) <= missing:
            break
        ranks = key.ranks(left)
        bound = np.partition(ranks, missing - 1)[missing - 1]
        found.append(left[ranks < bound])
        missing -= len(found[-1])
        left = left[ranks == bound]
    chosen = np.concatenate([*found, left])
    order = np.lexsort([key.ranks(chosen) for key in reversed(keys)])
    return chosen[order][:count]


def order_all(keys: Sequence[ColumnKey], count: int) -> Order:
    """Return the positions of `count` sizes, which are all, in the order of the keys."""
    at = np.arange(count)
    return np.lexsort([key.ranks(at) for key in reversed(keys)]).astype(np.int32)


def place_after(keys: Sequence[ColumnKey], order: Order, values: Sequence[Any]) -> int:
    """Return the place in an order of the first size that comes after the position with these values of the keys."""
    low, high = 0, len(order)
    while low < high:
        probes = range(low, high, 1 + (high - low) // _PROBES)
        after = _are_after(keys, order[low : high : probes.step].astype(np.int64), values)
        before = len(probes) - int(np.count_nonzero(after))
        if before < len(probes):
            high = probes[before]
        if before:
            low = probes[before - 1] + 1
    return low


def first_of_order(order: Order, mask: Mask, start: int, count: int) -> Positions:
    """Return the first `count` sizes of a mask in an order, from a place of it on."""
    found: list[Order] = []
    missing, block = count, _BLOCK
    while start < len(order) and missing > 0:
        part = order[start : start + block]
        found.append(part[mask.take(part)][:missing])
        missing -= len(found[-1])
        start, block = start + block, 4 * block
    return np.concatenate(found, dtype=np.int64) if found else np.zeros(0, dtype=np.int64)
