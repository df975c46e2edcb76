"""The order of sizes by columns, of which only as many are sorted as are read."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.column_order import ColumnKey, Positions, distinct, first_in_order
from app.fit.verdict import NEAREST_MISSES

Codes = NDArray[np.int64]


class Order(Sequence[int]):
    """The positions of sizes in the order of some keys, which ascend; only as many are sorted as are read."""

    def __init__(self, at: Positions, keys: Sequence[NDArray[Any]]) -> None:
        self._at = at
        self._keys = [ColumnKey(figures=key.astype(np.float64).take, kind=float) for key in keys]

    def __len__(self) -> int:
        """Return how many sizes there are."""
        return len(self._at)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        """Return the position of one size, or of several that follow each other."""
        if isinstance(index, int):
            return self[index : index + 1][0]
        start, stop, _ = index.indices(len(self))
        if start >= stop:
            return []
        first = first_in_order(self._keys, np.arange(len(self)), stop)
        positions: list[int] = self._at[first[start:]].tolist()
        return positions


class RejectionOrder(Order):
    """The positions of sizes that do not fit, nearest miss first, and a code of the largest shortfall of each."""

    def __init__(self, at: Positions, keys: Sequence[NDArray[Any]], reasons: Codes) -> None:
        super().__init__(at, keys)
        self._reasons = reasons

    def nearest(self, most: int, *, most_of_reason: int | None = None) -> list[int]:
        """Return the nearest misses, in order.

        With `most_of_reason` they are only so many of each reason, and the NEAREST_MISSES of all.
        """
        if most_of_reason is None:
            return self[:most]
        of_each = (np.flatnonzero(self._reasons == reason) for reason in distinct(self._reasons).tolist())
        found = [first_in_order(self._keys, those, most_of_reason) for those in of_each]
        found.append(first_in_order(self._keys, np.arange(len(self)), NEAREST_MISSES))
        positions: list[int] = self._at[first_in_order(self._keys, distinct(np.concatenate(found)), most)].tolist()
        return positions
