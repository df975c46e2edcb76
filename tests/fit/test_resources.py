from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.verdict import Option, Rejection, ResourceNeeds, Vm, evaluate_vm, explain_option


def vm(name: str = "a", **facts: Any) -> Vm:
    """An ordinary VM with two whole GPUs of 80 GiB; a test names only what it is about."""
    ordinary: dict[str, Any] = {
        "status": "current",
        "verified": True,
        "gpus": Fraction(2),
        "gpu_memory_gib": 160.0,
        "gpu_memory_gib_on_one_gpu": 80.0,
        "vcpus": 48,
        "memory_gib": 440.0,
        "region": "westeurope",
        "usd_per_hour": {"on_demand": Decimal("7.346"), "spot": None},
    }
    return Vm(name=name, **ordinary | facts)


def needs(*, traits: dict[str, bool | str] | None = None, max_nodes: int = 1, **more: Any) -> ResourceNeeds:
    amounts = {name: value for name, value in more.items() if name.startswith("min_")}
    bounds = {name: value for name, value in more.items() if not name.startswith("min_")}
    statuses = frozenset({"preview", "current", "retiring"})
    fixed: dict[str, Any] = {"statuses": statuses, "today": date(2026, 9, 1)}
    return ResourceNeeds(amounts=amounts, traits=traits or {}, max_nodes=max_nodes, **fixed | bounds)


def fits(candidate: Vm, required: ResourceNeeds) -> Option:
    verdict = evaluate_vm(candidate, required)
    assert isinstance(verdict, Option), verdict
    return verdict


def fails(candidate: Vm, required: ResourceNeeds) -> Rejection:
    verdict = evaluate_vm(candidate, required)
    assert isinstance(verdict, Rejection), verdict
    return verdict


def codes(rejection: Rejection) -> set[str]:
    return {failure.code for failure in rejection.failures}


def test_nodes_are_the_fewest_that_meet_every_pooled_need() -> None:
    assert fits(vm(), needs(min_gpu_mem=320, min_vcpus=100, max_nodes=4)).nodes == 3


def test_without_more_nodes_the_shortfall_is_reported() -> None:
    (failure,) = fails(vm(), needs(min_gpu_mem=320)).failures
    assert (failure.code, failure.required, failure.available, failure.shortfall) == ("GPU_MEMORY_TOTAL", 320, 160, 160)


@pytest.mark.parametrize(
    ("required", "code"),
    [({"min_gpu_mem_per_gpu": 94}, "GPU_MEMORY_PER_GPU"), ({"min_network_gbps": 100}, "NETWORK")],
)
def test_what_one_gpu_or_one_node_must_have_is_never_met_by_more_nodes(required: dict[str, Any], code: str) -> None:
    assert codes(fails(vm(network_gbps=40.0), needs(max_nodes=100, **required))) == {code}


def test_parts_of_a_gpu_never_pool() -> None:
    sixth = vm(gpus=Fraction(1, 6), gpu_memory_gib=4.0, gpu_memory_gib_on_one_gpu=4.0)
    assert codes(fails(sixth, needs(min_gpu_mem=24, max_nodes=6))) == {"FRACTIONAL_GPU"}
    assert codes(fails(sixth, needs(min_gpus=1, max_nodes=6))) == {"FRACTIONAL_GPU"}
    assert fits(sixth, needs(min_vcpus=96, max_nodes=6)).nodes == 2


def test_a_size_without_a_gpu_has_no_part_of_one() -> None:
    none = vm(gpus=Fraction(0), gpu_memory_gib=0.0, gpu_memory_gib_on_one_gpu=None)
    assert codes(fails(none, needs(min_gpu_mem=24, max_nodes=6))) == {"GPU_MEMORY_TOTAL"}
    (failure,) = fails(none, needs(min_gpus=8, max_nodes=6)).failures
    assert (failure.code, failure.detail) == ("GPU_COUNT", "needs 8 GPUs, 6 nodes have 0")


def test_exactly_enough_is_enough_even_for_thirds() -> None:
    third = vm(gpus=Fraction(1, 3), gpu_memory_gib=8.0)
    assert fits(third, needs(min_gpus=1 / 3)).nodes == 1


def test_an_unknown_amount_meets_no_need_and_is_reported_as_unknown() -> None:
    (failure,) = fails(vm(memory_gib=None), needs(min_memory=1)).failures
    assert (failure.code, failure.available, failure.shortfall) == ("RAM", None, None)
    assert "no source says" in failure.detail


