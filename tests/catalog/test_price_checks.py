"""Prices of retail lists that are those of something else: each rule, at its bounds, on made-up sizes."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.price_checks import ListedPrice, check_prices, find_unusual

pytestmark = pytest.mark.one_database

NANO = 10**9
WINDOWS_PER_VCPU = 46_000_000


def listed(
    usd: float | str,
    *,
    size: str = "x4",
    region: str = "eastus",
    os: str = "linux",
    purchase: str = "on_demand",
    day: int = 1,
    until: int | None = None,
    source: str = "a",
) -> ListedPrice:
    first = date(2026, 1, 1)
    days = first + timedelta(days=day), first + timedelta(days=until or day)
    nano = round(Fraction(str(usd)) * NANO)
    return ListedPrice(size, region, os, purchase, days[0], source, first, days[1], nano)


def refused(
    prices: Iterable[ListedPrice], *, parents: Mapping[str, str] | None = None, series: Mapping[str, str] | None = None
) -> dict[ListedPrice, str]:
    found = check_prices(prices, parents=parents or {}, series=series or {})
    return {refusal.price: refusal.rule for refusal in found}


def test_a_linux_price_that_is_the_windows_price_of_another_list_and_day_is_refused() -> None:
    wrong, right = listed(1.56, day=9), listed(0.824, day=1)
    windows = listed(1.56, os="windows", source="b", day=40)
    elsewhere = listed(1.56, region="westus")
    assert refused([wrong, right, windows, elsewhere]) == {wrong: "equals_windows"}


@pytest.mark.parametrize("purchase", ["reserved_1y", "savings_3y", "spot"])
def test_reservations_cost_the_same_with_windows(purchase: str) -> None:
    linux, windows = listed(0.4, purchase=purchase), listed(0.4, purchase=purchase, os="windows")
    assert refused([linux, windows]) == {}


CLOUD_SERVICES = dict.fromkeys(("x2", "x4", "x8", "x16", "x4_2"), "x")


def test_a_step_by_what_windows_costs_elsewhere_is_a_step_between_meters() -> None:
    linux, windows = listed(0.2, region="westus"), listed(0.384, region="westus", os="windows")
    right, wrong = listed(0.3, day=1), listed(0.484, day=5)
    assert refused([linux, windows, right, wrong], series=CLOUD_SERVICES) == {wrong: "cloud_services"}
    assert refused([linux, windows, right, wrong]) == {}, "the series has no such meters"
    dearer = listed(0.5, day=5)
    assert refused([linux, windows, right, dearer], series=CLOUD_SERVICES) == {}, "a price may rise"


def test_a_list_that_goes_back_and_forth_has_two_meters_though_no_windows_price_is_known() -> None:
    series = [listed(usd, day=day) for day, usd in enumerate((0.3, 0.346, 0.3, 0.346))]
    assert refused(series, series=CLOUD_SERVICES) == dict.fromkeys((series[1], series[3]), "cloud_services")
    elsewhere = [listed(0.5, region="westus", day=1), listed(0.546, region="westus", day=2)]
    found = refused([*series, *elsewhere], series=CLOUD_SERVICES)
    assert elsewhere[1] in found, "the step is known from another region"


def test_lists_round_what_windows_costs() -> None:
    known = [listed(0.2, region="westus"), listed(0.292, region="westus", os="windows")]
    right, rounded, other = listed(0.15), listed(0.243, day=5), listed(0.25, day=9)
    assert refused([*known, right, rounded, other], series=CLOUD_SERVICES) == {rounded: "cloud_services"}


def test_sizes_of_a_series_tell_a_price_that_was_never_right() -> None:
    vcpus = {"x2": 2, "x4": 4, "x8": 8, "x16": 16}
    at = {"eastus": 0.05, "westus": 0.06, "northeurope": 0.055}
    prices = [
        listed(round(factor * count, 4), size=size, region=region)
        for size, count in vcpus.items()
        for region, factor in at.items()
        if (size, region) != ("x8", "westus")
    ]
    windows = listed(0.05 * 8 + 8 * 0.046, size="x8", os="windows")
    wrong = listed(0.06 * 8 + 8 * 0.046, size="x8", region="westus")
    assert refused([*prices, windows, wrong], series=CLOUD_SERVICES) == {wrong: "cloud_services"}
    right = listed(0.06 * 8, size="x8", region="westus")
    assert refused([*prices, windows, right], series=CLOUD_SERVICES) == {}
    few = [price for price in prices if price.size_key in ("x2", "x8") or price.region != "westus"]
    assert refused([*few, windows, wrong], series=CLOUD_SERVICES) == {}, "two sizes say little"


def test_a_list_that_goes_there_and_back_by_a_quarter_loses_to_another() -> None:
    there_and_back = [listed(usd, day=day) for day, usd in enumerate((1, 1.25, 1))]
    other = listed(1, source="b", day=9)
    assert refused([*there_and_back, other]) == {there_and_back[1]: "flapping"}
    third = listed(1.1, source="b", day=9)
    assert refused([*there_and_back, third]) == dict.fromkeys(there_and_back, "flapping")
    assert refused(there_and_back) == {}, "no other list says what is right"
    less = [listed(usd, day=day) for day, usd in enumerate((1, 1.24, 1))]
    assert refused([*less, other]) == {}


def test_a_constrained_size_costs_what_its_parent_costs_in_the_same_list() -> None:
    parents = {"x4_2": "x4"}
    parent, right = listed(0.5, until=9), listed(0.5, size="x4_2", day=2)
    wrong = listed(0.7, size="x4_2", day=5)
    assert refused([parent, right, wrong], parents=parents) == {wrong: "unlike_parent"}


def test_the_parent_is_judged_first() -> None:
    parents = {"x4_2": "x4"}
    parent = [listed(1.56, day=9), listed(1.56, os="windows", day=40)]
    child = listed(0.824, size="x4_2", day=9)
    assert refused([*parent, child], parents=parents) == {parent[0]: "equals_windows"}
    known = listed(0.8, day=1)
    assert refused([*parent, known, child], parents=parents)[child] == "unlike_parent", "no list has the two equal"
    same = listed(0.824, day=1)
    assert refused([*parent, same, child], parents=parents) == {parent[0]: "equals_windows"}


def test_machines_share_their_windows_price() -> None:
    child, windows = listed(1.56, size="x4_2"), listed(1.56, os="windows")
    assert refused([child, windows], parents={"x4_2": "x4"}) == {child: "equals_windows"}


def test_reservations_of_a_constrained_size_are_compared_within_their_list() -> None:
    parents, about = {"x4_2": "x4"}, {"purchase": "reserved_1y"}
    parent, wrong = listed(3, **about), listed(1, size="x4_2", **about)  # type: ignore[arg-type]
    assert refused([parent, wrong], parents=parents) == {wrong: "unlike_parent"}
    other_list = listed(1, size="x4_2", source="b", **about)  # type: ignore[arg-type]
    assert refused([parent, other_list], parents=parents) == {}
    rounded = listed("3.0004", size="x4_2", **about)  # type: ignore[arg-type]
    assert refused([parent, rounded], parents=parents) == {}
    on_demand = [listed(3), listed("3.0004", size="x4_2")]
    assert refused(on_demand, parents=parents) == {on_demand[1]: "unlike_parent"}


def test_evidence_names_the_price_and_the_list_that_it_was_compared_with() -> None:
    windows = listed(1.56, os="windows", source="other", day=40)
    (refusal,) = check_prices([listed(1.56), windows], parents={}, series={})
    assert refusal.evidence == "equals the Windows price in other, 2026-02-10"


def test_evidence_does_not_depend_on_the_order_of_prices() -> None:
    windows = [listed(1.56, os="windows", source=source, day=day) for day in (40, 20, 30) for source in ("b", "a")]
    returning = [listed(usd, region="westus", day=day) for day, usd in enumerate((0.2, 0.384, 0.2, 0.384, 0.2))]
    prices = [listed(1.56), *windows, *returning]
    expected = check_prices(prices, parents={}, series=CLOUD_SERVICES)
    assert expected[0].evidence == "equals the Windows price in a, 2026-01-21"
    assert len(expected) > 1
    for several in (prices[::-1], prices[5:] + prices[:5]):
        assert check_prices(several, parents={}, series=CLOUD_SERVICES) == expected


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_unusual_is_what_is_far_from_the_median_of_five_regions(amounts: list[int]) -> None:
    nano_usd = {f"region{number}": amount for number, amount in enumerate(amounts)}
    ordered = sorted(amounts)
    middle = Fraction(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2], 2)
    expected = {
        region: int(middle + Fraction(1, 2))
        for region, nano in nano_usd.items()
        if len(amounts) >= 5 and (nano < Fraction(2, 5) * middle or nano > Fraction(5, 2) * middle)
    }
    assert find_unusual(nano_usd) == expected
