"""The days of prices that are kept at ingest are those of the prices, whatever was ingested and forgotten."""

from dataclasses import replace
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import PriceDay
from app.catalog.queries.freshness import load_freshness
from app.catalog.readings import AliasRow, Reading
from app.catalog.store.prices import PRICE
from app.catalog.store.revisions import list_sources
from app.db import migrations
from app.db.engines import read_session
from app.ingest.run import forget, ingest
from tests.catalog.test_price_runs import X1, X2, on, one_list
from tests.conftest import TODAY
from tests.factories import NOW, price, price_list, reading, size, source

FILES = ("1.csv", "2.csv")
SOURCES = ("prices", "other")
CITED = (source(), *(source(name, kind="third_party") for name in SOURCES))
SIZES = ("x1", "x2", "x3")


def kept(session: Session) -> list[tuple[Any, ...]]:
    table = table_of(PriceDay)
    return [tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))]


def counted(session: Session) -> list[tuple[Any, ...]]:
    key = (PRICE.c.source_id, PRICE.c.seen_until, PRICE.c.approximate_date)
    return [tuple(row) for row in session.execute(select(*key, func.count()).group_by(*key).order_by(*key))]


def newest_days(session: Session, today: date) -> dict[str, date]:
    """Return the newest exact day of each source up to today, of all prices."""
    dated = (PRICE.c.seen_until <= today, PRICE.c.approximate_date.is_(False))
    query = select(PRICE.c.source_id, func.max(PRICE.c.seen_until)).where(*dated).group_by(PRICE.c.source_id)
    return dict(session.execute(query).all())


def check_days(engine: Engine, today: date) -> int:
    """Check that what is kept is what reading all prices gives; return how many days are kept."""
    with read_session(engine) as session:
        days = kept(session)
        assert days == counted(session)
        assert load_freshness(session, today).prices == newest_days(session, today)
        prices = select(PRICE.c.source_id, func.count()).group_by(PRICE.c.source_id)
        of_source = dict(session.execute(prices).all())
        assert {row["id"]: row["prices"] for row in list_sources(session) if row["prices"]} == of_source
    return len(days)


def some_prices(random: Random) -> Reading:
    """Return prices, some undated or of the future, in a file that may have had others: those are dropped."""
    by, day = random.choice(SOURCES), TODAY + timedelta(days=random.randint(-4, 4))
    rows = [
        price(key, str(random.randint(1, 2)), source=by, valid_from=day, approximate_date=random.random() < 0.3)
        for key in random.sample(SIZES, random.randint(1, 3))
    ]
    (each,) = price_list(*rows)
    of_file = replace(each, file=random.choice(FILES), sources=frozenset([by]))
    return replace(reading(regions=["eastus", "westus"]), prices=(of_file,))


def some_list(random: Random) -> Reading:
    """Return a complete list of any day, in a file that may have had one of another day: that one is withdrawn."""
    prices = {place: random.randint(1, 2) for place in random.sample((X1, X2), random.randint(1, 2))}
    return one_list(random.randint(1, 6), prices, file=random.choice(FILES))


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize("seed", range(2))
def test_kept_days_are_those_of_all_prices_after_any_ingests_and_forgets(engine: Engine, seed: int) -> None:
    random, now = Random(seed), NOW
    most = forgotten = 0
    for number in range(12):
        now += timedelta(days=random.randint(0, 1))
        if number % 6 == 5:
            forgotten += forget(engine, random.choice(SOURCES), now=now).summary.changes["price"].removed
        else:
            what = random.choice((some_prices, some_list))(random)
            # Its regions stay when a source of prices is forgotten.
            regions = tuple(replace(one, source="page") for one in what.regions)
            ingest(engine, replace(what, regions=regions, sources=CITED), now=now)
        most = max(most, check_days(engine, now.date()))
    assert most > 2
    assert forgotten


def test_prices_of_a_size_that_becomes_an_alias_count_once(engine: Engine) -> None:
    rows = [price(key, "1", valid_from=TODAY - timedelta(days=day)) for key, day in (("x1", 0), ("x2", 0), ("x2", 3))]
    ingest(engine, reading(size("x1", vcpus=8), regions=["eastus"], prices=rows), now=NOW)
    check_days(engine, TODAY)
    alias = AliasRow(alias="x2", size="x1", source="page", reason="renamed", file="aliases.csv", line=2)
    ingest(engine, reading(aliases=(alias,)), now=NOW)
    check_days(engine, TODAY)
    with read_session(engine) as session:
        assert [row[1:] for row in kept(session)] == [(TODAY - timedelta(days=3), False, 1), (TODAY, False, 1)]


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_the_migration_counts_the_prices_that_are_there(engine: Engine) -> None:
    for number, day in enumerate((1, 3, 2)):
        ingest(engine, one_list(day, {X1: 2, X2: day}, file=f"{number}.csv"), now=NOW)
    migrations.downgrade(engine, "0025")
    migrations.upgrade(engine)
    check_days(engine, TODAY)
    with read_session(engine) as session:
        assert [row[1:] for row in kept(session)] == [(on(1), False, 1), (on(2), False, 1), (on(3), False, 2)]
