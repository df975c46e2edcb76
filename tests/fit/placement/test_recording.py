from collections.abc import Callable
from dataclasses import fields, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from app.fit.estimator.workload import InferenceWorkload, TrainingWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement import prepare as preparation
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.jobs import TrainingJob
from app.fit.placement.machine import KeptByGpus, Machine
from app.fit.placement.prepare import (
    Constraints,
    PlacementRequest,
    PreparedRequest,
    Pricing,
    kept_job,
    prepare,
    prepare_job,
)
from app.fit.verdict import Rejection
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    QWEN_235B,
    TODAY,
    facts_of,
    machine,
    prepare_request,
    prepare_service,
    service,
    serving,
    training,
    vm,
)

REQUESTS: dict[str, Callable[[], PreparedRequest]] = {
    "serving": lambda: prepare_request(serving(), max_nodes=4),
    "serving over NVLink": lambda: prepare_request(serving(concurrency=200), tp_in_nvlink=True, max_nodes=2),
    "serving on one VM": lambda: prepare_request(serving()),
    "experts on one VM": lambda: prepare_request(serving(dtype="fp8"), QWEN_235B),
    "experts": lambda: prepare_request(serving(dtype="fp8"), QWEN_235B, max_nodes=4, require_infiniband=True),
    "service": lambda: prepare_service(service(), LLAMA_8B),
    "service with experts": lambda: prepare_service(service(users=500, tpot_ms=15.0), QWEN_235B),
    "service whose prompts others read": lambda: prepare_service(service(disaggregated=True), LLAMA_8B),
    "training": lambda: prepare_request(training(recompute="full"), LLAMA_8B, max_nodes=16),
    "training whose optimizer is offloaded": lambda: prepare_request(
        training(recompute="full", offload="optimizer"), LLAMA_8B, max_nodes=4
    ),
}
FACTS: dict[str, list[Any]] = {
    "gpus": [Fraction(8), Fraction(4), Fraction(1), Fraction(1, 2), Fraction(0), None],
    "usable_bytes": [79.6 * GIB, 22 * GIB, None],
    "bandwidth": [3.35e12, 1e12, None],
    "peaks": [{"fp16": 989e12, "bf16": 989e12, "fp8": 1979e12}, {"fp16": 125e12}, {}],
    "capability": ["9.0", "8.0", "7.0", "5.2", None],
    "domain_gpus": [8, 1, 72],
    "domain_vms": [1, 18],
    "link_gb_per_s": [None, 64.0],
    "infiniband": [True, False, None],
    "network_gbps": [400.0, 12.5, None],
    "memory_bytes": [1900 * GIB, 220 * GIB, 110 * GIB, 10 * GIB, None],
    "disk_bytes": [28_000 * GIB, 100 * GIB, None],
    "described": [False, False, True],
    "of_series": [False, True],
    "usable_assumed": [False, True],
}


def random_machines(count: int) -> list[Machine]:
    """Return machines that differ in some facts at most from one with eight H100."""
    rng, machines = Random(1), [machine(gpus=Fraction(4), domain_gpus=72, domain_vms=vms) for vms in (18, 1)]
    machines += [machine(gpus=Fraction(gpus), infiniband=False) for gpus in (1, 4)]
    for _ in range(count - len(machines)):
        names = rng.sample(list(FACTS), rng.randint(0, 4))
        machines.append(machine(**{name: rng.choice(FACTS[name]) for name in names}))
    return machines


@pytest.mark.parametrize("request_name", REQUESTS)
def test_the_verdict_on_a_machine_does_not_depend_on_those_before(request_name: str) -> None:
    prepared = REQUESTS[request_name]()
    for one in random_machines(150):
        alone = replace(prepared, kept=KeptByGpus())
        assert facts_of(evaluate(vm(), one, prepared)) == facts_of(evaluate(vm(), one, alone)), one


def test_a_search_is_made_once_for_all_amounts_between_two_that_memory_is_compared_with() -> None:
    kept, searched = KeptByGpus(), list[float | None]()

    def find(what: str, **facts: Any) -> list[int]:
        found = machine(**facts)

        def search(compared: list[float]) -> list[int]:
            searched.append(found.memory_bytes)
            return [amount for amount in (10, 20) if found.holds(amount, compared)]

        return kept.find(found, what, search)

    for memory, expected in ((5, []), (15, [10]), (9, []), (10, [10]), (None, [10, 20]), (20, [10, 20]), (19, [10])):
        assert find("search", memory_bytes=memory) == expected
    assert searched == [5, 15, None]
    find("another", memory_bytes=5)
    find("search", memory_bytes=5, gpus=Fraction(4))
    find("search", memory_bytes=5, vcpus=4, disk_bytes=None)
    assert searched == [5, 15, None, 5, 5]


