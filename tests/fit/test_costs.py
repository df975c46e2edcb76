"""The arithmetic of costs: exact, rounded once, unknown where a part is."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.costs import (
    DiskModel,
    DiskRequest,
    disk_usd_per_month,
    most_performance,
    per_unit,
    round_usd,
    smallest_disk,
    total,
    usd_per_gib_month,
)

UNSET: dict[str, Any] = dict.fromkeys(DiskModel.__dataclass_fields__)


def disk(id_: str, gib: int, **more: Any) -> DiskModel:
    return DiskModel(**UNSET | {"id": id_, "type": "premium_ssd", "size": id_, "max_gib": gib} | more)


SIZES = [disk("p20", 512, max_iops=2300), disk("p30", 1024, max_iops=5000), disk("p40", 2048, max_iops=7500)]
ANY_SIZE = disk(
    "v2", 65536, size=None, min_gib=1, max_iops=80_000, max_mbps=2000,
    included_iops=3000, included_mbps=125, iops_per_gib=500, mbps_per_iops=0.25,
)  # fmt: skip
RATES = {"gib_hour": Decimal("0.00013"), "iops_hour": Decimal("0.000008"), "mbps_hour": Decimal("0.000065")}


@pytest.mark.parametrize(
    ("gib", "iops", "chosen"),
    [(1, None, "p20"), (512, None, "p20"), (513, None, "p30"), (100, 6000, "p40"), (4096, None, None)],
)
def test_the_smallest_disk_that_has_what_is_wanted_is_chosen(gib: int, iops: int | None, chosen: str | None) -> None:
    found = smallest_disk(SIZES, DiskRequest(gib=gib, iops=iops))
    assert (found.disk.id if found else None) == chosen


def test_a_disk_of_a_size_is_paid_whole() -> None:
    found = smallest_disk(SIZES, DiskRequest(gib=600))
    assert found is not None
    assert (found.gib, found.iops) == (1024, 5000)
    assert disk_usd_per_month(found, {"month": Decimal("148.68")}) == Fraction("148.68")
    assert disk_usd_per_month(found, {}) is None


def test_an_unknown_limit_meets_no_bound() -> None:
    assert smallest_disk([disk("p", 512)], DiskRequest(gib=1, iops=1)) is None


def test_a_disk_of_any_size_costs_its_capacity_and_what_is_not_included() -> None:
    plain, fast = DiskRequest(gib=1024), DiskRequest(gib=1024, iops=5000, mbps=200)
    costs = [
        disk_usd_per_month(found, RATES) for found in (smallest_disk([ANY_SIZE], one) for one in (plain, fast)) if found
    ]
    assert costs == [Fraction("97.1776"), Fraction("97.1776") + Fraction("11.68") + Fraction("3.55875")]


def test_a_rate_that_is_not_needed_may_be_unknown() -> None:
    capacity = {"gib_hour": RATES["gib_hour"]}
    plain = smallest_disk([ANY_SIZE], DiskRequest(gib=10))
    fast = smallest_disk([ANY_SIZE], DiskRequest(gib=10, iops=4000))
    assert plain is not None
    assert fast is not None
    assert disk_usd_per_month(plain, capacity) == Fraction("0.949")
    assert disk_usd_per_month(fast, capacity) is None


def test_performance_grows_with_capacity_and_iops() -> None:
    asked = [(1, None), (8, None), (8, 4000), (160, 80_000)]
    found = [smallest_disk([ANY_SIZE], DiskRequest(gib=gib, iops=iops)) for gib, iops in asked]
    assert [most_performance(one) for one in found if one] == [(3000, 750), (4000, 750), (4000, 1000), (80_000, 2000)]


def test_a_gib_of_a_full_disk_compares_types() -> None:
    assert round_usd(usd_per_gib_month(SIZES[1], {"month": Decimal("148.68")})) == Decimal("0.145195313")
    assert usd_per_gib_month(ANY_SIZE, RATES) == Fraction("0.0949")
    assert usd_per_gib_month(SIZES[1], {}) is None


def test_what_is_rounded_is_rounded_half_away_from_zero() -> None:
    assert round_usd(Fraction(1, 2 * 10**9)) == Decimal("1E-9")
    assert round_usd(Fraction(1, 3)) == Decimal("0.333333333")
    assert round_usd(None) is None


def test_none_of_a_resource_has_no_price_a_unit() -> None:
    assert per_unit(Fraction(3), Fraction(1, 6)) == 18
    assert [per_unit(Fraction(3), 0), per_unit(Fraction(3), None), per_unit(None, 3)] == [None, None, None]


def test_a_total_with_an_unknown_part_is_unknown() -> None:
    assert total([]) == 0
    assert total([Fraction(1, 3), Fraction(2, 3)]) == 1
    assert total([Fraction(1), None]) is None


@given(st.lists(st.integers(1, 40_000), min_size=1, unique=True), st.integers(1, 40_000))
def test_no_smaller_disk_holds_what_was_wanted(capacities: list[int], gib: int) -> None:
    found = smallest_disk([disk(f"d{each}", each) for each in capacities], DiskRequest(gib=gib))
    holding = [each for each in capacities if each >= gib]
    assert (found.gib if found else None) == min(holding, default=None)
