"""The prices of a past day as columns, for facets: computed from the price history for one question, and not kept."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

import numpy as np
from sqlalchemy import Double, bindparam, cast, func, select

from app.catalog.adjustments import Rules
from app.catalog.in_force import PRICE, prices_in_force
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.columns import SizeColumns
from app.catalog.queries.offer_columns import OfferColumns, RegionOffers
from app.catalog.queries.params import SizeFilter
from app.catalog.queries.price_scope import literal_text, named_days, price_days, price_parameters
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Row, Statement

_SIZES = 500
"""The prices of so many sizes are read at once, so that no more of them exist as rows."""


def load_past_offers(
    search: SizeFilter, sizes: SizeColumns, snapshot: CatalogSnapshot, today: date
) -> QueryPlan[OfferColumns]:
    """Load the prices of the days that a search names, in every region."""
    named = named_days(search)
    known = named is not None and named.known_at is not None
    statement = _prices_statement(search.os, search.purchase, snapshot.rules, known=known)
    days = price_parameters(search, today)
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    cheapest = np.full(len(sizes.positions), np.inf)
    keys = sorted(sizes.positions)
    for start in range(0, len(keys), _SIZES):
        some = keys[start : start + _SIZES]
        rows: Sequence[Row] = yield BoundStatement(statement, days | {"first_key": some[0], "last_key": some[-1]})
        for key, region, usd, is_usual in rows:
            if key in sizes.positions:  # a size that was ingested since the columns were loaded is in none of them
                position = sizes.positions[key]
                found[region].append((position, np.inf if usd is None else usd))
                if is_usual:
                    cheapest[position] = min(cheapest[position], usd)
    regions = {code: _to_offers(sorted(found[code]), search.purchase) for code in sorted(snapshot.regions)}
    every = RegionOffers(np.arange(len(cheapest), dtype=np.int32), {search.purchase: cheapest})
    return OfferColumns(purchase=search.purchase, regions=regions | {ANY_REGION[search.purchase]: every})


def _to_offers(priced: Sequence[tuple[int, float]], purchase: str) -> RegionOffers:
    at = np.array([position for position, _ in priced], dtype=np.int32)
    return RegionOffers(at, {purchase: np.array([usd for _, usd in priced], dtype=np.float64)})


@lru_cache(maxsize=16)
def _prices_statement(os: str, purchase: str, rules: Rules, *, known: bool) -> Statement:
    """Build the statement of the prices of some sizes by region; null where only other purchase models have one.

    The last column says whether the price may be the cheapest of all regions.
    """
    key = PRICE.c.size_key
    of_sizes = (key >= bindparam("first_key", type_=key.type), key <= bindparam("last_key", type_=key.type))
    in_force = (
        prices_in_force(*price_days(known=known), PRICE.c.os == literal_text(os), *of_sizes, rules=rules).subquery().c
    )
    of_this = in_force.purchase == literal_text(purchase)
    usd = func.max(cast(in_force.usd_per_hour, Double)).filter(of_this)
    usual = func.count().filter(of_this, in_force.median_nano_usd.is_(None))
    query = select(in_force.size_key, in_force.region, usd, usual)
    return Statement(query.group_by(in_force.size_key, in_force.region))
