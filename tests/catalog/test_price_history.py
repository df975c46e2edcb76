"""The history of a price has the rows of the days that are asked for, as a plain filter over the tables finds them."""

from collections.abc import Iterator
from datetime import date, timedelta
from itertools import product
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.catalog.queries.prices import PriceHistorySearch, PriceSearch, find_price_history, find_prices, merge_runs
from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.catalog.store.price_totals import save_price_totals
from app.catalog.store.prices import LIST, PRICE
from app.db.writing import write_session
from tests.catalog.test_price_runs import (
    FIRST_INGEST,
    REGIONS,
    SIZES,
    SOURCES,
    Observed,
    catalog,
    ingested,
    on,
    take,
)
from tests.databases import first_on_each_kind

__all__ = ["catalog"]

ONE = (SIZES[0], REGIONS[0])
TODAY = ingested(8)
LAST_DAY = 25
"""So few lists over this many days leave gaps within runs, too."""
GROUP = (REGIONS[0], "linux", "on_demand")


def some_lists(random: Random) -> Iterator[tuple[Observed, date]]:
    """Yield lists of any days, whole or not, of two sources, with the day on which each is ingested."""
    for number in range(12):
        regions = random.choice([None, REGIONS[:1], REGIONS])
        prices = {ONE: random.choice([1, 1, 2])} if regions is None or random.random() < 0.7 else {}
        prices |= {(SIZES[1], REGIONS[0]): 5}  # a list without any price would say nothing
        source, day, undated = random.choice(SOURCES), random.randint(1, LAST_DAY), random.random() < 0.2
        yield Observed(source, day, prices, regions, undated), ingested(number // 2)


def filtered(session: Session, since: date | None, until: date | None, known_at: date | None) -> list[tuple[Any, ...]]:
    """Return the rows of the history, from all rows of both tables."""
    last_day, last_known = until or TODAY, known_at or date.max
    found = []
    for price in session.execute(select(PRICE).where(PRICE.c.size_key == ONE[0])).all():
        if (price.region, price.os, price.purchase) != GROUP:
            continue
        if price.valid_from > last_day or price.known_from > last_known:
            continue
        observed = [
            listed.day
            for listed in session.execute(select(LIST)).all()
            if (listed.source_id, listed.region, listed.os, listed.purchase) == (price.source_id, *GROUP)
            and price.valid_from < listed.day <= min(price.seen_until, last_day)
            and listed.known_from <= last_known
        ]
        seen_until = max(observed, default=price.valid_from)
        if since is None or seen_until >= since:
            found.append((price.valid_from, price.source_id, price.known_from, seen_until, price.nano_usd_per_hour))
    return sorted(found)


def asked(session: Session, limit: int, **days: date | None) -> list[tuple[Any, ...]]:
    """Return the rows of all pages of the history."""
    found: list[tuple[Any, ...]] = []
    cursor = None
    while True:
        search = PriceHistorySearch(region=REGIONS[0], limit=limit, cursor=cursor, **days)
        page = find_price_history(load_catalog(session, TODAY), ONE[0], search)
        for item in page.items:
            first, known, last = (date.fromisoformat(item[name]) for name in ("valid_from", "known_from", "seen_until"))
            found.append((first, item["source_id"], known, last, round(item["usd_per_hour"] * 10**9)))
        cursor = page.next_cursor
        if cursor is None:
            assert page.total == len(found)
            return found


@pytest.mark.parametrize("seed", first_on_each_kind(1, range(3)))
def test_a_history_has_the_rows_of_the_days_that_are_asked_for(catalog: Engine, seed: int) -> None:
    random = Random(seed)
    days = [on(day) for day in range(LAST_DAY + 2)]
    cut_off = 0
    with write_session(catalog, commit=False) as session:
        for observed, today in some_lists(random):
            take(session, observed, today)
        save_price_totals(session)
        for _ in range(80):
            until = random.choice([None, *days, *days])
            since = random.choice([None, *(day for day in days if day <= (until or TODAY))])
            known_at = random.choice([None, FIRST_INGEST - timedelta(days=1), *map(ingested, range(6))])
            expected = filtered(session, since, until, known_at)
            asked_for = {"since": since, "until": until, "known_at": known_at}
            assert asked(session, random.randint(1, 9), **asked_for) == expected, asked_for
            cut_off += len(filtered(session, None, until, known_at)) > len(expected) > 0
    assert cut_off > 5


@pytest.mark.takes_seconds
@pytest.mark.parametrize("seed", first_on_each_kind(1, range(3)))
def test_the_price_in_force_is_in_the_line_that_was_seen_last(catalog: Engine, seed: int) -> None:
    in_force = 0
    with write_session(catalog, commit=False) as session:
        for observed, today in some_lists(Random(seed)):
            take(session, observed, today)
        save_price_totals(session)
        snapshot = load_snapshot(session)
        for until, known_at in product(map(on, range(LAST_DAY + 2)), map(ingested, range(6))):
            search = PriceHistorySearch(region=REGIONS[0], until=until, known_at=known_at)
            of_day = PriceSearch(region=(REGIONS[0],), os="linux", purchase="on_demand", as_of=until, known_at=known_at)
            history = find_price_history(Catalog(session, snapshot, TODAY), ONE[0], search).items
            for price in find_prices(Catalog(session, snapshot, TODAY), ONE[0], of_day).items:
                *others, last = merge_runs(history, price)
                assert last.in_force, (until, known_at)
                assert not any(line.in_force for line in others)
                in_force += bool(others)
    assert in_force