OTHER_CONSTRAINTS: dict[str, Any] = {
    "regions": ("eastus",),
    "min_nodes": 2,
    "max_nodes": 1,
    "utilization": 0.5,
    "tp_in_nvlink": True,
    "require_infiniband": True,
    "allow_preview": False,
    "allow_retiring": False,
    "allow_legacy": True,
    "verified_only": True,
    "checkpoint_on_local_disk": True,
    "budget_usd_per_month": Decimal(100),
    "budget_usd_per_job": Decimal(100),
    "max_hours": 100.0,
}
OTHER_PRICING: dict[str, Any] = {
    "purchases": ("on_demand",),
    "hours": Decimal(10),
    "hours_per_month": Decimal(100),
    "spot_overhead": Decimal("0.5"),
    "spot_evictions_per_hour": 2.0,
    "spot_restart_minutes": 60.0,
    "checkpoint_interval_minutes": 5.0,
    "checkpoint_gb_per_s": 0.1,
    "checkpoint_usd_per_gb_month": 5.0,
    "checkpoints_kept": 20,
    "today": date(2031, 1, 1),
}
"""Of each field a value that some verdict depends on."""


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("shape", "use"),
    [(LLAMA_70B, serving()), (LLAMA_8B, training(recompute="full", tensor_parallel=4, pipeline_parallel=2))],
    ids=["serving", "training"],
)
def test_a_job_that_is_kept_is_that_of_the_request_whatever_else_this_asks(
    shape: Architecture, use: InferenceWorkload | TrainingWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert OTHER_CONSTRAINTS.keys() == {one.name for one in fields(Constraints)}
    assert OTHER_PRICING.keys() == {one.name for one in fields(Pricing)}
    request = PlacementRequest(
        architecture=shape,
        workload=use,
        constraints=Constraints(max_nodes=4),
        pricing=Pricing(today=TODAY, purchases=("spot", "on_demand")),
    )
    constrained = {**OTHER_CONSTRAINTS, "require_infiniband": isinstance(use, InferenceWorkload)}
    others = [replace(request, constraints=replace(request.constraints, **{k: v})) for k, v in constrained.items()]
    others += [replace(request, pricing=replace(request.pricing, **{k: v})) for k, v in OTHER_PRICING.items()]
    machines = random_machines(150)
    sizes = [vm(status=status, verified=False, region=None) for status in ("preview", "retiring")]

    def find(one: PlacementRequest) -> Any:
        assumptions = Assumptions()
        prepared = prepare(one, assumptions)
        return assumptions.recorded, [facts_of(evaluate(size, each, prepared)) for each in machines for size in sizes]

    kept_job.cache_clear()
    usual, kept = find(request), [find(one) for one in others]
    monkeypatch.setattr(preparation, "kept_job", prepare_job)
    assert [find(one) for one in others] == kept
    assert all(one != usual for one in kept)


def test_a_job_is_kept_for_all_regions_and_budgets_but_not_for_described_machines() -> None:
    request = PlacementRequest(architecture=LLAMA_8B, workload=serving(), pricing=Pricing(today=TODAY))
    elsewhere = replace(request, constraints=Constraints(regions=("eastus",), budget_usd_per_month=Decimal(9)))
    assert prepare(request, Assumptions()).kept is prepare(elsewhere, Assumptions()).kept
    described = replace(request, machine_described=True)
    assert prepare(described, Assumptions()).kept is not prepare(described, Assumptions()).kept


@pytest.mark.parametrize("request_name", [name for name in REQUESTS if "serv" in name or name == "experts"])
def test_fixes_are_those_of_requests_that_share_nothing(request_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, found = REQUESTS[request_name](), 0
    misses = [
        (one, verdict) for one in random_machines(50) if isinstance(verdict := evaluate(vm(), one, prepared), Rejection)
    ]
    finder = FixFinder(prepared)
    shared = [finder.find_fixes(vm(), one, rejection) for one, rejection in misses]
    monkeypatch.setattr(FixFinder, "_sharing", lambda _self, changed: changed)
    monkeypatch.setattr(preparation, "kept_job", prepare_job)
    for (one, rejection), fixes in zip(misses, shared, strict=True):
        assert FixFinder(REQUESTS[request_name]()).find_fixes(vm(), one, rejection) == fixes
        found += len(fixes)
    assert found


def test_layouts_that_are_left_out_are_not_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [name for name in REQUESTS if "training" in name]
    machines = random_machines(150)

    def find(prepared: PreparedRequest) -> list[Any]:
        return [facts_of(evaluate(vm(), one, prepared)) for one in machines]

    found = [find(REQUESTS[name]()) for name in names]
    monkeypatch.setattr(TrainingJob, "_best_key", lambda *_: ())
    monkeypatch.setattr(preparation, "kept_job", prepare_job)
    assert [find(REQUESTS[name]()) for name in names] == found
