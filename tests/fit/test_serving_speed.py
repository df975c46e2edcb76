"""Properties of the speed of serving, on random workloads: monotone, never below a bound, wider where unmeasured."""

import csv
from dataclasses import replace
from math import exp, inf
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.estimate import serving_setup
from app.fit.estimator.serving import ServingSetup, kv_cache_of, weights_range
from app.fit.estimator.serving_speed import (
    MEASURED_GPUS,
    ServingSpeed,
    is_measured,
    prefill_speed,
    request_work,
    serving_speed,
)
from app.fit.estimator.speed_model import Lengths, expert_shares, request_lengths
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import Assumptions
from app.fit.formulas.serving_speed import STEP, STEP_SPREAD, prompts_time, step_time
from benchmarks.accuracy.estimates import setup_of as preset_setup

SEEDS = Path(__file__).parents[2] / "seeds"
BANDWIDTH, PEAKS = "memory_bandwidth_gb_per_s", ("bf16_tflops", "fp8_tflops", "fp4_tflops")

LLAMA_70B = Architecture(layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128, intermediate=28_672, vocab=128_256)
MIXTURE = Architecture(
    layers=36, hidden=2880, heads=64, kv_heads=8, head_dim=64, vocab=201_088, experts=128, experts_per_token=4,
    moe_intermediate=2880, sliding_window=128, sliding_layers=18,
)  # fmt: skip
EXPERTS = replace(LLAMA_70B, experts=64, experts_per_token=4, moe_intermediate=2048)
LATENT = Architecture(
    layers=61, hidden=7168, heads=128, kv_lora_rank=512, q_lora_rank=1536, qk_nope_head_dim=128, qk_rope_head_dim=64,
    v_head_dim=128, intermediate=18_432, vocab=129_280, experts=256, experts_per_token=8, moe_intermediate=2048,
    shared_intermediate=2048, moe_layers=58,
)  # fmt: skip
ONLY_PARAMS = Architecture(params=13_000_000_000)
ACTIVE_PARAMS = Architecture(params=109_000_000_000, active_params=17_000_000_000)
SHAPES = st.sampled_from((LLAMA_70B, MIXTURE, LATENT, ONLY_PARAMS, ACTIVE_PARAMS))

ROUNDING = 1e-9
"""The share by which sums in another order may differ."""

H100 = Gpus(count=8, bandwidth_gb_per_s=3350, peak_tflops=989)


def setup_of(shape: Architecture, workload: InferenceWorkload, gpus: Gpus = H100) -> ServingSetup:
    return serving_setup(shape, workload, gpus, Assumptions())


def speed_of(shape: Architecture, workload: InferenceWorkload, gpus: Gpus = H100) -> ServingSpeed:
    setup = setup_of(shape, workload, gpus)
    has_cache = shape.kv_heads is not None or shape.kv_lora_rank is not None
    speed = serving_speed(setup, weights_range(setup), kv_cache_of(setup) if has_cache else None)
    assert speed is not None
    return speed


@st.composite
def workloads(draw: st.DrawFn) -> InferenceWorkload:
    lengths: dict[str, Any] = draw(
        st.sampled_from(
            ({"context_tokens": 2048}, {"prompt_tokens": 1024, "output_tokens": 128},
             {"prompt_tokens": 8192, "output_tokens": 1024, "context_tokens": 9216}, {})
        )
    )  # fmt: skip
    tensor, stages = draw(st.sampled_from(((1, 1), (2, 1), (4, 1), (8, 1), (4, 2), (1, 8))))
    return InferenceWorkload(
        **lengths,
        dtype=draw(st.sampled_from(("bf16", "fp8", "nvfp4", "int4"))),
        engine=draw(st.sampled_from((None, "vllm", "sglang", "trtllm"))),
        concurrency=draw(st.integers(1, 2000)),
        tensor_parallel=tensor,
        pipeline_parallel=stages,
    )


