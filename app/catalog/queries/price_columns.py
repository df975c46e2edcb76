"""Finds on columns which sizes a list of prices is of, where they are few.

Prices are in the order of their sizes, so that a page of a rare region, or of a GPU, would pass nearly all of them.
"""

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Integer, bindparam, literal_column, select

from app.catalog.in_force import PRICE
from app.catalog.queries.column_filters import has_any_gpu
from app.catalog.queries.column_needs import PriceNeeds
from app.catalog.queries.columns import SizeColumns, load_sizes
from app.catalog.queries.price_scope import literal_text, region_binds
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Statement

_ROWS = 5_000
_FEW = 0.2
"""Among more than this share of sizes a page is found soon by reading prices one after another."""


def load_price_columns(needs: PriceNeeds, snapshot: CatalogSnapshot) -> QueryPlan[NDArray[np.int32] | None]:
    """Load the positions of the sizes with any price that is meant, or return those that are kept; None for all."""
    sizes = yield from load_sizes(snapshot)
    if not needs.any:
        return None
    return (yield from snapshot.columns.keep(needs, partial(_read_sizes_with_prices, needs, sizes)))


def find_keys(needs: PriceNeeds, gpus: Sequence[str], snapshot: CatalogSnapshot) -> QueryPlan[Sequence[str] | None]:
    """Find the keys of the sizes that may have prices of a list, in order; None if they are not few."""
    sizes = yield from load_sizes(snapshot)
    at = yield from load_price_columns(needs, snapshot)
    if gpus:
        found = np.flatnonzero(has_any_gpu(sizes, gpus)).astype(np.int32)
        at = found if at is None else np.intersect1d(at, found, assume_unique=True)
    if at is None or len(at) > _FEW * len(sizes.keys):
        return None
    return [sizes.keys[position] for position in at.tolist()]


def _read_sizes_with_prices(needs: PriceNeeds, sizes: SizeColumns) -> QueryPlan[NDArray[np.int32]]:
    found: list[int] = []
    after, regions = "", {f"region_{index}": region for index, region in enumerate(needs.regions)}
    while True:
        rows = yield BoundStatement(_sizes_with_prices(needs), {"after": after, **regions})
        found += [sizes.positions[key] for (key,) in rows if key in sizes.positions]
        if len(rows) < _ROWS:
            return np.array(found, dtype=np.int32)
        after = rows[-1][0]


@lru_cache(maxsize=32)
def _sizes_with_prices(needs: PriceNeeds) -> Statement:
    price = PRICE.c
    query = select(price.size_key).distinct().where(price.size_key > bindparam("after", type_=price.size_key.type))
    if needs.regions:
        query = query.where(price.region.in_(region_binds(len(needs.regions))))
    if needs.os:
        query = query.where(price.os == literal_text(needs.os))
    if needs.purchase:
        query = query.where(price.purchase == literal_text(needs.purchase))
    return Statement(query.order_by(price.size_key).limit(literal_column(str(_ROWS), Integer)))
