from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import log2
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.costs import to_exact
from app.fit.similarity import (
    DISTANCE_TERMS,
    MAX_DOUBLINGS,
    UNKNOWN_DISTANCE,
    SizeTraits,
    difference,
    difference_percent,
    measure_distance,
    total_of_gpus,
    usd_per_unit,
)

A100 = SizeTraits(
    name="Standard_X1",
    status="current",
    verified=True,
    series="x",
    gpu_id="a100-80",
    gpu_model="A100 80GB",
    gpu_family="A100",
    gpu_vendor="NVIDIA",
    gpus=Fraction(1),
    gpu_memory_gib=80.0,
    arch="x64",
    vcpus=24,
    memory_gib=220.0,
    cpu_vendor="AMD",
    cpu_model="AMD EPYC 7V13 (Milan)",
    local_disk_gib=0.0,
    uncached_disk_iops=30_000,
    network_mbps=20_000,
    region="eastus",
    usd_per_hour=Decimal("3.673"),
)


def distances(size: SizeTraits, other: SizeTraits) -> dict[str, float]:
    return {term.term.name: term.distance for term in measure_distance(size, other).terms}


def test_a_size_is_no_distance_from_itself() -> None:
    same = measure_distance(A100, A100)
    assert same.distance == 0
    assert (same.cheaper, same.bigger) == (False, False)


@pytest.mark.parametrize(
    ("change", "term", "distance"),
    [
        ({"arch": "arm64"}, "arch", 1.0),
        ({"arch": None}, "arch", UNKNOWN_DISTANCE),
        ({"vcpus": 48}, "vcpus", 1 / 3),
        ({"vcpus": 12}, "vcpus", 1 / 3),
        ({"vcpus": 192}, "vcpus", 1.0),
        ({"vcpus": 2400}, "vcpus", 1.0),
        ({"vcpus": 0}, "vcpus", 1.0),
        ({"memory_gib": 440.0}, "memory_gib", 1 / 3),
        ({"cpu_model": "AMD EPYC 9V84 (Genoa)"}, "cpu_model", 1 / 3),
        ({"cpu_vendor": "Intel"}, "cpu_vendor", 1.0),
        ({"local_disk_gib": 75.0}, "local_disk_gib", 1.0),
        ({"uncached_disk_iops": 60_000}, "uncached_disk_iops", 1 / 3),
        ({"network_mbps": None}, "network_mbps", UNKNOWN_DISTANCE),
        ({"gpu_memory_gib": 320.0}, "gpu_memory_gib", 2 / 3),
        ({"gpus": Fraction(1, 2)}, "gpu_count", 1 / 3),
        ({"usd_per_hour": Decimal("7.346")}, "usd_per_hour", 1 / 3),
        ({"usd_per_hour": None}, "usd_per_hour", UNKNOWN_DISTANCE),
        ({"gpu_id": "a100-40"}, "gpu_class", 1 / 3),
        ({"gpu_id": "h100", "gpu_family": "H100"}, "gpu_class", 2 / 3),
        ({"gpu_id": "mi300x", "gpu_family": "MI300", "gpu_vendor": "AMD"}, "gpu_class", 1.0),
        ({"gpu_id": None, "gpu_family": None, "gpu_vendor": None}, "gpu_class", UNKNOWN_DISTANCE),
    ],
)
def test_one_change_moves_one_term(change: dict[str, Any], term: str, distance: float) -> None:
    moved = {name: value for name, value in distances(A100, replace(A100, **change)).items() if value}
    assert moved == {term: pytest.approx(distance)}


def test_an_attribute_unknown_of_the_size_is_no_term() -> None:
    told = measure_distance(replace(A100, usd_per_hour=None, gpu_id=None), A100)
    left_out = {"gpu_class", "usd_per_hour"}
    assert [term.term.name for term in told.terms] == [t.name for t in DISTANCE_TERMS if t.name not in left_out]
    assert told.distance == 0
    assert told.cheaper is None


def test_an_unknown_value_has_no_difference() -> None:
    (price,) = (
        t for t in measure_distance(A100, replace(A100, usd_per_hour=None)).terms if t.term.name == "usd_per_hour"
    )
    assert (price.value, price.difference, price.difference_percent) == (None, None, None)
    assert "unknown" in price.detail


