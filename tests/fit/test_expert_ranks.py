"""Serving with experts distributed over GPUs, and with data-parallel attention."""

from dataclasses import replace
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.estimate import estimate_serving, serving_setup
from app.fit.estimator.serving import kv_cache_of, weights_range
from app.fit.estimator.serving_speed import ServingSpeed, request_work, serving_speed
from app.fit.estimator.speed_model import MOST_GATHERED_STEPS, Lengths, gathering_steps
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.memory import ExpertShare, Parallelism, largest_gpu_share
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.results import Estimate, ServingMemory
from tests.fit.placement.factories import service

DEEPSEEK_V3 = Architecture(
    layers=61, hidden=7168, heads=128, intermediate=18_432, vocab=129_280, q_lora_rank=1536, kv_lora_rank=512,
    qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, experts=256, experts_per_token=8, moe_intermediate=2048,
    shared_intermediate=2048, moe_layers=58, fp8_block=128,
)  # fmt: skip
LLAMA_8B = Architecture(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, intermediate=14_336, vocab=128_256)
H200 = Gpus(usable_gib=140.0, bandwidth_gb_per_s=4800.0, peak_tflops=1979.0)
LOAD: dict[str, Any] = {"dtype": "fp8", "context_tokens": 4096, "prompt_tokens": 3000, "output_tokens": 1000}


def answer(shape: Architecture = DEEPSEEK_V3, gpus: Gpus = H200, **workload: Any) -> Estimate:
    return estimate_serving(shape, InferenceWorkload(**LOAD | workload), gpus, Assumptions())


def memory(**workload: Any) -> ServingMemory:
    found = answer(**workload).inference
    assert found is not None
    assert found.memory_per_gpu is not None
    return found.memory_per_gpu


def speed(gpus: Gpus = H200, **workload: Any) -> ServingSpeed:
    setup = serving_setup(DEEPSEEK_V3, InferenceWorkload(**LOAD | workload), gpus, Assumptions())
    found = serving_speed(setup, weights_range(setup), kv_cache_of(setup))
    assert found is not None
    return found


def gib(figure: Any) -> float:
    return float(figure.mid if figure.value is None else figure.value)


def test_dealing_experts_out_evenly_takes_as_much_memory_as_cutting_them() -> None:
    cut, dealt = memory(tensor_parallel=8), memory(tensor_parallel=8, expert_parallel=8)
    assert isclose(gib(cut.weights), gib(dealt.weights), rel_tol=1e-12)
    assert gib(cut.kv_cache) == gib(dealt.kv_cache)
    assert (dealt.expert_parallel, dealt.data_parallel_attention) == (8, 1)


def test_experts_that_do_not_divide_evenly_make_one_gpu_fuller() -> None:
    even, uneven = memory(tensor_parallel=16, expert_parallel=16), memory(tensor_parallel=16, expert_parallel=1)
    assert isclose(gib(even.weights), gib(uneven.weights), rel_tol=1e-12)
    experts = ExpertShare(per_layer=10, share=0.9)
    shares = [largest_gpu_share(Parallelism(tensor=t, expert=t), experts=experts) for t in (2, 4, 5)]
    assert shares == pytest.approx([0.5, 0.1 / 4 + 0.9 * 3 / 10, 0.2])


def test_groups_hold_their_own_sequences_and_all_weights_but_the_experts() -> None:
    tensor, groups = (
        memory(tensor_parallel=8, concurrency=256),
        memory(tensor_parallel=1, data_parallel_attention=8, concurrency=256),
    )
    # The latent of MLA is on every tensor rank, so eight groups keep an eighth of the cache each.
    assert isclose(gib(groups.kv_cache), gib(tensor.kv_cache) / 8, rel_tol=1e-12)
    assert gib(groups.weights) > gib(tensor.weights)
    assert groups.expert_parallel == 8
    assert groups.max_concurrency is not None
    assert tensor.max_concurrency is not None
    assert gib(groups.max_concurrency) > 4 * gib(tensor.max_concurrency)


def test_a_group_of_its_own_is_the_same_as_none() -> None:
    plain = answer(tensor_parallel=8, concurrency=64)
    one = answer(tensor_parallel=8, concurrency=64, data_parallel_attention=1, expert_parallel=1)
    assert plain.inference == one.inference


def test_dealing_experts_out_on_tensor_ranks_takes_the_same_time_as_cutting_them() -> None:
    cut, dealt = speed(tensor_parallel=8, concurrency=64), speed(tensor_parallel=8, expert_parallel=8, concurrency=64)
    assert isclose(cut.step_s.mid, dealt.step_s.mid, rel_tol=1e-12)
    assert cut.min_step_s == dealt.min_step_s
    assert "data_parallel_attention" not in dealt.departures


@given(
    st.sampled_from([(1, 8), (2, 4), (4, 2), (8, 1), (1, 16), (8, 2), (8, 8)]),
    st.integers(1, 4096),
    st.integers(1, 16_000),
    st.sampled_from([1, 2, 4]),
)
def test_no_time_beats_its_bound_and_none_falls_with_more_sequences(
    split: tuple[int, int], sequences: int, prompt: int, stages: int
) -> None:
    workload: dict[str, Any] = {
        "tensor_parallel": split[0], "data_parallel_attention": split[1], "prompt_tokens": prompt,
        "context_tokens": prompt + 1000, "pipeline_parallel": stages,
    }  # fmt: skip
    few, many = speed(**workload, concurrency=sequences), speed(**workload, concurrency=sequences + 64)
    for found in (few, many):
        assert found.min_step_s <= found.step_s.low <= found.step_s.mid <= found.step_s.high
    assert few.step_s.mid <= many.step_s.mid * (1 + 1e-9)
    assert few.min_step_s <= many.min_step_s * (1 + 1e-9)
    assert few.first_token_s is not None
    assert many.first_token_s is not None
    assert few.first_token_s.mid <= many.first_token_s.mid * (1 + 1e-9)


