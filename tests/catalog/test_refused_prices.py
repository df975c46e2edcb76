"""Refused, unusual and disputed prices: what an ingest makes of them, and that it depends on no order."""

import json
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import Change, RefusedPrice
from app.catalog.queries.costs import CostSearch, find_cheapest_price
from app.catalog.queries.params import FitSearch, SizeSearch
from app.catalog.queries.prices import AllPricesSearch, PriceSearch, find_all_prices, find_prices
from app.catalog.queries.provenance import ConflictSearch, RefusedPriceSearch, find_conflicts, find_refused_prices
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import ask_catalog, load_catalog
from app.catalog.readings import AliasRow, PriceBlock, PriceList, PriceRow, Reading
from app.db.engines import read_session
from app.errors import BadQuery
from app.ingest.run import forget, ingest
from app.services.costs import compute_costs
from app.services.resource_fit import plan_resource_fit
from tests.catalog.test_price_totals import check_totals
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size, source

NAME = "Standard_X4"
REGIONS = ("eastus", "northeurope", "uksouth", "westeurope", "westus", "westus2")


def list_of(key: str, *rows: PriceRow, retail: bool = True, complete: bool = False) -> Reading:
    """Return a list of prices of one source; a complete one has a file for each day."""
    blocks = [PriceBlock.of(rows)]
    each = PriceList(
        file=f"{key} {rows[0].valid_from}.csv" if complete else f"{key}.csv",
        blocks=lambda: iter(blocks),
        sources=frozenset({key}),
        complete=complete,
        regions=frozenset(row.region for row in rows) if complete else None,
    )
    return Reading(citable=(source(key, kind="third_party", retail=retail),), prices=(each,))


def of(key: str, usd: str, **more: Any) -> PriceRow:
    return price(NAME, usd, source=key, **more)


def start(engine: Engine) -> None:
    """Ingest the regions, and a size without a price."""
    ingest(engine, reading(size(NAME, vcpus=4), regions=REGIONS), now=NOW)


def refused(engine: Engine, **search: Any) -> list[tuple[str, str, float]]:
    with read_session(engine) as session:
        found = find_refused_prices(load_catalog(session, TODAY), RefusedPriceSearch(**search))
    assert found.total == len(found.items)
    return [(item["source_id"], item["rule"], item["usd_per_hour"]) for item in found.items]


def prices(engine: Engine, **search: Any) -> list[dict[str, Any]]:
    with read_session(engine) as session:
        found = find_prices(load_catalog(session, TODAY), NAME, PriceSearch(**search))
        return list(found.items)


def amounts(engine: Engine, **search: Any) -> list[float]:
    return [item["usd_per_hour"] for item in prices(engine, **search)]


LINUX = (
    of("a", "0.824", valid_from=date(2026, 4, 2)),
    of("a", "1.56", valid_from=date(2026, 6, 18)),
)
WINDOWS = of("b", "1.56", os="windows", valid_from=date(2026, 8, 1))


@pytest.mark.takes_seconds
def test_the_windows_price_is_refused_and_the_newest_other_day_counts(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *LINUX), now=NOW)
    assert amounts(engine) == [1.56], "nothing speaks against it yet"
    outcome = ingest(engine, list_of("b", WINDOWS), now=NOW)
    assert outcome.summary.refused == {("a", "equals_windows"): 1}
    assert amounts(engine, os="linux") == [0.824]
    assert amounts(engine, os="linux", history=True) == [0.824]
    assert refused(engine) == [("a", "equals_windows", 1.56)]
    check_totals(engine, TODAY)


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_the_order_of_ingests_makes_no_difference_and_forgetting_the_evidence_brings_prices_back(
    engine: Engine, empty_engine: Engine
) -> None:
    start(engine)
    ingest(engine, list_of("a", *LINUX), now=NOW)
    before = ingest(engine, list_of("a", *LINUX), now=NOW).revision["digest"]
    with_windows = ingest(engine, list_of("b", WINDOWS), now=NOW).revision["digest"]
    assert forget(engine, "b", now=NOW).revision["digest"] == before
    assert amounts(engine) == [1.56]
    assert refused(engine) == []
    check_totals(engine, TODAY)
    forget(engine, "a", now=NOW)
    ingest(engine, list_of("b", WINDOWS), now=NOW)
    assert ingest(engine, list_of("a", *LINUX), now=NOW).revision["digest"] == with_windows


def test_an_ingest_of_the_same_lists_changes_nothing(engine: Engine) -> None:
    start(engine)
    for each in (list_of("a", *LINUX), list_of("b", WINDOWS)):
        ingest(engine, each, now=NOW)
    again = ingest(engine, list_of("a", *LINUX), now=NOW + timedelta(days=1))
    assert not again.new_revision
    assert again.summary.refused == {}


