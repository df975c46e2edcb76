"""Loads what a source stated last, for the comparison with what it states next."""

from collections.abc import Generator
from itertools import groupby
from operator import attrgetter

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Availability, Fact, Price, Region

PRICE = table_of(Price).c


def load_region_codes(session: Session) -> tuple[str, ...]:
    """Return the codes of all regions, sorted."""
    code = table_of(Region).c.code
    return tuple(session.execute(select(code).order_by(code)).scalars())


def load_newest_lists(session: Session, source: str) -> Generator[tuple[str, dict[tuple[str, str, str], int]]]:
    """Yield each region with its newest prices of a source: nano-USD an hour by size key, system and purchase model.

    The rows come from an open cursor, so that a caller who stops early must close the generator.
    """
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


def load_stated_sizes(session: Session, source: str) -> frozenset[str]:
    """Return the keys of the sizes of which a source states anything."""
    fact = table_of(Fact).c
    query = select(fact.subject).where(fact.source_id == source, fact.kind == "size").distinct()
    return frozenset(session.execute(query).scalars())


def load_places(session: Session, source: str) -> frozenset[tuple[str, str]]:
    """Return the keys of the sizes that a source says are offered, each with a region."""
    table = table_of(Availability).c
    query = select(table.size_key, table.region).where(table.source_id == source)
    return frozenset((key, region) for key, region in session.execute(query))