def test_groups_are_faster_where_the_cache_of_many_sequences_is_read_and_slower_for_one() -> None:
    for sequences, faster in ((512, True), (1, False)):
        tensor = speed(tensor_parallel=8, concurrency=sequences, context_tokens=32_000, prompt_tokens=None)
        groups = speed(data_parallel_attention=8, concurrency=sequences, context_tokens=32_000, prompt_tokens=None)
        assert (groups.step_s.mid < tensor.step_s.mid) is faster


def test_a_stage_on_several_vms_sends_tokens_over_their_network() -> None:
    times = [
        speed(gpus, tensor_parallel=8, data_parallel_attention=4, concurrency=512).step_s.mid
        for gpus in (
            replace(H200, link="nvlink"),
            H200,
            replace(H200, network="infiniband"),
            replace(H200, network="ethernet"),
        )
    ]
    assert times[0] < times[1] == times[2] < times[3]


@pytest.mark.parametrize(
    ("expert_parallel", "receivers"),
    [
        (8, 7 * (1 - (7 / 8) ** 8)),  # a token goes once to each other GPU that has one of its experts
        (1, 7),  # all have a part of each expert
    ],
)
def test_tokens_go_once_to_each_gpu_that_has_experts_of_theirs(expert_parallel: int, receivers: float) -> None:
    setups = (
        serving_setup(
            DEEPSEEK_V3,
            InferenceWorkload(**LOAD, data_parallel_attention=8, expert_parallel=expert_parallel, concurrency=tokens),
            replace(H200, link="nvlink", link_gb_per_s=900.0),
            Assumptions(),
        )
        for tokens in (64, 128)
    )
    few, many = (request_work(setup).collective_s for setup in setups)
    assert many - few == pytest.approx(8 * 2 * 58 * 7168 * 2 * receivers / 450e9)


def test_prompts_of_a_burst_wait_with_tensorrt_llm_until_all_groups_have_one() -> None:
    """Each of 4 groups with 32 requests has a prompt every 1,000 / 32 steps; 0.3 of them pass before all have one."""
    load = {"data_parallel_attention": 4, "concurrency": 128, "engine": "trtllm"}
    setup = serving_setup(DEEPSEEK_V3, InferenceWorkload(**LOAD | load, arrivals="burst"), H200, Assumptions())
    waits = gathering_steps(setup, request_work(setup), Lengths(prompt=3000, output=1000, kept=3500))
    assert waits == pytest.approx(1000 / 32 * (4 / 5 - 1 / 2))
    seldom = gathering_steps(setup, request_work(setup), Lengths(prompt=3000, output=10_000, kept=8000))
    assert seldom == MOST_GATHERED_STEPS
    steady = replace(setup, workload=replace(setup.workload, arrivals=None))
    assert gathering_steps(steady, request_work(steady), Lengths(prompt=3000, output=1000, kept=3500)) == 0


def test_the_figures_of_data_parallel_attention_name_the_runs_that_had_it() -> None:
    found = answer(tensor_parallel=1, data_parallel_attention=8, concurrency=64, engine="trtllm").inference
    assert found is not None
    assert found.decode is not None
    evidence = found.decode.expected_step.evidence
    assert evidence is not None
    assert (evidence.family, evidence.outside) == ("decode_step_data_parallel", ("data_parallel_attention",))


@pytest.mark.parametrize(
    ("shape", "workload", "field"),
    [
        (LLAMA_8B, {"expert_parallel": 2, "tensor_parallel": 2}, "inference.expert_parallel"),
        (LLAMA_8B, {"data_parallel_attention": 2}, "inference.data_parallel_attention"),
        (DEEPSEEK_V3, {"expert_parallel": 3, "tensor_parallel": 8}, "inference.expert_parallel"),
        (DEEPSEEK_V3, {"expert_parallel": 512, "tensor_parallel": 512}, "inference.expert_parallel"),
        (
            DEEPSEEK_V3,
            {"expert_parallel": 3, "tensor_parallel": 1, "data_parallel_attention": 8},
            "inference.expert_parallel",
        ),
    ],
)
def test_experts_that_cannot_be_dealt_out_are_refused(
    shape: Architecture, workload: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidWorkload) as error:
        answer(shape, **workload)
    assert error.value.field == field


@pytest.mark.parametrize("groups", [8, 16, 72])
def test_replicas_that_only_read_prompts_read_one_for_each_group_at_a_time(groups: int) -> None:
    level = service(
        input_tokens=2000, output_tokens=500, requests_per_second=40.0, ttft_ms=20_000.0, tpot_ms=200.0,
        disaggregated=True,
    )  # fmt: skip

    def reading_gpus(**split: Any) -> float:
        workload = InferenceWorkload(dtype="fp8", **split)
        found = estimate_serving(DEEPSEEK_V3, workload, replace(H200, link="nvlink"), Assumptions(), level).serving
        assert found is not None
        assert found.disaggregation is not None
        gpus = (found.gpus or 0) / (found.replicas or 1)
        return gpus * found.disaggregation.prefill_replicas * found.disaggregation.prefill_busy

    # The same FLOPs: what differs is what is sent, and that a prompt of a group is computed by one GPU's kernels.
    grouped = reading_gpus(tensor_parallel=1, data_parallel_attention=groups, expert_parallel=groups)
    assert 1 / 3 < grouped / reading_gpus(tensor_parallel=8, expert_parallel=8) < 2