def test_a_list_of_ones_own_is_only_warned_about(engine: Engine) -> None:
    start(engine)
    outcome = ingest(
        engine, list_of("mine", of("mine", "1.56"), of("mine", "1.56", os="windows"), retail=False), now=NOW
    )
    assert outcome.summary.linux_at_windows_price == 1
    assert amounts(engine) == [1.56, 1.56]
    assert refused(engine) == []


@pytest.mark.first_database
def test_a_source_that_becomes_retail_is_checked(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *LINUX, retail=False), now=NOW)
    ingest(engine, list_of("b", WINDOWS), now=NOW)
    assert refused(engine) == []
    ingest(engine, reading(sources=(source("a", kind="third_party", retail=True),)), now=NOW)
    assert refused(engine) == [("a", "equals_windows", 1.56)]


def complete(engine: Engine, day: date, usd: str | None, **more: Any) -> None:
    """Ingest a complete list of a day, perhaps without the price, with that of another size."""
    rows = [price("x9", "9", source="a", valid_from=day)]
    rows += [of("a", usd, valid_from=day, **more)] if usd else []
    ingest(engine, list_of("a", *rows, complete=True), now=NOW)


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_list_whose_price_is_refused_does_not_lack_it(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("b", WINDOWS), now=NOW)
    for month, usd in enumerate(("0.824", "1.56", "1.56", "1.56"), 1):
        complete(engine, date(2026, month, 1), usd)
    assert [(item["usd_per_hour"], item["seen_until"]) for item in prices(engine, os="linux")] == [
        (0.824, "2026-01-01")
    ]
    check_totals(engine, TODAY)
    for month in (5, 6):
        complete(engine, date(2026, month, 1), None)
    assert amounts(engine, os="linux") == [0.824]
    complete(engine, date(2026, 7, 1), None)
    assert amounts(engine, os="linux") == [], "now three lists lack it"
    assert amounts(engine, os="linux", as_of=date(2026, 6, 30)) == [0.824]
    check_totals(engine, TODAY)


@pytest.mark.first_database
def test_a_constrained_size_without_another_price_has_none(engine: Engine) -> None:
    start(engine)
    ingest(engine, reading((*size(NAME, vcpus=4), *size("Standard_X4-2", vcpus=2, parent_size=NAME))), now=NOW)
    rows = [of("a", "0.5"), price("Standard_X4-2", "0.7", source="a")]
    outcome = ingest(engine, list_of("a", *rows), now=NOW)
    assert outcome.summary.refused == {("a", "unlike_parent"): 1}
    with read_session(engine) as session:
        page = ask_catalog(session, TODAY, lambda catalog: find_sizes(catalog, SizeSearch(name="X4-2")))
    assert '"usd_per_hour":null' in page.items[0]


@pytest.mark.first_database
def test_what_cloud_services_cost_is_refused_in_series_that_have_its_meters(engine: Engine) -> None:
    start(engine)
    ingest(engine, reading(size(NAME, vcpus=4, series="X")), now=NOW)
    rows = [of("a", usd, valid_from=date(2026, month, 1)) for month, usd in enumerate(("0.3", "0.346", "0.3"), 1)]
    ingest(engine, list_of("a", *rows), now=NOW)
    assert refused(engine) == []
    facts = (*size(NAME, vcpus=4, series="X"), *size("x", kind="series", cloud_services=True))
    outcome = ingest(engine, reading(facts), now=NOW)
    assert outcome.summary.refused == {("a", "cloud_services"): 1}
    assert amounts(engine, history=True) == [0.3, 0.3]


def test_a_refusal_makes_an_event_of_what_is_in_force(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *LINUX), now=NOW)
    ingest(engine, list_of("b", WINDOWS), now=NOW)
    with read_session(engine) as session:
        change = table_of(Change).c
        rows = session.execute(select(change.kind, change.old, change.new).where(change.os == "linux")).all()
    assert [tuple(row) for row in rows] == [("price_down", "1.56", "0.824")]


def test_an_unknown_source_is_refused_with_the_nearest(engine: Engine) -> None:
    start(engine)
    for listed in (list_of("first-list", of("first-list", "1.56")), list_of("b", WINDOWS)):
        ingest(engine, listed, now=NOW)
    assert refused(engine, source="first-list") == [("first-list", "equals_windows", 1.56)]
    assert refused(engine, source="b") == []
    with pytest.raises(BadQuery, match=r"source=first-lists: no such source; did you mean first-list\?"):
        refused(engine, source="first-lists")


