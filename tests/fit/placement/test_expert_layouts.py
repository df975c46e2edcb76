"""Where experts are distributed, and where attention is data-parallel, on VMs of one size."""

from dataclasses import replace
from fractions import Fraction
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.workload import InferenceWorkload, ServiceLevel
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.quantities import GIB
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.jobs import ServingJob
from app.fit.placement.layouts import find_group_layouts
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, explain, per_gpu_memory
from tests.fit.placement.factories import (
    LLAMA_70B,
    QWEN_235B,
    codes,
    expect_option,
    expect_rejection,
    machine,
    prepare_request,
    prepare_service,
    service,
    serving,
    vm,
)
from tests.fit.test_expert_ranks import DEEPSEEK_V3

H200 = machine(usable_bytes=140 * GIB, bandwidth=4.8e12)
QWEN_480B = replace(
    QWEN_235B, layers=62, hidden=6144, heads=96, kv_heads=8, experts=160, moe_intermediate=2560, moe_layers=62
)  # fmt: skip


def parallelism_of(prepared: Any, on: Machine | None = None) -> tuple[Parallelism, int]:
    attempt = expect_option(prepared, on).attempt
    return attempt.parallelism, attempt.nodes


def test_experts_are_dealt_out_where_their_blocks_cannot_be_cut() -> None:
    # 2,560 / 8 is no multiple of 128: eight ranks cut no expert, and four do not hold the weights.
    found = parallelism_of(prepare_request(serving(dtype="fp8", context_tokens=2048, concurrency=4), QWEN_480B))
    assert found == (Parallelism(tensor=8, expert=8), 1)


def test_ranks_that_cut_the_experts_are_taken_before_dealing_them_out() -> None:
    found, _ = parallelism_of(prepare_request(serving(dtype="fp8", concurrency=8), QWEN_235B), H200)
    assert found == Parallelism(tensor=4)


def test_a_rejection_for_blocks_says_that_experts_can_be_dealt_out() -> None:
    asked = serving(dtype="fp8", concurrency=8, tensor_parallel=8)
    assert codes(expect_rejection(prepare_request(asked, QWEN_235B), H200)) == {"TP_BLOCKS"}
    found, _ = parallelism_of(prepare_request(replace(asked, expert_parallel=8), QWEN_235B), H200)
    assert found == Parallelism(tensor=8, expert=8)


def test_attention_is_data_parallel_where_the_latent_of_every_rank_does_not_fit() -> None:
    load = serving(dtype="fp8", context_tokens=8192, concurrency=256)
    found, nodes = parallelism_of(prepare_request(load, DEEPSEEK_V3, max_nodes=8), H200)
    assert (found.data > 1, found.expert, found.pipeline, nodes) == (True, 8, 1, 1)
    alone, more = parallelism_of(
        prepare_request(replace(load, data_parallel_attention=1), DEEPSEEK_V3, max_nodes=8), H200
    )
    assert alone.data == 1
    assert alone.pipeline > 1 or more > 1


def test_one_vm_that_holds_all_sequences_with_tensor_parallelism_is_left_at_that() -> None:
    found, _ = parallelism_of(prepare_request(serving(dtype="fp8", concurrency=16), DEEPSEEK_V3), H200)
    assert found == Parallelism(tensor=8)


def test_an_option_says_that_its_experts_are_dealt_out() -> None:
    load = serving(dtype="fp8", data_parallel_attention=8, tensor_parallel=1)
    text = explain(expect_option(prepare_request(load, DEEPSEEK_V3), H200))
    assert "with EP=8, DP attention=8" in text
    assert "each GPU has the attention and the cache of its own sequences, and the experts are distributed" in text


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ({"data_parallel_attention": 8}, (1, 8, 8)), ({"data_parallel_attention": 2, "tensor_parallel": 4}, (4, 2, 8)),
        ({"expert_parallel": 8}, (8, 1, 8)), ({"expert_parallel": 4, "tensor_parallel": 8}, (8, 1, 4)),
        ({"expert_parallel": 4, "data_parallel_attention": 8}, (1, 8, 4)),
    ],
)  # fmt: skip
def test_a_requested_split_is_kept(workload: dict[str, int], expected: tuple[int, int, int]) -> None:
    found, _ = parallelism_of(prepare_request(serving(dtype="fp8", concurrency=8, **workload), DEEPSEEK_V3), H200)
    assert (found.tensor, found.data, found.expert) == expected


