"""Properties of every placement: more of a resource never makes a size fail."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.memory import GRAPHS_UTILIZATION, UNSPLIT, serving_overhead
from app.fit.formulas.quantities import GIB
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import TRAINING_UTILIZATION, PreparedRequest
from app.fit.verdict import Rejection
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    expect_option,
    machine,
    prepare_request,
    serving,
    training,
    vm,
)

machines = st.builds(
    machine,
    gpus=st.sampled_from([Fraction(1, 6), Fraction(1, 2), Fraction(1), Fraction(2), Fraction(4), Fraction(8)]),
    usable_bytes=st.floats(2, 300).map(lambda gib: gib * GIB),
    domain_gpus=st.sampled_from([1, 2, 8]),
    infiniband=st.sampled_from([True, False, None]),
    capability=st.sampled_from(["7.0", "8.0", "9.0", "gfx942"]),
    memory_bytes=st.floats(10, 3000).map(lambda gib: gib * GIB),
)
loads = st.builds(
    serving,
    context_tokens=st.integers(1, 200_000),
    concurrency=st.integers(1, 500),
    dtype=st.sampled_from(["bf16", "fp16", "fp8", "awq_int4"]),
    kv_dtype=st.sampled_from([None, "fp8"]),
)
jobs = st.builds(
    training,
    method=st.sampled_from(["full", "lora", "qlora"]),
    zero_stage=st.sampled_from([None, 0, 3]),
    recompute=st.sampled_from(["none", "full"]),
    micro_batch=st.integers(1, 8),
    global_batch=st.sampled_from([None, 64]),
)
shapes = st.sampled_from([LLAMA_8B, LLAMA_70B])
bounds = st.fixed_dictionaries(
    {},
    optional={
        "max_nodes": st.integers(1, 6),
        "tp_in_nvlink": st.booleans(),
        "require_infiniband": st.booleans(),
        "max_hours": st.floats(1, 1000),
    },
)
requests = st.builds(lambda use, shape, bound: prepare_request(use, shape, **bound), loads | jobs, shapes, bounds)


model_shapes = (
    LLAMA_8B,
    Architecture(layers=24, hidden=2048, heads=16, kv_heads=16, head_dim=128, intermediate=8192, vocab=50_000),
    Architecture(layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, intermediate=9728, vocab=151_936),
    Architecture(layers=42, hidden=3584, heads=16, kv_heads=8, head_dim=256, intermediate=14_336, vocab=256_000),
)


def holds(on: Machine, prepared: PreparedRequest) -> bool:
    return isinstance(evaluate(vm(), on, prepared), PlacementOption)


@given(requests, machines, st.floats(1, 4))
def test_more_memory_never_turns_a_fit_into_a_rejection(prepared: PreparedRequest, on: Machine, times: float) -> None:
    facts: dict[str, Any] = {
        name: getattr(on, name) for name in ("gpus", "domain_gpus", "infiniband", "capability", "memory_bytes")
    }
    larger = machine(**facts, usable_bytes=(on.usable_bytes or 0) * times)
    assert holds(larger, prepared) or not holds(on, prepared)


@given(loads | jobs, shapes, machines, st.integers(1, 6), st.integers(0, 6))
def test_more_vms_never_turn_a_fit_into_a_rejection(use: Any, shape: Any, on: Machine, most: int, more: int) -> None:
    few, many = (prepare_request(use, shape, max_nodes=nodes) for nodes in (most, most + more))
    assert holds(on, many) or not holds(on, few)


@pytest.mark.parametrize("shape", model_shapes)
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
@pytest.mark.parametrize("stage", [None, 0, 1, 2, 3])
def test_vms_that_are_allowed_and_not_needed_change_nothing_of_a_training(
    shape: Architecture, method: str, stage: int | None
) -> None:
    """A replica alone has no buffers for others: around what it takes, one VM may do where several do not."""
    job = training(method=method, zero_stage=stage, tokens=None, sequence_tokens=2048)
    needs = expect_option(prepare_request(job, shape), machine(gpus=Fraction(1), usable_bytes=1e15)).attempt
    for times in (1.0, 1.005, 1.05, 1.2):
        on = machine(gpus=Fraction(1), usable_bytes=times * needs.required_bytes / TRAINING_UTILIZATION * (1 + 1e-9))
        alone = expect_option(prepare_request(job, shape), on).attempt
        assert alone.zero_stage == (stage or 0)
        for most in (2, 3, 8):
            assert expect_option(prepare_request(job, shape, max_nodes=most), on).attempt == alone


@pytest.mark.parametrize("most", [1, 4, 16])
def test_a_training_that_one_vm_holds_and_does_not_end_in_time_is_on_several_where_these_do(most: int) -> None:
    """Without sharding two VMs do not hold it; with ZeRO-3 they do, and end sooner."""
    job = training(method="lora", tokens=1e9, sequence_tokens=2048)
    needs = expect_option(prepare_request(job, LLAMA_8B), machine(gpus=Fraction(1), usable_bytes=1e15)).attempt
    on = machine(gpus=Fraction(1), usable_bytes=1.01 * needs.required_bytes / TRAINING_UTILIZATION)
    option = expect_option(prepare_request(job, LLAMA_8B), on)
    assert option.speed is not None
    assert option.speed.hours is not None
    prepared = prepare_request(job, LLAMA_8B, max_nodes=most, max_hours=option.speed.hours.mid / 2)
    verdict = evaluate(vm(), on, prepared)
    assert isinstance(verdict, PlacementOption) == (most > 1)
    if isinstance(verdict, PlacementOption):
        assert (verdict.attempt.zero_stage, verdict.attempt.nodes > 1) == (3, True)


@given(loads | jobs, shapes, machines, st.integers(1, 200_000), st.integers(0, 200_000))
def test_a_larger_budget_never_rejects_more(use: Any, shape: Any, on: Machine, usd: int, more: int) -> None:
    small, large = (prepare_request(use, shape, budget_usd_per_month=Decimal(amount)) for amount in (usd, usd + more))
    assert holds(on, large) or not holds(on, small)


@given(shapes, machines, st.integers(1, 300), st.integers(0, 300))
def test_fewer_sequences_never_turn_a_fit_into_a_rejection(shape: Any, on: Machine, few: int, more: int) -> None:
    less, most = (prepare_request(serving(concurrency=number), shape) for number in (few, few + more))
    assert holds(on, less) or not holds(on, most)


@given(st.floats(0.05, 1), st.floats(1, 3), st.integers(1, 64))
def test_what_is_said_to_be_in_the_memory_left_free_has_room_there(
    utilization: float, times: float, sequences: int
) -> None:
    """A GPU has from as much memory as the need without graphs takes; nothing fits that needs more than it has."""
    tiny = Architecture(layers=12, hidden=512, heads=8, kv_heads=2, head_dim=64, intermediate=2048, vocab=32_000)
    use = serving(context_tokens=1024, concurrency=sequences)
    needs = expect_option(prepare_request(use, tiny, utilization=0.5), machine(gpus=Fraction(1), usable_bytes=9 * GIB))
    usable = times * needs.attempt.required_bytes / utilization
    verdict = evaluate(
        vm(), machine(gpus=Fraction(1), usable_bytes=usable), prepare_request(use, tiny, utilization=utilization)
    )
    if isinstance(verdict, PlacementOption):
        counted = serving_overhead(UNSPLIT, usable_bytes=usable, utilization=utilization).mid
        whole = serving_overhead(UNSPLIT, usable_bytes=usable, utilization=GRAPHS_UTILIZATION).mid
        assert verdict.attempt.required_bytes + whole - counted <= usable * (1 + 1e-9)


@given(requests, machines)
def test_options_stay_within_the_memory_budget_and_the_vm_limit(prepared: PreparedRequest, on: Machine) -> None:
    verdict = evaluate(vm(), on, prepared)
    if isinstance(verdict, PlacementOption):
        attempt = verdict.attempt
        assert attempt.required_bytes <= attempt.budget_bytes
        assert 1 <= attempt.nodes <= prepared.limits.max_nodes
        assert attempt.gpus <= attempt.nodes * on.ranks
    else:
        assert verdict.failures


@given(requests, machines)
def test_every_fix_makes_the_size_fit(prepared: PreparedRequest, on: Machine) -> None:
    verdict = evaluate(vm(), on, prepared)
    if isinstance(verdict, Rejection):
        for fix in FixFinder(prepared).find_fixes(vm(), on, verdict):
            request = prepared.request
            for change in fix.changes:
                request = request.with_change(change.part, change.field, change.value)
            fixed = prepare_request(request.workload, request.architecture, **_constraint_fields(request.constraints))
            assert holds(on, fixed), fix.text


def _constraint_fields(constraints: Any) -> dict[str, Any]:
    return {name: getattr(constraints, name) for name in type(constraints).__dataclass_fields__}
