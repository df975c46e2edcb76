"""Totals of lists of prices: those kept at ingest are what counting the prices gives, on every day."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import ColumnElement, Engine, func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import is_in_force
from app.catalog.models import Gpu, PriceTotal, Size
from app.catalog.queries.prices import AllPricesSearch, find_all_prices
from app.catalog.queries.snapshot import load_catalog, load_snapshot
from app.catalog.store.offers import save_derived
from app.catalog.store.prices import PRICE
from app.catalog.store.upsert import condition
from app.db.dialects import quote
from app.db.engines import read_session
from app.db.writing import write_session
from app.ingest.run import forget, ingest
from tests.catalog.test_price_runs import X1, X2, on, one_list
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size, source
from tests.recording import statements_of

DAY = timedelta(days=1)


def stored(session: Session) -> list[tuple[Any, ...]]:
    table = table_of(PriceTotal)
    return [tuple(row) for row in session.execute(select(table).order_by(*table.primary_key))]


def total_of(session: Session, today: date, **search: Any) -> int:
    return find_all_prices(load_catalog(session, today), AllPricesSearch(**search)).total


def check_totals(engine: Engine, today: date) -> None:
    """Check that what an ingest counted is what counting all would, and that it answers for every day."""
    with write_session(engine, commit=False) as session:
        before = stored(session)
        save_derived(session, today)
        assert stored(session) == before
        for day in (today, today - DAY, today + DAY, *map(on, range(9))):
            in_force = count(session, offered_on(day))
            assert total_of(session, max(day, today + DAY), as_of=day) == total_of(session, day) == in_force, day
            assert total_of(session, day, history=True) == count(session, PRICE.c.valid_from <= day), day


def offered_on(day: date) -> ColumnElement[bool]:
    return condition(is_in_force("price", quote(day.isoformat()), None))


def count(session: Session, *conditions: Any) -> int:
    found: int = session.execute(select(func.count()).select_from(PRICE).where(*conditions)).scalar_one()
    return found


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_each_ingest_counts_again_what_it_changed(engine: Engine) -> None:
    tomorrow = price("x1", "2", region="westus", valid_from=TODAY + DAY)
    spot = price("x1", "1", purchase="spot", approximate_date=True)
    sizes = size("x1", vcpus=8)
    steps: tuple[Callable[[], object], ...] = (
        lambda: ingest(engine, reading(sizes, regions=["eastus", "westus"], prices=(tomorrow, spot)), now=NOW),
        lambda: ingest(engine, one_list(1, {X1: 2, X2: 2}, file="1.csv"), now=NOW),
        lambda: ingest(engine, one_list(2, {X2: 2}, file="2.csv"), now=NOW),
        lambda: ingest(engine, one_list(3, {X2: 3}, file="3.csv"), now=NOW),
        lambda: ingest(engine, one_list(5, {X2: 3}, file="5.csv"), now=NOW),
        lambda: ingest(engine, one_list(4, {X1: 2}, file="5.csv"), now=NOW),
        lambda: ingest(engine, reading(prices=(price("x2", "9", region="westus"),)), now=NOW),
        lambda: forget(engine, "prices", now=NOW),
    )
    for step in steps:
        step()
        check_totals(engine, TODAY)


@pytest.mark.first_database
def test_a_price_that_begins_later_counts_from_its_day_on(engine: Engine) -> None:
    later = price("x1", "2", region="westus", valid_from=TODAY + DAY)
    first = reading(size("x1", vcpus=8), regions=["eastus", "westus"], prices=(price("x1", "3"), later))
    ingest(engine, first, now=NOW)
    check_totals(engine, TODAY)
    ingest(engine, reading(sources=(source("another"),)), now=NOW + DAY)
    check_totals(engine, TODAY + DAY)


SEARCHES: dict[str, dict[str, Any]] = {
    "all": {},
    "a region": {"region": ("westeurope",)},
    "two regions": {"region": ("westeurope", "eastus")},
    "a system": {"os": "windows"},
    "a purchase model": {"purchase": "spot"},
    "a region and a system": {"region": ("eastus",), "os": "linux"},
    "a GPU": {"gpu": ("*a100*",)},
    "a GPU in a region": {"gpu": ("*a100*",), "region": ("eastus",)},
    "a size": {"size": ("nd40rs_v2",)},
}


@pytest.mark.takes_seconds
@pytest.mark.parametrize("day", [TODAY, date(2024, 6, 1)], ids=str)
def test_the_total_of_a_list_of_prices_is_the_number_of_its_rows(seeded_engine: Engine, day: date) -> None:
    gpu, sizes = table_of(Gpu), table_of(Size)
    a100 = func.lower(sizes.c.gpu_model).like("%a100%") | func.lower(gpu.c.family).like("%a100%")
    keys = select(sizes.c.key).join_from(sizes, gpu, gpu.c.id == sizes.c.gpu_id, isouter=True).where(a100)
    kinds = {
        **{name: PRICE.c[name] for name in ("region", "os", "purchase")},
        "gpu": PRICE.c.size_key.in_(keys),
        "size": PRICE.c.size_key == "nd40rs_v2",
    }
    query = (
        select(*(column.label(name) for name, column in kinds.items()), func.count().label("prices"))
        .where(offered_on(day))
        .group_by(*kinds.values())
    )
    with read_session(seeded_engine) as session:
        in_force = session.execute(query).all()
        assert sum(row.prices for row in in_force) > 10_000
        for name, search in SEARCHES.items():
            expected = sum(
                row.prices
                for row in in_force
                if ("region" not in search or row.region in search["region"])
                and all(getattr(row, one) == search[one] for one in ("os", "purchase") if one in search)
                and all(getattr(row, one) for one in ("gpu", "size") if one in search)
            )
            assert total_of(session, TODAY, as_of=day, **search) == expected, name


@pytest.mark.first_database
def test_the_prices_of_a_day_on_which_there_were_none_are_not_looked_for(seeded_engine: Engine) -> None:
    with read_session(seeded_engine) as session:
        snapshot = load_snapshot(session)

        def columns_on(day: date) -> list[tuple[str, ...]]:
            search = AllPricesSearch(as_of=day)
            _, asked = statements_of(session, snapshot, TODAY, lambda catalog: find_all_prices(catalog, search))
            return [bound.statement.names for bound in asked]

        assert columns_on(date(2020, 1, 1)) == [("total",)]
        assert [names[0] for names in columns_on(TODAY)] == ["total", "size"]
