"""Columns for what ranks all sizes: the order of names, numbers of GPUs, and exact prices in regions.

They come from those of `app.catalog.queries.columns` and `offer_columns`, and are kept as these are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.purchases import ANY_REGION
from app.catalog.queries.codes import Mask
from app.catalog.queries.columns import Numbers, SizeColumns, load_sort_column
from app.catalog.queries.offer_columns import load_offers
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.functions import NANO
from app.db.statements import QueryPlan

UNKNOWN_NANO_USD = 2**62
"""The price of a size without a known one, which is more than any; never multiply it by a number of VMs."""


@dataclass(frozen=True, slots=True)
class Distinct:
    """A column of few different values: these, and for each size the index of its own."""

    values: Sequence[Any]
    codes: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopePrices:
    """Of each size whether it has an offer in the regions that are meant, and its least price there.

    Prices are nano-dollars an hour, UNKNOWN_NANO_USD where there is none. Sizes `everywhere` have one in each region
    that they must have one in.
    """

    offered: Mask
    nano_usd: NDArray[np.int64]
    everywhere: Mask


def load_name_places(snapshot: CatalogSnapshot) -> QueryPlan[Numbers]:
    """Load the place of each size's name among all names, or return those that are kept."""
    return (yield from load_sort_column(snapshot, "name")).values


def load_gpus(snapshot: CatalogSnapshot, sizes: SizeColumns) -> QueryPlan[Distinct]:
    """Return the number of GPUs of each size, exactly: None where unknown; found once for each revision."""

    def find() -> QueryPlan[Distinct]:
        yield from ()  # a plan that reads nothing
        parts = (sizes.numbers["gpu_count_numerator"], sizes.numbers["gpu_count_denominator"])
        above, below = (np.nan_to_num(part, nan=-1).astype(np.int64) for part in parts)
        _, first, codes = np.unique(above * (below.max(initial=0) + 2) + below, return_index=True, return_inverse=True)
        pairs = zip(above[first].tolist(), below[first].tolist(), strict=True)
        return Distinct([None if -1 in pair else Fraction(*pair) for pair in pairs], codes)

    return (yield from snapshot.keep("gpus", find))


def load_numbers(snapshot: CatalogSnapshot, sizes: SizeColumns, name: str) -> QueryPlan[Distinct]:
    """Return the different values of a column of numbers, unknown as None; found once for each revision."""

    def find() -> QueryPlan[Distinct]:
        yield from ()  # a plan that reads nothing
        return distinct(sizes.numbers[name])

    return snapshot.keep(("distinct", name), find)


def distinct(column: Numbers) -> Distinct:
    """Return the different values of a column, ascending, and the unknown one last, as None."""
    values, codes = np.unique(column, return_inverse=True)
    return Distinct([None if np.isnan(value) else value for value in values.tolist()], codes)


def load_prices(snapshot: CatalogSnapshot, sizes: SizeColumns, scope: SizeSelection) -> QueryPlan[ScopePrices]:
    """Load the prices in the regions of a selection, in the cheapest of all where it names none."""
    regions = scope.region or (ANY_REGION[scope.purchase],)
    offers = yield from load_offers(snapshot, sizes, scope.os, scope.purchase, (*regions, *scope.available_in))
    usd = offers.ranks(len(sizes.keys), regions)
    everywhere = np.ones(len(usd), dtype=bool)
    for region in scope.available_in:
        everywhere &= np.isfinite(offers.ranks(len(usd), (region,)))
    known = np.isfinite(usd)
    nano_usd = np.full(len(usd), UNKNOWN_NANO_USD, dtype=np.int64)
    nano_usd[known] = np.rint(usd[known] * NANO).astype(np.int64)  # a price has nine decimals
    return ScopePrices(offered=~np.isnan(usd), nano_usd=nano_usd, everywhere=everywhere)
