"""The region where a size was cheapest on a past day, by any rules: the one that comparing all its prices gives."""

from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine, insert
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import UnevenRules, earliest_spot_day, prices_in_force
from app.catalog.models import Region, Size, Source
from app.catalog.purchases import AdjustmentRule
from app.catalog.queries.params import SizeSearch
from app.catalog.queries.price_scope import PriceScope, PriceScopeKey, price_parameters
from app.catalog.store.prices import PRICE
from app.db.dialects import Dialect
from app.db.writing import write_session
from tests.sql import select_rows

TODAY = date(2026, 9, 1)
SIZES, REGIONS = ("nd1", "x1"), ("eastus", "northeurope", "westeurope")
Quote = tuple[str, str, str]
"""What a price is for: a size, a region and a purchase model."""


@pytest.fixture
def catalog(engine: Engine) -> Iterator[Session]:
    """A session of a catalog with the sizes and regions, and no price."""
    cited = {"title": "t", "publisher": "p", "kind": "third_party", "sha256": "0"}
    about = {"provider": "azure", "verified": True, "disputed": False, "disputed_fields": "", "search_text": ""}
    with write_session(engine, commit=False) as session:
        session.execute(insert(table_of(Source)), [{"id": "s", **cited}])
        session.execute(insert(table_of(Region)), [{"code": one, "name": one, "source_id": "s"} for one in REGIONS])
        session.execute(insert(table_of(Size)), [{"key": key, "name": key, **about} for key in SIZES])
        yield session


changes = st.one_of(
    st.fixed_dictionaries({"discount_basis_points": st.sampled_from([1_000, 5_000, 9_900, 10_000, -2_000])}),
    st.fixed_dictionaries({"nano_usd_per_hour": st.integers(1, 9)}),
)
rules = st.builds(
    lambda change, **more: AdjustmentRule(name="a", **more, **change),
    changes,
    size=st.sampled_from([None, None, "nd*"]),
    region=st.sampled_from([None, None, *REGIONS]),
    os=st.sampled_from([None, "linux", "windows"]),
    purchase=st.sampled_from([None, "on_demand", "spot"]),
    valid_from=st.sampled_from([None, TODAY - timedelta(days=1), TODAY + timedelta(days=1)]),
)
prices = st.dictionaries(
    st.tuples(st.sampled_from(SIZES), st.sampled_from(REGIONS), st.sampled_from(["on_demand", "spot"])),
    st.one_of(st.integers(1, 30), st.integers(1_000, 1_010)),
)
searches = st.builds(
    SizeSearch,
    as_of=st.just(TODAY),
    purchase=st.sampled_from(["on_demand", "spot"]),
    region=st.sampled_from([(), (), ("eastus", "westeurope")]),
)


@pytest.mark.takes_seconds
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=25,
    deadline=None,
)
@given(quotes=prices, adjusting=st.lists(rules, max_size=4), search=searches)
def test_a_size_is_priced_in_the_region_where_it_was_cheapest(
    catalog: Session, quotes: dict[Quote, int], adjusting: list[AdjustmentRule], search: SizeSearch
) -> None:
    with catalog.begin_nested() as nested:
        add_prices(catalog, quotes)
        by_rules = tuple(adjusting)
        expected = cheapest_of_all(catalog, by_rules, search)

        def regions(sql: Dialect) -> str:
            scope = PriceScope.of_key(sql, PriceScopeKey.of(search, by_rules))
            return f"select {scope.key} as size, {scope.offer}.priced_in from {scope.source} where {scope.has_offer}"

        found = select_rows(catalog, regions, **price_parameters(search, TODAY))
        assert {key: region for key, region in found if region is not None} == expected
        nested.rollback()


def add_prices(session: Session, quotes: dict[Quote, int]) -> None:
    days = dict.fromkeys(("valid_from", "seen_until", "known_from"), TODAY - timedelta(days=9))
    rows = [
        {"size_key": key, "region": region, "os": "linux", "purchase": purchase, "nano_usd_per_hour": nano}
        | days
        | {"source_id": "s", "approximate_date": False}
        for (key, region, purchase), nano in quotes.items()
    ]
    if rows:
        session.execute(insert(PRICE), rows)


def cheapest_of_all(session: Session, by_rules: tuple[AdjustmentRule, ...], search: SizeSearch) -> dict[str, str]:
    """Compare all prices in force: the cheapest by the purchase model, else on demand, else the first with any."""

    def in_force(sql: Dialect) -> str:
        return prices_in_force(sql, sql.day("today"), None, sql.day("spot_since"), rules=by_rules)

    days = {"today": TODAY.isoformat(), "spot_since": earliest_spot_day(TODAY).isoformat()}
    best: dict[str, tuple[tuple[int, object, str], str]] = {}
    for size_key, region, _, purchase, usd_per_hour, *_ in select_rows(session, in_force, **days):
        if not search.region or region in search.region:
            choice = 0 if purchase == search.purchase else 1 if purchase == "on_demand" else 2
            rank = (choice, usd_per_hour if choice < 2 else 0, region)
            best[size_key] = min(best.get(size_key, (rank, region)), (rank, region))
    return {key: region for key, (_, region) in best.items()}


def test_list_prices_that_differ_by_more_than_the_tie_are_not_rounded_to_one() -> None:
    discount = AdjustmentRule(name="a", discount_basis_points=9_900)
    markup = AdjustmentRule(name="b", discount_basis_points=-2_000)
    assert UnevenRules.of((discount, markup), "linux", "spot").tie_nano_usd == 100
    assert UnevenRules.of((), "linux", "spot") == UnevenRules(regions=(), levelling=(), tie_nano_usd=1)
