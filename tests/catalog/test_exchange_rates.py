"""Exchange rates: which one counts on a day, exact conversion, and taking rates back."""

from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine, func, select

from app.catalog.column_types import table_of
from app.catalog.models import ExchangeRate
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.readings import ExchangeRateRow
from app.catalog.store.revisions import compute_digest
from app.db.engines import read_session
from app.errors import BadQuery
from app.ingest.registry import read_csv_source
from app.ingest.run import forget, ingest
from tests.factories import NOW, reading, size, source

THURSDAY, FRIDAY = date(2025, 12, 30), date(2025, 12, 31)
NEW_YEAR = date(2026, 1, 2)


def rates(day: date, *, by: str = "bank", **units: str) -> tuple[ExchangeRateRow, ...]:
    return tuple(
        ExchangeRateRow(currency=name, day=day, units_per_euro=Decimal(value), source=by, file="rates.csv", line=2)
        for name, value in units.items()
    )


def save(engine: Engine, *rows: ExchangeRateRow, sources: tuple[str, ...] = ("bank",)) -> None:
    cited = [source(name, kind="third_party") for name in sources]
    ingest(engine, reading(size("Standard_X1", vcpus=8), sources=cited, exchange_rates=rows), now=NOW)


def find(engine: Engine, currency: str, day: date) -> CurrencyRate | None:
    with read_session(engine) as session:
        return find_exchange_rate(session, currency, day)


def found(engine: Engine, currency: str, day: date) -> CurrencyRate:
    rate = find(engine, currency, day)
    assert rate is not None
    return rate


def count(engine: Engine) -> int:
    with engine.connect() as connection:
        return connection.execute(select(func.count()).select_from(table_of(ExchangeRate))).scalar_one()


@pytest.fixture
def bank(engine: Engine) -> Engine:
    """A catalog with the rates of two days before the new year, and one after it without the lev."""
    save(
        engine,
        *rates(THURSDAY, USD="1.1757", BGN="1.9558", IDR="19763.21"),
        *rates(FRIDAY, USD="1.175", BGN="1.9558", IDR="19734.55"),
        *rates(NEW_YEAR, USD="1.1721", IDR="19612.1"),
    )
    return engine


@pytest.mark.first_database
def test_the_rate_of_the_newest_day_at_or_before_the_day_counts(bank: Engine) -> None:
    assert (found(bank, "BGN", THURSDAY).day, found(bank, "BGN", THURSDAY).age_days) == (THURSDAY, 0)
    after = found(bank, "BGN", FRIDAY + timedelta(days=1))
    assert (after.day, after.age_days, after.source_id) == (FRIDAY, 1, "bank")
    assert (after.units_per_euro, after.usd_per_euro) == (Decimal("1.9558"), Decimal("1.175"))


def test_rates_are_kept_to_the_last_digit(bank: Engine) -> None:
    assert found(bank, "IDR", NEW_YEAR).units_per_euro == Decimal("19612.1")
    assert found(bank, "IDR", THURSDAY).units_per_euro == Decimal("19763.21")


def test_the_euro_is_one_of_itself_and_dollars_need_no_rate(bank: Engine) -> None:
    euro = found(bank, "EUR", NEW_YEAR)
    assert (euro.units_per_euro, euro.usd_per_euro) == (Decimal(1), Decimal("1.1721"))
    assert euro.units_per_usd == Decimal("0.853169525")
    assert find(bank, "USD", date(1990, 1, 1)) is None


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("currency", "day", "detail"),
    [
        ("BGN", NEW_YEAR, "has rates from 2025-12-30 until 2025-12-31, and none for 2026-01-02"),
        ("BGN", date(2025, 12, 29), "has rates from 2025-12-30 until 2025-12-31, and none for 2025-12-29"),
        ("EUR", date(2025, 12, 29), "has rates from 2025-12-30 until 2026-01-02, and none for 2025-12-29"),
        ("ZZZ", NEW_YEAR, "allowed are BGN, EUR, IDR, USD"),
    ],
)
def test_a_currency_without_a_rate_is_refused_with_those_that_have_one(
    bank: Engine, currency: str, day: date, detail: str
) -> None:
    with pytest.raises(BadQuery) as caught:
        find(bank, currency, day)
    assert str(caught.value) == f"currency={currency}: {detail}"