@pytest.mark.parametrize(
    ("facts", "nodes", "sizes"),
    [
        ({}, 1, {2, 4, 8}), ({}, 4, {2, 4, 8, 16, 32}), ({"infiniband": False}, 4, {2, 4, 8}),
        ({"domain_gpus": 2}, 4, {2}), ({"domain_gpus": 1}, 4, set()),
        ({"gpus": 4, "domain_gpus": 72, "domain_vms": 18}, 7, {2, 4, 8, 16}),
        ({"gpus": 4, "domain_gpus": 72, "domain_vms": 18}, 4, {2, 4, 8, 16}),
    ],
)  # fmt: skip
def test_groups_are_joined_by_nvlink_or_are_whole_vms_that_infiniband_joins(
    facts: dict[str, Any], nodes: int, sizes: set[int]
) -> None:
    prepared = prepare_request(serving(dtype="fp8"), DEEPSEEK_V3, max_nodes=nodes)
    layouts = find_group_layouts(prepared.job.partition, machine(**facts), prepared.limits)
    assert {layout.parallelism.stage_gpus for layout in layouts} == sizes
    assert all(layout.parallelism.expert == layout.parallelism.stage_gpus for layout in layouts)


def test_a_split_that_no_vm_allows_is_a_reason_to_fail() -> None:
    asked = InferenceWorkload(dtype="fp8", expert_parallel=8)
    prepared = prepare_service(service(), DEEPSEEK_V3, asked, max_nodes=10, require_infiniband=False)
    on = machine(gpus=Fraction(4), domain_gpus=4, infiniband=False)
    rejection = expect_rejection(prepared, on)
    assert codes(rejection) == {"EP_GROUPS"}
    assert "expert_parallel=null" in {fix.text for fix in FixFinder(prepared).find_fixes(vm(), on, rejection)}


def test_a_dense_model_is_never_split_into_groups() -> None:
    prepared = prepare_request(serving(), LLAMA_70B, max_nodes=4)
    assert find_group_layouts(prepared.job.partition, machine(), prepared.limits) == ()


loads = st.builds(
    serving,
    context_tokens=st.integers(1, 100_000),
    concurrency=st.integers(1, 2000),
    dtype=st.just("fp8"),
    expert_parallel=st.sampled_from([None, 4, 8]),
    data_parallel_attention=st.sampled_from([None, None, 2, 8]),
)
machines = st.builds(
    machine,
    usable_bytes=st.floats(40, 300).map(lambda gib: gib * GIB),
    domain_gpus=st.sampled_from([1, 4, 8]),
    infiniband=st.sampled_from([True, False]),
)


@given(loads, machines, st.integers(1, 4), st.integers(1, 4), st.floats(0.1, 1))
def test_less_work_more_vms_and_more_memory_never_turn_a_fit_into_a_rejection(
    load: InferenceWorkload, on: Machine, nodes: int, more: int, share: float
) -> None:
    def holds(load: InferenceWorkload, on: Machine, nodes: int) -> bool:
        return isinstance(evaluate(vm(), on, prepare_request(load, DEEPSEEK_V3, max_nodes=nodes)), PlacementOption)

    if not holds(load, on, nodes):
        return
    fewer = replace(load, concurrency=max(1, int((load.concurrency or 1) * share)))
    shorter = replace(load, context_tokens=max(1, int((load.context_tokens or 1) * share)))
    larger = machine(usable_bytes=(on.usable_bytes or 0) / share, domain_gpus=on.domain_gpus, infiniband=on.infiniband)
    assert holds(fewer, on, nodes)
    assert holds(shorter, on, nodes)
    assert holds(load, on, nodes + more)
    assert holds(load, larger, nodes)


@given(loads, machines, st.integers(1, 4))
def test_the_memory_of_an_option_is_that_of_its_estimate(load: InferenceWorkload, on: Machine, nodes: int) -> None:
    prepared = prepare_request(load, DEEPSEEK_V3, max_nodes=nodes)
    verdict = evaluate(vm(), on, prepared)
    if not isinstance(verdict, PlacementOption) or not isinstance(prepared.job, ServingJob):
        return
    memory, most = per_gpu_memory(verdict)
    assert memory is not None
    assert memory.need.mid == pytest.approx(verdict.attempt.required_bytes / GIB)
    assert most is not None
    assert (most.mid or 0) >= (load.concurrency or 1)


