"""Finds the neighbours of a size on columns: the same sizes that `app.catalog.queries.neighbours` finds by SQL."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.projections import MAX_MEMORY_BUCKET, memory_bucket
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.codes import Codes, Mask
from app.catalog.queries.column_order import ColumnKey, Positions, distinct, first_in_order
from app.catalog.queries.columns import Numbers, SizeColumns, SortColumn, load_sizes, load_sort_column
from app.catalog.queries.neighbours import MEMORY_STEPS, SIZES_PER_SCAN, ReferenceSize
from app.catalog.queries.offer_columns import load_offers
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.ranking_columns import Distinct, load_gpus
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan

_NO_BUCKET, _UNKNOWN_BUCKET = -100, -200
"""The buckets of sizes without GPU memory, and of unknown: no step from a bucket leads there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourColumns:
    """Sizes that may be neighbours: their positions, prices (USD an hour, infinity where unknown) and other columns."""

    at: Positions
    sizes: SizeColumns
    usd: Numbers
    gpus: Distinct
    names: SortColumn

    def texts(self, column: str) -> list[str | None]:
        """Return a text of each size."""
        codes: Codes = self.sizes.texts[column]
        return [codes.values[code] for code in codes.codes[self.at].tolist()]

    def numbers(self, column: str) -> list[float | None]:
        """Return a figure of each size."""
        return [None if isnan(value) else value for value in self.sizes.numbers[column][self.at].tolist()]

    @property
    def prices(self) -> list[float | None]:
        """The price of each size."""
        return [None if value == np.inf else value for value in self.usd[self.at].tolist()]

    @property
    def gpu_counts(self) -> list[Any]:
        """The exact number of GPUs of each size."""
        return [self.gpus.values[code] for code in self.gpus.codes[self.at].tolist()]

    @property
    def size_names(self) -> list[str]:
        """The name of each size."""
        texts = self.names.texts or ()
        return [texts[int(place)] for place in self.names.values[self.at].tolist()]

    @property
    def keys(self) -> list[str]:
        """The key of each size."""
        return [self.sizes.keys[position] for position in self.at.tolist()]


def find_neighbours(
    reference: ReferenceSize, params: SimilarSearch, snapshot: CatalogSnapshot, today: date
) -> QueryPlan[NeighbourColumns]:
    """Find the sizes around a reference that can be ordered, of today's prices; in a thread, as it may load columns."""
    sizes = yield from load_sizes(snapshot)
    codes = params.region or (ANY_REGION[params.purchase],)
    offers = yield from load_offers(snapshot, sizes, params.os, params.purchase, codes)
    names = yield from load_sort_column(snapshot, "name")
    gpus = yield from load_gpus(snapshot, sizes)
    usd = offers.ranks(len(sizes.keys), codes)
    retired = sizes.retires <= today.toordinal()
    may: Mask = ~np.isnan(usd) & ~retired & ~sizes.is_flag("withdrawn", True)
    may[sizes.positions[reference.key]] = False
    buckets = sizes.remember("memory buckets", lambda: _buckets(sizes.numbers["gpu_memory_gib"]))
    at = [
        _nearest(sizes, usd, np.flatnonzero(may & _is_alike(buckets, bucket)), price)
        for bucket, price in _steps(reference)
    ]
    return NeighbourColumns(at=distinct(np.concatenate(at)), sizes=sizes, usd=usd, gpus=gpus, names=names)


def _buckets(memory: Numbers) -> NDArray[np.int64]:
    """Return the bucket of each GPU memory, as `memory_bucket_sql` does; where that is null, which of the others."""
    known = np.nan_to_num(memory)
    buckets = np.clip(np.frexp(known)[1] - 1, 0, MAX_MEMORY_BUCKET)
    others = np.where(np.isnan(memory), _UNKNOWN_BUCKET, _NO_BUCKET)
    return np.where(known > 0, buckets, others).astype(np.int64)


def _is_alike(buckets: NDArray[np.int64], bucket: int) -> Mask:
    """Return which sizes are of a bucket; a size of unknown GPU memory is compared with all that may have some."""
    alike: Mask = buckets != _NO_BUCKET if bucket == _UNKNOWN_BUCKET else buckets == bucket
    return alike


def _steps(reference: ReferenceSize) -> Iterator[tuple[int, float]]:
    """Yield each bucket to search and the price to begin at."""
    memory = reference.gpu_memory_gib
    other = _UNKNOWN_BUCKET if memory is None else _NO_BUCKET
    for step in MEMORY_STEPS:
        yield memory_bucket(memory) + step if memory else other, reference.usd_per_hour * 2.0**step


def _nearest(sizes: SizeColumns, usd: Numbers, at: Positions, price: float) -> Positions:
    """Return the sizes whose prices are next to one: so many from it on and as many below it, in any order."""
    dearer = usd[at] >= price
    up = [ColumnKey(figures=usd.take, kind=float), ColumnKey(figures=sizes.order.take, kind=float)]
    down = [
        ColumnKey(figures=usd.take, kind=float, descending=True),
        ColumnKey(figures=sizes.order.take, kind=float, descending=True),
    ]
    return np.concatenate([_first(up, at[dearer]), _first(down, at[~dearer])])


def _first(order: Sequence[ColumnKey], at: Positions) -> Positions:
    return first_in_order(order, at, SIZES_PER_SCAN) if len(at) > SIZES_PER_SCAN else at
