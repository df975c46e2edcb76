"""Loads what a source stated last, for the comparison with what it states next."""

from collections.abc import Generator, Mapping
from contextlib import closing
from datetime import date
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Price, Region
from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.store.price_checks import is_retail

PRICE = table_of(Price).c


def load_region_codes(session: Session, provider: str = DEFAULT_PROVIDER.id) -> tuple[str, ...]:
    """Return the codes of the regions of a provider, sorted."""
    region = table_of(Region).c
    codes = select(region.code).where(region.provider == provider)
    return tuple(session.execute(codes.order_by(region.code)).scalars())


RegionList = tuple[str, dict[tuple[str, str, str], int]]
"""A region with the prices of a list: nano-USD an hour by size key, system and purchase model."""


def load_newest_lists(session: Session, source: str) -> Generator[RegionList]:
    """Yield each region with its newest list of a source, or of other sources where that one has none; by code.

    The rows come from open cursors, so that a caller who stops early must close the generator.
    """
    with closing(_load_own_lists(session, source)) as own, closing(_load_retail_lists(session, source)) as others:
        yield from merge(own, others, key=itemgetter(0))


def _load_own_lists(session: Session, source: str) -> Generator[RegionList]:
    newest = (
        select(PRICE.region, func.max(PRICE.seen_until).label("day"))
        .where(PRICE.source_id == source)
        .group_by(PRICE.region)
        .subquery()
    )
    query = (
        select(PRICE.region, PRICE.size_key, PRICE.os, PRICE.purchase, PRICE.nano_usd_per_hour)
        .join(newest, (newest.c.region == PRICE.region) & (newest.c.day == PRICE.seen_until))
        .where(PRICE.source_id == source)
        .order_by(PRICE.region)
        .execution_options(yield_per=10_000)
    )
    with session.execute(query) as result:
        for region, rows in groupby(result, key=attrgetter("region")):
            yield region, {(row.size_key, row.os, row.purchase): row.nano_usd_per_hour for row in rows}


def _load_retail_lists(session: Session, but: str) -> Generator[RegionList]:
    """Yield the regions that a source has no price for, with retail prices of the others.

    Those of each system and purchase model are from one list of one source. Lists of several sources are never mixed:
    what an older one has beside the newest may not be sold any more.
    """
    columns = (PRICE.size_key, PRICE.os, PRICE.purchase, PRICE.source_id, PRICE.seen_until, PRICE.nano_usd_per_hour)
    query = (
        select(PRICE.region, *columns)
        .where(
            is_retail(PRICE),
            PRICE.approximate_date.is_(False),
            PRICE.region.not_in(select(PRICE.region).where(PRICE.source_id == but)),
        )
        .order_by(PRICE.region, PRICE.known_from)
        .execution_options(yield_per=10_000)
    )
    with session.execute(query) as result:
        for region, rows in groupby(result, key=attrgetter("region")):
            lists: dict[tuple[str, str], dict[tuple[date, str], dict[str, int]]] = {}
            for row in rows:
                of_kind = lists.setdefault((row.os, row.purchase), {})
                of_kind.setdefault((row.seen_until, row.source_id), {})[row.size_key] = row.nano_usd_per_hour
            prices = {kind: _newest_large(of_kind) for kind, of_kind in lists.items()}
            yield region, {(size, *kind): nano for kind, of_kind in prices.items() for size, nano in of_kind.items()}


def _newest_large(lists: Mapping[tuple[date, str], dict[str, int]]) -> dict[str, int]:
    """Return the newest list, of those that have at least half as many prices as the longest.

    Some sources have prices of a few sizes only; what ended before a source's newest list is a short list, too.
    """
    most = max(map(len, lists.values()))
    large = {key: prices for key, prices in lists.items() if 2 * len(prices) >= most}
    return max(large.items(), key=lambda item: (item[0][0], len(item[1]), item[0][1]))[1]
