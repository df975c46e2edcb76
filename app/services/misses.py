"""What sizes miss, as columns: which fail which constraints, by how much, and which come nearest."""

from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.codes import Mask
from app.catalog.queries.column_order import Positions
from app.catalog.queries.columns import Numbers
from app.catalog.queries.ranking_columns import UNKNOWN_NANO_USD
from app.db.functions import NANO
from app.fit.verdict import Failure
from app.services.orders import Codes, RejectionOrder

_NONE = -1.0
"""The share of a constraint that is met."""
_EXACT, _EXACT_POWER = 2**53, 22
"""Whole numbers up to the first, and ten to the power of up to the second, are exact floats: one of their quotients is
rounded once."""


class Misses:
    """What each of some sizes misses: for each constraint the share that is missing, and a code of the reason."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._columns: dict[tuple[str, int, int], tuple[Numbers, Codes]] = {}
        self._added = 0
        self._reasons: list[str] = []

    def add(self, codes: NDArray[Any], failures: Sequence[Iterable[Failure]]) -> None:
        """Add to each size the failures at its code, which may be a flag."""
        found: dict[tuple[str, int], tuple[list[float], list[int]]] = {}
        for code, several in enumerate(failures):
            before: Counter[str] = Counter()
            for failure in several:
                none = [_NONE] * len(failures), [0] * len(failures)
                shares, reasons = found.setdefault((failure.constraint, before[failure.constraint]), none)
                shares[code], reasons[code] = failure.share_missing, self._reason(failure.code)
                before[failure.constraint] += 1
        index = codes.astype(np.int64)
        for (constraint, number), (shares, reasons) in found.items():
            self._columns[constraint, self._added, number] = np.array(shares)[index], np.array(reasons)[index]
        self._added += 1

    def add_shares(self, constraint: str, code: str, which: Mask, shares: Numbers | float = 1.0) -> None:
        """Add a failure of some sizes: the share that each misses, or that all of them do."""
        if which.any():
            every = np.full(self._count, _NONE)
            every[which] = shares
            reasons = np.full(self._count, self._reason(code), dtype=np.int64)
            self._columns[constraint, self._added, 0] = every, reasons
            self._added += 1

    def rejected(self) -> Mask:
        """Return which sizes miss anything."""
        some = np.zeros(self._count, dtype=bool)
        for shares, _ in self._columns.values():
            some |= shares >= 0
        return some

    def rank(self, at: Positions, name_places: Numbers) -> tuple[RejectionOrder, dict[str, int]]:
        """Return the order of the sizes that do not fit, which are at these positions, and each reason counted.

        A size counts for its largest shortfall. It decides as `app.fit.verdict.miss_distance` does.
        """
        rejected = np.flatnonzero(self.rejected())
        most, reason = np.full(len(rejected), _NONE), np.zeros(len(rejected), dtype=np.int64)
        count = np.zeros(len(rejected), dtype=np.int64)
        known = np.zeros((max(1, len(self._columns)), len(rejected)))
        # In the order of the constraints' names, by which failures with equal shares are sorted.
        for row, key in enumerate(sorted(self._columns)):
            share, reasons = (column[rejected] for column in self._columns[key])
            reason = np.where(share > most, reasons, reason)
            most = np.maximum(most, share)
            count += share >= 0
            known[row] = np.maximum(share, 0)
        total = np.zeros(len(rejected))
        for shares in np.sort(known, axis=0)[::-1]:  # added one by one, the largest first
            total = total + shares
        counted = np.bincount(reason, minlength=len(self._reasons)).tolist()
        summary = {code: number for code, number in zip(self._reasons, counted, strict=False) if number}
        keys: list[NDArray[Any]] = [most, count, total, name_places[rejected]]
        return RejectionOrder(at[rejected], keys, reason), dict(sorted(summary.items()))

    def _reason(self, code: str) -> int:
        if code not in self._reasons:
            self._reasons.append(code)
        return self._reasons.index(code)


def usd_of(nano_usd_per_hour: Codes, hours: Decimal) -> Numbers:
    """Return what so many hours cost at prices in nano-dollars, each the float that is nearest to the exact amount."""
    places = max(0, -int(hours.as_tuple().exponent))
    whole = int(hours.scaleb(places))
    if whole > _EXACT or len(str(NANO)) + places > _EXACT_POWER:
        return np.array([_usd(one, hours) for one in nano_usd_per_hour.tolist()], dtype=np.float64)
    exact = nano_usd_per_hour <= _EXACT // max(1, whole)
    usd: Numbers = np.where(exact, nano_usd_per_hour, 0) * whole / float(NANO * 10**places)
    usd[~exact] = [_usd(one, hours) for one in nano_usd_per_hour[~exact].tolist()]
    return usd


def _usd(nano_usd_per_hour: int, hours: Decimal) -> float:
    return float(Decimal(nano_usd_per_hour).scaleb(-9) * hours)


def most_nano_usd(budget: Decimal, hours: Decimal) -> int:
    """Return the highest price of an hour, in nano-dollars, with which so many hours are within a budget."""
    return min(floor(Fraction(budget) * NANO / Fraction(hours)), UNKNOWN_NANO_USD)


def share_over(usd: Numbers, budget: Decimal) -> Numbers:
    """Return the share by which amounts are over a budget, as `Failure.share_missing` does."""
    available = float(budget)
    share: Numbers = np.abs(usd - available) / np.maximum(usd, available)
    return share