def test_an_alias_takes_refused_prices_along(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", price("Standard_Y4", "1.56", source="a")), now=NOW)
    ingest(engine, list_of("b", price("Standard_Y4", "1.56", source="b", os="windows")), now=NOW)
    alias = AliasRow(alias="Standard_Y4", size=NAME, source="page", reason="r", file="aliases.csv", line=2)
    ingest(engine, reading(aliases=(alias,)), now=NOW)
    assert refused(engine, size="x4") == refused(engine) == [("a", "equals_windows", 1.56)]
    with read_session(engine) as session:
        assert session.execute(select(table_of(RefusedPrice).c.size_key)).scalars().all() == ["x4"]


@pytest.mark.takes_seconds
def test_reservations_are_in_force_until_they_are_sold_no_more(engine: Engine) -> None:
    start(engine)
    ingest(engine, reading(size(NAME, vcpus=4, series="X")), now=NOW)
    rows = [of("a", "0.2", purchase="reserved_1y"), of("a", "0.1", purchase="reserved_3y")]
    ingest(engine, list_of("a", *rows), now=NOW)
    assert amounts(engine) == [0.2, 0.1]
    facts = (*size(NAME, vcpus=4, series="X"), *size("x", kind="series", reserved_1y_until=date(2026, 6, 30)))
    ingest(engine, reading(facts), now=NOW)
    assert amounts(engine) == [0.1]
    assert amounts(engine, as_of=date(2026, 6, 30)) == [0.2, 0.1]
    assert amounts(engine, as_of=date(2026, 7, 1)) == [0.1]
    check_totals(engine, TODAY)
    later = of("c", "0.3", purchase="reserved_1y", valid_from=date(2026, 8, 1))
    ingest(engine, list_of("c", later), now=NOW)
    assert amounts(engine, purchase="reserved_1y") == [0.3], "a list says that it is sold"
    check_totals(engine, TODAY)


# Unusual and disputed


def by_region(key: str, usd: Sequence[str], **more: Any) -> list[PriceRow]:
    return [of(key, amount, region=region, **more) for region, amount in zip(REGIONS, usd, strict=False)]


def first_size(engine: Engine, **search: Any) -> tuple[Any, ...]:
    with read_session(engine) as session:
        item = json.loads(
            ask_catalog(session, TODAY, lambda catalog: find_sizes(catalog, SizeSearch(name="X4", **search))).items[0]
        )
    marks = ("region", "usd_per_hour", "price_unusual", "median_usd_per_hour", "price_disputed")
    return tuple(item[name] for name in marks)


@pytest.mark.first_database
@pytest.mark.parametrize("past", [False, True])
def test_an_unusual_price_is_never_the_cheapest_unless_its_region_is_asked_for(engine: Engine, past: bool) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["0.719", "6", "6.2", "5.7", "7.2", "7"])), now=NOW)
    asked = {"as_of": TODAY - timedelta(days=1)} if past else {}
    assert first_size(engine, **asked) == ("westeurope", 5.7, False, None, False)
    assert first_size(engine, region=("eastus",), **asked) == ("eastus", 0.719, True, 6.1, False)
    assert first_size(engine, region=("eastus", "westus"), **asked) == ("eastus", 0.719, True, 6.1, False)
    with read_session(engine) as session:
        cost = find_cheapest_price(load_catalog(session, TODAY), "x4", CostSearch(**asked))
    assert cost is not None
    assert cost.region == "westeurope"
    marks = {item["region"]: (item["unusual"], item["median_usd_per_hour"]) for item in prices(engine, **asked)}
    assert marks.pop("eastus") == (True, 6.1)
    assert set(marks.values()) == {(False, None)}


@pytest.mark.first_database
def test_four_regions_say_nothing_of_what_is_usual(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["0.719", "6", "6.2", "5.7"])), now=NOW)
    assert first_size(engine) == ("eastus", 0.719, False, None, False)


@pytest.mark.first_database
def test_a_price_of_ones_own_is_not_unusual(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["6", "6", "6.2", "5.7", "7.2", "7"])), now=NOW)
    mine = of("mine", "1", valid_from=date(2026, 7, 1))
    ingest(engine, list_of("mine", mine, retail=False), now=NOW)
    assert first_size(engine) == ("eastus", 1.0, False, None, False)


def test_a_price_that_is_in_force_no_more_is_compared_with_those_of_its_day(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["1", "6", "6.2", "5.7", "7.2", "7"])), now=NOW)
    ingest(
        engine, list_of("a2", *by_region("a2", ["3", "3", "3", "3", "3", "3"], valid_from=date(2026, 8, 1))), now=NOW
    )
    marks = [item["median_usd_per_hour"] for item in prices(engine, region=("eastus",), history=True)]
    assert marks == [6.1, None]
    assert first_size(engine, as_of=date(2026, 7, 1))[:2] == ("westeurope", 5.7)