@pytest.mark.parametrize(
    ("change", "bigger"),
    [
        ({"gpu_memory_gib": 160.0}, True),
        ({"gpu_memory_gib": 160.0, "vcpus": 23}, False),
        ({"vcpus": 23, "memory_gib": None}, False),
        ({"gpu_memory_gib": 160.0, "memory_gib": None}, None),
        ({"gpus": Fraction(8)}, False),
    ],
)
def test_bigger_is_at_least_as_much_of_everything_and_more_of_something(
    change: dict[str, Any], bigger: bool | None
) -> None:
    assert measure_distance(A100, replace(A100, **change)).bigger is bigger


numbers = (
    st.integers(-(10**6), 10**6)
    | st.floats(1e-6, 1e6)
    | st.decimals(-(10**6), 10**6, places=9)
    | st.fractions(0, 64, max_denominator=48)
)


@given(numbers, numbers)
def test_differences_are_exact_and_rounded_once(baseline: Any, value: Any) -> None:
    exact, exact_baseline = to_exact(value), to_exact(baseline)
    assert difference(baseline, value) == float(exact - exact_baseline)
    percent = float(round(100 * (exact / exact_baseline - 1), 2)) if baseline else None
    assert difference_percent(baseline, value) == percent


@pytest.mark.parametrize(
    ("value", "percent"), [("1.00005", 0.0), ("1.00015", 0.02), ("0.99995", 0.0), ("0.99985", -0.02)]
)
def test_a_percentage_between_two_is_the_even_one(value: str, percent: float) -> None:
    assert difference_percent(1, Decimal(value)) == percent


amounts = st.none() | st.floats(min_value=0, max_value=1e6, allow_nan=False)
some_traits = st.builds(
    replace,
    st.just(A100),
    gpu_id=st.sampled_from(["a100-80", "h100", None]),
    gpu_memory_gib=amounts,
    arch=st.sampled_from(["x64", "arm64", None]),
    memory_gib=amounts,
    vcpus=st.none() | st.integers(0, 1000),
    gpus=st.none() | st.fractions(0, 16, max_denominator=8),
    usd_per_hour=st.none() | st.decimals(0, 1000, places=4),
)


@given(some_traits, some_traits)
def test_every_distance_is_a_share_and_the_sum_of_its_terms(size: SizeTraits, other: SizeTraits) -> None:
    told = measure_distance(size, other)
    assert 0 <= told.distance <= 1 + 1e-9
    assert all(0 <= term.distance <= 1 for term in told.terms)
    weights = sum(term.term.weight for term in told.terms)
    assert told.distance * weights == pytest.approx(sum(t.term.weight * t.distance for t in told.terms))


@given(st.floats(1e-3, 1e6), st.floats(1, 100))
def test_a_multiple_is_as_far_as_its_reciprocal(gib: float, times: float) -> None:
    size, less, more = (replace(A100, memory_gib=amount) for amount in (gib, gib / times, gib * times))
    assert distances(size, less)["memory_gib"] == pytest.approx(distances(size, more)["memory_gib"])
    assert distances(size, more)["memory_gib"] == pytest.approx(min(1.0, log2(times) / MAX_DOUBLINGS))


def test_terms_are_named_once() -> None:
    assert len({term.name for term in DISTANCE_TERMS}) == len(DISTANCE_TERMS)


@pytest.mark.parametrize(
    ("baseline", "value", "by", "percent"),
    [
        (80.0, 94.0, 14.0, 17.5),
        (0.1, 0.3, 0.2, 200.0),
        (Decimal("3.673"), Decimal("7.346"), 3.673, 100.0),
        (Fraction(1, 6), Fraction(1), 5 / 6, 500.0),
        (0, 5, 5.0, None),
        (5, 0, -5.0, -100.0),
        (None, 5, None, None),
        (5, None, None, None),
        (3, 3, 0.0, 0.0),
    ],
)
def test_differences_are_exact_and_unknown_gives_none(baseline: Any, value: Any, by: Any, percent: Any) -> None:
    assert difference(baseline, value) == by
    assert difference_percent(baseline, value) == percent


def test_a_part_of_a_gpu_does_its_part_and_nothing_is_divided_by_nothing() -> None:
    assert total_of_gpus(Fraction(1, 6), 600.0) == 100.0
    assert total_of_gpus(None, 600.0) is None
    assert total_of_gpus(Fraction(1), None) is None
    assert usd_per_unit(Decimal("3.673"), 2) == 1.8365
    assert usd_per_unit(Decimal("3.673"), 0) is None
    assert usd_per_unit(None, 2) is None
