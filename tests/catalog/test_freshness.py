"""How old the catalog is: the newest day of the prices and exchange rates of each source."""

from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from app.catalog.queries.freshness import Freshness, load_freshness
from app.catalog.readings import ExchangeRateRow
from app.db.engines import read_session
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size, source

MAY, JUNE, AUGUST, SEPTEMBER = date(2026, 5, 1), date(2026, 6, 1), date(2026, 8, 29), date(2026, 9, 1)


def loaded(engine: Engine, today: date = SEPTEMBER) -> Freshness:
    with read_session(engine) as session:
        return load_freshness(session, today)


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """A catalog with exact prices of May and June, one of the coming year, one without a date, and rates of August."""
    prices = (
        price("Standard_X1", "1", valid_from=MAY),
        price("Standard_X1", "2", valid_from=JUNE, source="other"),
        price("Standard_X1", "3", valid_from=date(2027, 1, 1)),
        price("Standard_X1", "4", valid_from=date(2026, 7, 1), approximate_date=True, source="undated"),
    )
    rate = ExchangeRateRow(
        currency="USD", day=AUGUST, units_per_euro=Decimal("1.1"), source="bank", file="rates.csv", line=2
    )
    cited = [source(name, kind="third_party") for name in ("other", "undated", "bank")]
    ingest(
        engine,
        reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=prices, sources=cited, exchange_rates=(rate,)),
        now=NOW,
    )
    return engine


@pytest.mark.first_database
def test_the_newest_day_of_each_source_is_that_of_its_dated_prices_or_rates_up_to_today(filled: Engine) -> None:
    freshness = loaded(filled)
    assert {name: freshness.newest_day_of(name) for name in ("prices", "other", "undated", "bank", "page")} == {
        "prices": MAY,
        "other": JUNE,
        "undated": None,
        "bank": AUGUST,
        "page": None,
    }
    assert (freshness.newest_prices_as_of, freshness.prices_age_days) == (JUNE, 92)
    assert (freshness.newest_exchange_rates_as_of, freshness.exchange_rates_age_days) == (AUGUST, 3)


@pytest.mark.first_database
def test_what_is_announced_counts_from_its_day_on(filled: Engine) -> None:
    freshness = loaded(filled, date(2027, 1, 2))
    assert (freshness.newest_day_of("prices"), freshness.prices_age_days) == (date(2027, 1, 1), 1)


@pytest.mark.first_database
def test_a_catalog_is_stale_when_its_prices_are_older_than_so_many_days(filled: Engine) -> None:
    freshness = loaded(filled)
    assert (freshness.is_stale(91), freshness.is_stale(92)) == (True, False)


def test_a_catalog_is_stale_when_its_exchange_rates_are_older_than_so_many_days(filled: Engine) -> None:
    freshness = loaded(filled, date(2027, 1, 2))
    assert freshness.exchange_rates_age_days == 126
    assert (freshness.is_stale(125), freshness.is_stale(126)) == (True, False)


@pytest.mark.first_database
def test_prices_of_an_unknown_age_are_stale(engine: Engine) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    freshness = loaded(engine)
    assert (freshness.prices_age_days, freshness.exchange_rates_age_days) == (None, None)
    assert freshness.is_stale(36_500)