@given(SHAPES, workloads(), st.sampled_from(("nvlink", "pcie")))
def test_nothing_is_faster_than_its_bound_and_ranges_are_in_order(
    shape: Architecture, workload: InferenceWorkload, link: Literal["nvlink", "pcie"]
) -> None:
    speed = speed_of(shape, workload, replace(H100, link=link))
    assert speed.min_step_s <= speed.step_s.low <= speed.step_s.mid <= speed.step_s.high
    if speed.first_token_s is not None:
        setup = setup_of(shape, workload, replace(H100, link=link))
        alone, lengths = prefill_speed(setup, weights_range(setup)), request_lengths(setup.workload)
        assert alone is not None
        assert lengths is not None
        count = setup.model.count
        assert count is not None
        flops = 1.9 * (count.active - count.embeddings) * lengths.prompt
        assert flops / (989e12 * setup.deployment.parallelism.gpus) <= alone.low <= alone.mid <= alone.high
        assert alone.low <= speed.first_token_s.mid <= speed.first_token_s.high


@given(SHAPES, workloads(), st.integers(1, 500))
def test_more_sequences_and_a_longer_context_never_make_a_step_shorter(
    shape: Architecture, workload: InferenceWorkload, more: int
) -> None:
    before = speed_of(shape, workload)
    busier = speed_of(shape, replace(workload, concurrency=(workload.concurrency or 1) + more))
    assert busier.step_s.mid >= before.step_s.mid
    assert busier.step_s.high >= before.step_s.high
    if before.first_token_s is not None and busier.first_token_s is not None:
        assert busier.first_token_s.mid >= before.first_token_s.mid * (1 - ROUNDING)
    if workload.context_tokens is not None and workload.prompt_tokens is None:
        # A longer output would have fewer prompts read meanwhile.
        output = workload.output_tokens or max(1, workload.context_tokens // 3)
        shorter, longer = (
            speed_of(shape, replace(workload, context_tokens=tokens, output_tokens=output))
            for tokens in (workload.context_tokens, workload.context_tokens + more)
        )
        assert longer.step_s.mid >= shorter.step_s.mid * (1 - ROUNDING)


@given(SHAPES, workloads(), st.floats(1, 3), st.floats(1, 3), st.floats(1, 3))
def test_a_faster_gpu_and_link_never_make_anything_slower(
    shape: Architecture, workload: InferenceWorkload, bandwidth: float, peak: float, link: float
) -> None:
    linked = replace(H100, link="nvlink", link_gb_per_s=900.0, peak_16_bits_tflops=989.0)
    before = speed_of(shape, workload, linked)
    faster = replace(
        linked,
        bandwidth_gb_per_s=3350 * bandwidth, peak_tflops=989 * peak, peak_16_bits_tflops=989 * peak,
        link_gb_per_s=900 * link,
    )  # fmt: skip
    after = speed_of(shape, workload, faster)
    assert after.step_s.mid <= before.step_s.mid * (1 + ROUNDING)
    assert after.min_step_s <= before.min_step_s * (1 + ROUNDING)
    if before.first_token_s is not None and after.first_token_s is not None:
        assert after.first_token_s.mid <= before.first_token_s.mid * (1 + ROUNDING)


@given(workloads(), st.floats(1, 4))
def test_more_parameters_never_make_a_step_shorter(workload: InferenceWorkload, factor: float) -> None:
    small, large = (Architecture(params=int(13e9 * by)) for by in (1.0, factor))
    gpus = replace(H100, count=None)
    unsplit = replace(workload, tensor_parallel=1, pipeline_parallel=1)
    least = speed_of(small, unsplit, gpus).step_s.mid * (1 - ROUNDING)
    assert speed_of(large, unsplit, gpus).step_s.mid >= least


def test_tensor_ranks_over_pcie_and_stages_over_ethernet_take_longer() -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=16, tensor_parallel=4, engine="vllm")
    nvlink, pcie = (speed_of(LLAMA_70B, load, replace(H100, count=4, link=link)) for link in ("nvlink", "pcie"))
    assert pcie.step_s.mid > nvlink.step_s.mid + 80 * 2 * 20e-6
    assert pcie.departures == ("link",)
    staged = replace(load, tensor_parallel=8, pipeline_parallel=2)
    fast, slow = (
        speed_of(LLAMA_70B, staged, replace(H100, count=16, network=network)) for network in ("infiniband", "ethernet")
    )
    assert slow.step_s.mid > fast.step_s.mid + 2 * 200e-6