@pytest.mark.parametrize(
    ("facts", "required", "code"),
    [
        ({"status": "retired"}, {}, "RETIRED"),
        ({"status": "withdrawn"}, {}, "WITHDRAWN"),
        ({"region": None}, {"regions": ("eastus",)}, "NOT_IN_REGION"),
        ({"in_every_region": False}, {}, "NOT_IN_REGION"),
        ({"traits": {"infiniband": None}}, {"traits": {"infiniband": True}}, "NO_INFINIBAND"),
        ({"traits": {"nvlink": False}}, {"traits": {"nvlink": True}}, "NO_NVLINK"),
        ({"traits": {"arch": "arm64"}}, {"traits": {"arch": "x64"}}, "ARCH"),
        ({"traits": {"ultra_disk": False}}, {"traits": {"ultra_disk": True}}, "FEATURE"),
        ({}, {"budget_usd_per_month": Decimal(5000)}, "BUDGET"),
        ({"usd_per_hour": {"on_demand": None}}, {"budget_usd_per_month": Decimal(5000)}, "NO_PRICE"),
        ({"local_disk_gib": 10.0}, {"min_local_disk": 11}, "LOCAL_DISK"),
        ({"infiniband_gbps": 100.0}, {"min_infiniband_gbps": 200}, "INFINIBAND"),
    ],
)
def test_each_reason_has_its_code(facts: dict[str, Any], required: dict[str, Any], code: str) -> None:
    assert codes(fails(vm(**facts), needs(**required))) == {code}


def test_every_failure_is_reported_the_largest_shortfall_first() -> None:
    failures = fails(vm(), needs(min_vcpus=50, min_memory=4400, min_gpu_mem=200)).failures
    assert [failure.code for failure in failures] == ["RAM", "GPU_MEMORY_TOTAL", "VCPU"]


def test_cost_is_nodes_times_price_for_hour_month_and_job() -> None:
    cost = fits(vm(), needs(min_gpu_mem=320, max_nodes=2, hours=Decimal(10))).costs["on_demand"]
    assert cost.usd_per_hour == Decimal("14.692")
    assert cost.usd_per_month == Decimal("10725.160")
    assert cost.usd_per_job == Decimal("146.920")


def test_a_price_of_long_ago_is_warned_of() -> None:
    old, new = {"on_demand": date(2024, 1, 1)}, {"on_demand": date(2026, 6, 18)}
    assert fits(vm(as_of=old), needs()).warnings == ("OLD_PRICE",)
    assert fits(vm(as_of=new), needs()).warnings == ()


def test_a_price_of_an_undated_source_is_warned_of() -> None:
    known: dict[str, Any] = {"as_of": {"on_demand": date(2026, 6, 18)}, "approximate_date": {"on_demand": True}}
    option = fits(vm(**known), needs())
    assert option.warnings == ("OLD_PRICE",)
    cost = option.costs["on_demand"]
    assert (cost.as_of, cost.price_age_days, cost.approximate_date) == (date(2026, 6, 18), 75, True)
    assert option.costs["spot"].price_age_days is None


def test_the_tightest_resource_limits() -> None:
    option = fits(vm(), needs(min_gpu_mem=80, min_vcpus=47))
    assert option.limiting is not None
    assert (option.limiting.resource, round(option.limiting.percent, 1)) == ("vcpus", 2.1)
    assert explain_option(option, needs()) == (
        "Fits on 1 VM: needs 47 of 48 vCPUs (2% to spare); "
        "7.346 USD an hour on-demand in westeurope, 5362.58 USD a month."
    )


def test_an_explanation_rounds_the_price_of_an_hour() -> None:
    option = fits(vm(usd_per_hour={"on_demand": Decimal("21.359992"), "spot": None}), needs())
    assert "; 21.36 USD an hour on-demand in westeurope, " in explain_option(option, needs())
    assert option.costs["on_demand"].usd_per_hour == Decimal("21.359992")


@given(st.floats(1, 1e6), st.integers(1, 64), st.floats(1, 1000))
def test_an_option_always_has_what_is_required(required: float, max_nodes: int, memory: float) -> None:
    verdict = evaluate_vm(vm(gpu_memory_gib=memory), needs(min_gpu_mem=required, max_nodes=max_nodes))
    if isinstance(verdict, Option):
        assert Fraction(memory) * verdict.nodes >= Fraction(required)
        assert verdict.nodes == 1 or Fraction(memory) * (verdict.nodes - 1) < Fraction(required)
    else:
        assert Fraction(memory) * max_nodes < Fraction(required)