def test_a_service_takes_no_more_vms_than_without_data_parallel_attention() -> None:
    level = service(users=4000, input_tokens=4000, output_tokens=500, ttft_ms=8000.0, tpot_ms=100.0)
    alone = prepare_service(level, DEEPSEEK_V3, InferenceWorkload(dtype="fp8", data_parallel_attention=1))
    free = prepare_service(level, DEEPSEEK_V3, InferenceWorkload(dtype="fp8"))
    without, found = expect_option(alone, H200).attempt, expect_option(free, H200).attempt
    assert found.nodes < without.nodes
    assert (without.parallelism.data, found.parallelism.data > 1) == (1, True)


A100_16 = machine(
    gpus=Fraction(16), domain_gpus=16, usable_bytes=39.6 * GIB, bandwidth=1.555e12, capability="8.0",
    peaks={"fp32": 19.5e12, "fp16": 312e12, "bf16": 312e12}, infiniband=False, network_gbps=100.0,
)  # fmt: skip
QWEN_30B = replace(
    QWEN_235B, layers=48, hidden=2048, heads=32, vocab=151_936, moe_intermediate=768, moe_layers=48, fp8_block=None
)  # fmt: skip


def nodes_on(on: Machine, level: ServiceLevel, shape: Any, **split: Any) -> float:
    """Return the VMs that a service takes with a split; infinite where it does not fit."""
    verdict = evaluate(vm(), on, prepare_service(level, shape, InferenceWorkload(**split)))
    return verdict.attempt.nodes if isinstance(verdict, PlacementOption) else inf


def test_a_service_gets_groups_of_several_gpus_where_they_take_the_fewest_vms() -> None:
    load = {"users": None, "requests_per_second": 20.0, "input_tokens": 1500, "output_tokens": 600}
    level = service(**load, tpot_ms=12.0)
    small = (nodes_on(A100_16, level, QWEN_30B, tensor_parallel=t, data_parallel_attention=16 // t) for t in (1, 2))
    assert [*small, nodes_on(A100_16, level, QWEN_30B, data_parallel_attention=1)] == [5, 4, 6]
    found, nodes = parallelism_of(prepare_service(level, QWEN_30B), A100_16)
    assert (found, nodes) == (Parallelism(tensor=4, expert=16, data=4), 3)


def test_a_service_gets_several_copies_with_data_parallel_attention_on_a_vm() -> None:
    load = {"users": None, "requests_per_second": 20.0, "input_tokens": 1500, "output_tokens": 600}
    attempt = expect_option(prepare_service(service(**load, tpot_ms=25.0), QWEN_30B), A100_16).attempt
    assert (attempt.parallelism, attempt.nodes) == (Parallelism(tensor=4, expert=8, data=2), 1)
    assert attempt.replicas == 2


@given(
    st.sampled_from([DEEPSEEK_V3, QWEN_235B]),
    st.builds(
        service,
        users=st.sampled_from([50, 500, 3000]),
        input_tokens=st.integers(100, 10_000),
        output_tokens=st.integers(50, 1000),
        ttft_ms=st.sampled_from([600.0, 2000.0, 8000.0]),
        tpot_ms=st.sampled_from([15.0, 30.0, 60.0, 100.0]),
    ),
    st.sampled_from([4, 8, 16]),
    st.sampled_from([40, 80, 140, 180]),
    st.booleans(),
)
def test_no_split_in_one_stage_that_can_be_asked_for_takes_fewer_vms_than_the_one_found(
    shape: Any, level: ServiceLevel, gpus: int, gib: int, infiniband: bool
) -> None:
    on = machine(gpus=Fraction(gpus), domain_gpus=gpus, usable_bytes=gib * GIB, infiniband=infiniband)
    splits = [(tensor, groups) for tensor in (1, 2, 4, 8) for groups in (2, 4, 8, 16, 32) if tensor * groups <= 64]
    least = min(
        nodes_on(on, level, shape, dtype="fp8", tensor_parallel=t, data_parallel_attention=d, pipeline_parallel=1)
        for t, d in splits
    )
    assert nodes_on(on, level, shape, dtype="fp8") <= least