@pytest.mark.parametrize(("prompt", "chunk", "faster"), [(4000, None, False), (4000, 500, True), (80_000, None, True)])
def test_stages_read_a_prompt_faster_only_in_chunks(prompt: int, chunk: int | None, faster: bool) -> None:
    lengths: dict[str, Any] = {"prompt_tokens": prompt, "output_tokens": 100, "max_batched_tokens": chunk}
    workload = InferenceWorkload(**lengths, tensor_parallel=8)
    least, before = 1.9 * 70e9 * prompt / (8 * 989e12), inf
    for stages in (1, 2, 4, 8, 16):
        setup = setup_of(LLAMA_70B, replace(workload, pipeline_parallel=stages), replace(H100, count=8 * stages))
        alone = prefill_speed(setup, weights_range(setup))
        assert alone is not None
        assert faster or alone.low >= least
        assert stages == 1 or (alone.mid < before) is faster
        before = alone.mid


def test_the_bound_of_a_step_reads_an_input_embedding_only_where_it_is_the_output_layer() -> None:
    alone = InferenceWorkload(concurrency=1, dtype="bf16", context_tokens=1, tensor_parallel=1)
    separate, tied = (
        speed_of(replace(LLAMA_70B, tied_embeddings=tied), alone, replace(H100, count=1)).min_step_s
        for tied in (False, True)
    )
    assert separate == pytest.approx(tied)
    assert separate == pytest.approx((70_553_706_496 - 128_256 * 8192) * 2 / 3350e9, rel=1e-3)


@pytest.mark.parametrize(("peak", "hops"), [(989, 4 * 80), (2500, 0)])
def test_tensor_ranks_of_several_servers_wait_for_the_network(peak: float, hops: int) -> None:
    """Eight H100 share NVLink, and 72 GB200."""
    load = InferenceWorkload(context_tokens=4096, tensor_parallel=16, engine="vllm")
    gpus = replace(H100, count=16, peak_tflops=peak, bandwidth_gb_per_s=8000)
    near, far = (speed_of(LLAMA_70B, load, replace(gpus, network=network)) for network in ("infiniband", "ethernet"))
    assert far.step_s.mid - near.step_s.mid == pytest.approx(hops * 270e-6, rel=0.05)


def test_many_sequences_have_the_range_of_what_was_left_out_and_no_wider_one() -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=256, tensor_parallel=8, engine="vllm", dtype="bf16")
    speed = speed_of(LLAMA_70B, load)
    assert speed.departures == ("sequences",)
    assert speed.step_s.high / speed.step_s.low == pytest.approx(STEP_SPREAD["unseen"] ** 2)


@pytest.mark.parametrize(
    ("change", "departure"),
    [
        ({"peak_tflops": None}, "peak"),
        ({"link": "pcie"}, "link"),
    ],
)
def test_what_was_not_measured_makes_the_range_wider(change: dict[str, object], departure: str) -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=16, tensor_parallel=8, engine="vllm", dtype="bf16")
    known = speed_of(LLAMA_70B, load)
    other = speed_of(LLAMA_70B, load, replace(H100, **change))  # type: ignore[arg-type]  # fields by name
    assert known.departures == ()
    assert other.departures == (departure,)
    widths = [speed.step_s.high / speed.step_s.low for speed in (known, other)]
    assert widths[1] == pytest.approx(widths[0] * 1.2**2)


@pytest.mark.parametrize(
    ("shape", "gpus", "departures"),
    [
        (LLAMA_70B, replace(H100, bandwidth_gb_per_s=864.0), ("gpu",)),
        (replace(LLAMA_70B, layers=79), H100, ("model",)),
        (LLAMA_70B, replace(H100, bandwidth_gb_per_s=5300.0, peak_tflops=1307.4), ("vendor",)),
        (LLAMA_70B, replace(H100, bandwidth_gb_per_s=6000.0, peak_tflops=1307.4), ("gpu", "vendor")),
    ],
)
def test_models_and_gpus_without_runs_have_the_range_of_those_left_out(
    shape: Architecture, gpus: Gpus, departures: tuple[str, ...]
) -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=16, tensor_parallel=8, engine="vllm", dtype="bf16")
    speed = speed_of(shape, load, gpus)
    assert speed.departures == departures
    assert speed.step_s.high / speed.step_s.mid == pytest.approx(STEP_SPREAD["unseen"])
    assert speed.step_s.mid / speed.step_s.low == pytest.approx(STEP_SPREAD["unseen"])