def conflicts(engine: Engine, **search: Any) -> list[tuple[Any, ...]]:
    with read_session(engine) as session:
        found = find_conflicts(load_catalog(session, TODAY), ConflictSearch(**search))
    names = ("kind", "field", "region", "os", "purchase", "accepted_value", "accepted_source_id", "value", "source_id")
    return [tuple(item[name] for name in names) for item in found.items]


@pytest.mark.takes_seconds
def test_lists_that_differ_within_sixty_days_dispute_a_price(engine: Engine) -> None:
    start(engine)
    first, second = date(2026, 6, 18), date(2026, 8, 1)
    for order in permutations(("a", "b", "c")):
        rows = {
            "a": of("a", "1.117", valid_from=first),
            "b": of("b", "0.908", valid_from=second),
            "c": of("c", "0.7", valid_from=date(2026, 5, 1)),
        }
        for key in order:
            ingest(engine, list_of(key, rows[key]), now=NOW)
    disputed = ("price", "usd_per_hour", "eastus", "linux", "on_demand", "0.908", "b", "1.117", "a")
    assert conflicts(engine) == conflicts(engine, field="usd_per_hour", subject="x4") == [disputed]
    assert first_size(engine) == ("eastus", 0.908, False, None, True)
    assert [item["disputed"] for item in prices(engine, history=True)] == [False, True, True]
    ingest(engine, list_of("a", of("a", "0.908", valid_from=second)), now=NOW)
    assert conflicts(engine) == [], "a later list of the same source replaces the one before"


@pytest.mark.first_database
def test_a_list_of_ones_own_disputes_nothing(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", of("a", "1.117")), now=NOW)
    ingest(engine, list_of("mine", of("mine", "0.9"), retail=False), now=NOW)
    assert conflicts(engine) == []


def test_the_mark_of_a_price_is_in_every_list_of_prices(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["0.719", "6", "6.2", "5.7", "7.2", "7"])), now=NOW)
    with read_session(engine) as session:
        plan = find_all_prices(load_catalog(session, TODAY), AllPricesSearch(region=("eastus",)))
        (item,) = plan.items
    assert (item["unusual"], item["median_usd_per_hour"], item["disputed"]) == (True, 6.1, False)


@pytest.mark.first_database
def test_a_fit_and_a_cost_warn_of_a_price_that_is_unusual_or_disputed(engine: Engine) -> None:
    start(engine)
    ingest(engine, list_of("a", *by_region("a", ["0.719", "6", "6.2", "5.7", "7.2", "7"])), now=NOW)
    ingest(engine, list_of("b", of("b", "6.3", region="westus", valid_from=date(2026, 8, 1))), now=NOW)
    assert warnings_of(engine, "eastus") == ({"UNUSUAL_PRICE"}, {"UNUSUAL_PRICE"})
    assert warnings_of(engine, "westus") == ({"DISPUTED_PRICE"}, {"DISPUTED_PRICE"})
    assert warnings_of(engine, "uksouth") == (set(), set())


def warnings_of(engine: Engine, region: str) -> tuple[set[str], set[str]]:
    """Return the warnings about the price of the size in a region: of a fit, and of its cost."""
    price_warnings = {"UNUSUAL_PRICE", "DISPUTED_PRICE"}
    with read_session(engine) as session:
        option = plan_resource_fit(load_catalog(session, TODAY), FitSearch(min_vcpus=4, region=(region,))).items[0]
        search = CostSearch(region=(region,))
        cost = compute_costs(load_catalog(session, TODAY), NAME, search)
    return price_warnings.intersection(option.warnings), price_warnings.intersection(cost.warnings)


def test_conflicts_of_prices_follow_those_of_facts_from_page_to_page(engine: Engine) -> None:
    start(engine)
    facts = (*size(NAME, vcpus=4, max_nics=2), *size(NAME, by="prices", vcpus=8, max_nics=4))
    ingest(engine, reading(facts), now=NOW)
    for key, usd, day in (("a", "1", date(2026, 6, 18)), ("b", "2", date(2026, 8, 1))):
        ingest(engine, list_of(key, *by_region(key, [usd] * 3, valid_from=day)), now=NOW)
    whole = conflicts(engine)
    assert [kind for kind, *_ in whole] == ["size", "size", "price", "price", "price"]
    for limit in (1, 2, 3, 4, 5):
        walked, cursor = [], None
        while True:
            with read_session(engine) as session:
                page = find_conflicts(load_catalog(session, TODAY), ConflictSearch(limit=limit, cursor=cursor))
            assert page.total == len(whole)
            walked += [(item["kind"], item["field"], item["region"]) for item in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert walked == [(kind, field, region) for kind, field, region, *_ in whole], limit