def test_a_catalog_without_rates_has_dollars_only(engine: Engine) -> None:
    save(engine)
    with pytest.raises(BadQuery, match="the catalog has no exchange rates; allowed is USD"):
        find(engine, "EUR", NEW_YEAR)


@pytest.mark.first_database
def test_sources_are_never_mixed_and_the_newest_day_of_any_counts(bank: Engine) -> None:
    later = NEW_YEAR + timedelta(days=3)
    save(bank, *rates(later, USD="1.2", CHF="0.9", by="mine"), sources=("bank", "mine"))
    assert (found(bank, "CHF", later).source_id, found(bank, "EUR", later).usd_per_euro) == ("mine", Decimal("1.2"))
    assert (found(bank, "IDR", later).source_id, found(bank, "IDR", later).usd_per_euro) == ("bank", Decimal("1.1721"))
    save(bank, *rates(NEW_YEAR, USD="1.2", IDR="2", by="another"), sources=("bank", "another"))
    assert found(bank, "IDR", NEW_YEAR).source_id == "another"  # of the same day the first by its id


@pytest.mark.first_database
def test_forgetting_a_source_brings_the_others_back(bank: Engine) -> None:
    with read_session(bank) as session:
        before = compute_digest(session)
    save(bank, *rates(NEW_YEAR, USD="1.2", IDR="2", by="another"), sources=("bank", "another"))
    outcome = forget(bank, "another", now=NOW)
    assert outcome.summary.changes["exchange_rate"].removed == 2
    assert found(bank, "IDR", NEW_YEAR).source_id == "bank"
    with read_session(bank) as session:
        assert compute_digest(session) == before


SOURCES = """id,title,publisher,kind,url,published_on
bank,Rates,A bank,third_party,https://example.org/rates,2026-01-02
"""


def test_a_file_that_is_read_again_replaces_what_it_said_before(engine: Engine, tmp_path: Path) -> None:
    def ingest_rows(*rows: str) -> Any:
        (tmp_path / "sources.csv").write_text(SOURCES)
        path = tmp_path / "exchange_rates.csv"
        path.write_text("\n".join(["day,BGN,USD,source", *rows]) + "\n")
        changes = ingest(engine, read_csv_source("exchange_rates", path), now=NOW).summary.changes["exchange_rate"]
        return changes.added, changes.changed, changes.unchanged, changes.removed

    assert ingest_rows("2025-12-30,1.9558,1.1757,bank", "2025-12-31,1.9558,1.175,bank") == (4, 0, 0, 0)
    assert ingest_rows("2025-12-30,1.9558,1.1757,bank", "2025-12-31,1.9558,1.175,bank") == (0, 0, 4, 0)
    assert ingest_rows("2025-12-30,1.9558,1.1757,bank", "2025-12-31,,1.1751,bank") == (0, 1, 2, 1)
    assert count(engine) == 3
    with pytest.raises(BadQuery, match="until 2025-12-30"):
        find(engine, "BGN", FRIDAY)


def rate(units: str, usd: str) -> CurrencyRate:
    return CurrencyRate(
        currency="XYZ",
        units_per_euro=Decimal(units),
        usd_per_euro=Decimal(usd),
        day=FRIDAY,
        age_days=0,
        source_id="bank",
    )


def test_an_amount_is_rounded_once_and_half_away_from_zero() -> None:
    assert rate("1", "2").convert(Decimal("0.000000001")) == Decimal("0.000000001")  # a half of it is rounded up
    assert rate("1", "3").convert(Decimal(1)) == Decimal("0.333333333")
    assert rate("2", "3").convert(Decimal(1)) == Decimal("0.666666667")
    # 3.673 / 3 GPUs: the quotient is not rounded before it is converted
    assert rate("3", "1").convert(Fraction("3.673") / 3) == Decimal("3.673")


money = st.decimals(min_value=0, max_value=10**6, places=9)
units = st.decimals(min_value="0.0001", max_value=10**5, places=4).filter(bool)


@given(usd=money, per_euro=units, usd_per_euro=units)
def test_an_amount_is_the_exact_quotient_to_nine_places(usd: Decimal, per_euro: Decimal, usd_per_euro: Decimal) -> None:
    converted = rate(str(per_euro), str(usd_per_euro)).convert(usd)
    exact = Fraction(usd) * Fraction(per_euro) / Fraction(usd_per_euro)
    assert abs(Fraction(converted) - exact) <= Fraction(1, 2 * 10**9)