def test_a_gpu_of_amd_takes_longer_than_its_figures_say_the_most_with_latent_attention() -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=16, tensor_parallel=8, engine="sglang", dtype="bf16")
    load = replace(load, arrivals="burst")  # without the host's part, which the factor of AMD's GPUs has
    gpus = [replace(H100, bandwidth_gb_per_s=5300.0, peak_tflops=peak) for peak in (1250.0, 1307.4)]
    times = [speed_of(shape, load, gpu).step_s for shape in (LLAMA_70B, LATENT) for gpu in gpus]
    assert 1.3 < times[1].mid / times[0].mid < 2 < times[3].mid / times[2].mid


def test_a_burst_waits_for_its_prompts_and_steady_requests_only_for_steps() -> None:
    load = InferenceWorkload(prompt_tokens=4096, output_tokens=512, concurrency=64, tensor_parallel=8, engine="vllm")
    steady, burst = (speed_of(LLAMA_70B, replace(load, arrivals=arrivals)) for arrivals in ("steady", "burst"))
    assert steady.step_s.mid - burst.step_s.mid == pytest.approx(STEP.host_ms * 1e-3)
    assert steady.first_token_s is not None
    assert burst.first_token_s is not None
    alone = speed_of(LLAMA_70B, replace(load, concurrency=1)).first_token_s
    assert alone is not None
    assert steady.first_token_s.mid < alone.mid + 2 * steady.step_s.mid
    assert burst.first_token_s.mid > 2 * steady.first_token_s.mid


def test_a_request_alone_has_no_prompts_of_others_beside_it() -> None:
    load = InferenceWorkload(prompt_tokens=28_000, output_tokens=256, concurrency=1, tensor_parallel=8, engine="vllm")
    long, short = (speed_of(LLAMA_70B, replace(load, output_tokens=tokens)) for tokens in (2, 256))
    assert long.step_s.mid == pytest.approx(short.step_s.mid, rel=0.01)


def test_an_engine_that_is_not_named_makes_the_range_wider() -> None:
    load = InferenceWorkload(prompt_tokens=2000, output_tokens=100, concurrency=64, tensor_parallel=8)
    unnamed, named = speed_of(EXPERTS, load), speed_of(EXPERTS, replace(load, engine="vllm"))
    assert unnamed.step_s.mid == named.step_s.mid
    assert unnamed.step_s.low < named.step_s.low
    assert unnamed.step_s.high > named.step_s.high


@pytest.mark.parametrize(
    ("given_tokens", "lengths"),
    [
        ({}, None),
        ({"context_tokens": 1536}, Lengths(1024, 1024, 1536.0)),
        ({"prompt_tokens": 1000, "output_tokens": 100}, Lengths(1000, 100, 1050.0)),
        ({"prompt_tokens": 1000, "output_tokens": 100, "context_tokens": 1100}, Lengths(1000, 100, 1050.0)),
        ({"prompt_tokens": 1000, "output_tokens": 100, "context_tokens": 900}, Lengths(1000, 100, 900.0)),
        ({"prompt_tokens": 1000, "context_tokens": 4000}, Lengths(1000, 1000, 4000.0)),
        ({"output_tokens": 1000, "context_tokens": 4000}, Lengths(3500, 1000, 4000.0)),
        ({"prompt_tokens": 1000}, Lengths(1000, 1000, 1500.0)),
    ],
)
def test_lengths_that_are_not_given_follow_from_the_others(
    given_tokens: dict[str, Any], lengths: Lengths | None
) -> None:
    assert request_lengths(InferenceWorkload(**given_tokens)) == lengths


def with_preset(name: str, prompt: int) -> tuple[ServingSetup, ServingSpeed]:
    body = {
        "model": name,
        "inference": {"prompt_tokens": prompt, "output_tokens": 512, "tensor_parallel": 8, "engine": "vllm"},
        "gpus": {"count": 8, "bandwidth_gb_per_s": 8000, "peak_tflops": 2250},
    }
    setup = preset_setup(body)
    speed = serving_speed(setup, weights_range(setup), kv_cache_of(setup))
    assert speed is not None
    return setup, speed


def test_a_vision_tower_is_not_taken_for_experts() -> None:
    setup, speed = with_preset("qwen3.5-27b", 1024)
    assert expert_shares(setup) == (0, 0, 0.0)
    assert speed.departures == ("model",)


def test_sparse_attention_reads_what_its_index_selects() -> None:
    dense, sparse = (
        [with_preset(name, prompt)[1] for prompt in (1024, 120_000)] for name in ("deepseek-v3", "deepseek-v3.2")
    )
    grown = [longer.min_step_s - shorter.min_step_s for shorter, longer in (dense, sparse)]
    assert 0 < grown[1] < grown[0] / 3
    assert dense[1].first_token_s is not None
    assert sparse[1].first_token_s is not None
    assert sparse[1].first_token_s.mid < dense[1].first_token_s.mid


def test_sglang_launches_one_pass_for_all_prompts_that_came_since_the_last_step() -> None:
    def read_s(concurrency: int, shape: Architecture = EXPERTS) -> float:
        load = InferenceWorkload(prompt_tokens=1000, output_tokens=100, concurrency=concurrency, engine="sglang")
        work = request_work(setup_of(shape, load))
        return prompts_time(work, STEP) - prompts_time(work, replace(STEP, sglang_layer_us=0.0))

    launched_s = 80 * STEP.sglang_layer_us * 1e-6
    assert read_s(2) == pytest.approx(0.01 * launched_s, rel=0.01)
    assert read_s(501) == pytest.approx((1 - exp(-5)) * launched_s)
    assert read_s(501, LLAMA_70B) == 0.0


def test_a_norm_over_all_heads_takes_a_third_all_reduce_of_a_layer() -> None:
    load = InferenceWorkload(context_tokens=4096, concurrency=16, tensor_parallel=8, engine="vllm")
    with_norm, without = (
        step_time(request_work(setup_of(replace(LLAMA_70B, qk_norm=norm), load)), STEP)
        for norm in ("all_heads", "per_head")
    )
    each = 80 * 3 / 2 * STEP.doubling_us * 1e-6 * (1 + STEP.vllm)
    assert with_norm - without == pytest.approx(each, rel=0.01)


def test_layers_with_a_mixer_or_an_mlp_alone_are_half_a_layer() -> None:
    """Nemotron 3 Nano has 52 layers: 23 of state, 6 of attention and 23 of experts, which alone are launched again."""
    body = {"model": "nemotron-3-nano-30b-a3b", "inference": {"prompt_tokens": 100}, "gpus": {}}
    work = request_work(preset_setup(body))
    assert (work.layers, work.expert_layers) == (52 / 2, 23)


def test_every_measured_gpu_is_recognised_by_its_id_and_by_the_figures_of_the_catalog() -> None:
    """The id decides: vendors' pages state several bandwidths of one GPU, and one for several GPUs."""
    figures: dict[str, dict[str, float]] = {}
    for path in (SEEDS / "gpus.csv", SEEDS / "clouds" / "gpus.csv"):
        with path.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                stated = {name: float(row[name]) for name in (BANDWIDTH, *PEAKS) if row.get(name)}
                figures.setdefault(row["id"], {}).update(stated)
    measured = {id_ for gpu in MEASURED_GPUS.values() for id_ in gpu.ids}
    for id_, stated in figures.items():
        for peak in (stated[name] for name in PEAKS if name in stated):
            named = Gpus(gpu_id=id_, bandwidth_gb_per_s=stated.get(BANDWIDTH), peak_tflops=peak)
            assert is_measured(named) is (id_ in measured), (id_, peak)
            assert id_ not in measured or is_measured(replace(named, gpu_id=None))
    assert measured <= figures.keys()
