"""Training on VMs: precisions that a GPU has, speed by precision and link, memory of shorter sequences, spot."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder
from app.fit.placement.option import PlacementOption, cost_figures, explain, speed_figures
from app.fit.placement.prepare import prepare
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    codes,
    expect_option,
    expect_rejection,
    machine,
    prepare_request,
    serving,
    training,
    vm,
)

H100 = machine()
B200 = machine(capability="10.0", peaks={"fp32": 80e12, "bf16": 2.25e15, "fp8": 4.5e15, "fp4": 9e15}, bandwidth=8e12)


def tokens_per_s(option: PlacementOption) -> float:
    assert option.speed is not None
    return option.speed.tokens_per_s.mid


def test_each_narrower_precision_of_a_gpu_is_faster() -> None:
    rates = [
        tokens_per_s(expect_option(prepare_request(training(precision=one), LLAMA_8B), B200))
        for one in ("bf16", "mxfp8", "nvfp4")
    ]
    assert rates == sorted(rates)
    assert rates[2] < 4 * rates[0]


@pytest.mark.parametrize("precision", ["mxfp8", "nvfp4"])
def test_a_precision_that_the_gpu_has_not_is_rejected_and_fixed_by_fp8(precision: str) -> None:
    prepared = prepare_request(training(precision=precision), LLAMA_8B)
    rejection = expect_rejection(prepared, H100)
    assert codes(rejection) == {"DTYPE_UNSUPPORTED"}
    (fix,) = FixFinder(prepared).find_fixes(vm(), H100, rejection)
    assert fix.text == "precision=fp8"
    fixed = prepare_request(training(precision="fp8"), LLAMA_8B)
    assert isinstance(evaluate(vm(), H100, fixed), PlacementOption)


def test_pcie_and_mi300x_take_more_time_than_their_peak_says() -> None:
    prepared = prepare_request(training(), LLAMA_8B)
    fast = tokens_per_s(expect_option(prepared, H100))
    assert tokens_per_s(expect_option(prepared, machine(domain_gpus=2))) < fast
    assert tokens_per_s(expect_option(prepared, machine(capability="gfx942"))) < fast


@pytest.mark.parametrize(("stage", "shape"), [(1, LLAMA_8B), (3, LLAMA_70B)])
def test_vms_that_train_wait_for_what_a_slow_network_sends(stage: int, shape: Architecture) -> None:
    job = training(zero_stage=stage, recompute="full", global_batch=64)
    usual, fast, slow, unknown = (
        expect_option(prepare_request(job, shape, min_nodes=4, max_nodes=8), machine(network_gbps=gbps))
        for gbps in (400.0, 800.0, 1.5, None)
    )
    assert tokens_per_s(fast) == tokens_per_s(usual)  # both hide behind the backward pass
    assert tokens_per_s(slow) < tokens_per_s(usual) / 2
    assert unknown.speed is None
    assert "NETWORK_UNKNOWN" in unknown.warnings
    # Gradients and weights of 16 bits, sent by the eight GPUs of a VM together.
    least_s = 4 * 8.03e9 / (8 * 1.5e9 / 8) * (1 - 8 / slow.attempt.gpus)
    assert 64 * 4096 / tokens_per_s(slow) > least_s


@pytest.mark.parametrize(("given", "said"), [({}, True), ({"tokens_per_s_per_gpu": 900.0}, False)])
def test_a_speed_that_is_missing_for_lack_of_a_peak_is_explained(given: dict[str, float], said: bool) -> None:
    job = training(recipe="fp32_adam", recompute="full", **given)
    option = expect_option(prepare_request(job, LLAMA_8B), machine(peaks={"bf16": 121e12}))
    assert (option.speed is None) is said
    assert ("PEAK_UNKNOWN" in option.warnings) is said
    assert ("no speed, as no source states its peak" in explain(option)) is said


def test_a_prompt_without_a_time_for_lack_of_a_peak_is_explained() -> None:
    job = serving(dtype="fp32", context_tokens=None, prompt_tokens=2000, output_tokens=100)
    for peaks, warned in (({"bf16": 121e12}, True), ({"fp32": 30e12}, False)):
        option = expect_option(prepare_request(job, LLAMA_8B), machine(peaks=peaks))
        assert option.speed is not None
        assert (option.speed.first_token_s is None) is warned
        assert ("PEAK_UNKNOWN" in option.warnings) is warned


def test_shorter_sequences_never_need_more_vms() -> None:
    rack = machine(
        gpus=Fraction(4), usable_bytes=277 * GIB, domain_gpus=72, domain_vms=18, capability="10.3",
        memory_bytes=864 * GIB,
    )  # fmt: skip
    nodes = []
    for sequence in (512, 1024, 2048, 4096, 8192):
        job = training(sequence_tokens=sequence, recompute="selective")
        nodes.append(expect_option(prepare_request(job, LLAMA_70B, max_nodes=64), rack).attempt.nodes)
    assert nodes == sorted(nodes)


def test_a_loss_in_chunks_is_proposed_where_the_logits_do_not_fit() -> None:
    job = training(sequence_tokens=131_072, recompute="full", zero_stage=3, method="lora", cross_entropy="full")
    prepared = prepare_request(job, LLAMA_8B)
    small = machine(usable_bytes=60 * GIB)
    rejection = expect_rejection(prepared, small)
    assert codes(rejection) == {"GPU_MEMORY_PER_GPU"}
    assert "cross_entropy=chunked" in [fix.text for fix in FixFinder(prepared).find_fixes(vm(), small, rejection)]


@pytest.mark.parametrize(("method", "lighter"), [(None, "lora"), ("lora", "qlora"), ("qlora", None)])
def test_a_lighter_method_is_proposed_where_the_weights_do_not_fit(method: str | None, lighter: str | None) -> None:
    job = training(method=method, recompute="full", zero_stage=3)
    memory = {None: 60, "lora": 20, "qlora": 3}[method]
    prepared, small = prepare_request(job, LLAMA_8B), machine(gpus=Fraction(1), usable_bytes=memory * GIB)
    rejection = expect_rejection(prepared, small)
    assert codes(rejection) == {"GPU_MEMORY_PER_GPU"}
    fixes = [fix for fix in FixFinder(prepared).find_fixes(vm(), small, rejection) if "method=" in fix.text]
    assert [fix.text for fix in fixes] == ([f"method={lighter}"] if lighter is not None else [])
    if lighter is not None:
        expect_option(prepare_request(replace(job, method=lighter), LLAMA_8B), small)


def test_spot_costs_what_evictions_and_checkpoints_add() -> None:
    prepared = prepare_request(training(), LLAMA_8B)
    option = expect_option(prepared)
    assert option.interruptions is not None
    assert option.interruptions.checkpoint_bytes == pytest.approx(14 * 8_030_261_248)
    on_demand, spot = cost_figures(option, "on_demand"), cost_figures(option, "spot")
    assert option.speed is not None
    assert option.speed.hours is not None
    assert on_demand.per_job is not None
    assert spot.per_job is not None
    hours = option.speed.hours.mid
    assert float(on_demand.per_job.mid or 0) == pytest.approx(98.32 * hours)
    assert float(spot.per_job.mid or 0) > 30 * hours * (1 + option.interruptions.overhead)
    assumptions = Assumptions()
    prepare(prepared.request, assumptions)
    assert {"pricing.spot_evictions_per_hour", "pricing.checkpoint_gb_per_s"} <= {
        one.field for one in assumptions.recorded
    }


def test_a_given_overhead_of_spot_replaces_evictions() -> None:
    prepared = prepare_request(training(), LLAMA_8B)
    priced = replace(prepared.request, pricing=replace(prepared.request.pricing, spot_overhead=Decimal(0)))
    option = expect_option(prepare(priced, Assumptions()))
    assert option.interruptions is None
    spot = cost_figures(option, "spot").per_job
    assert spot is not None
    assert option.speed is not None
    assert option.speed.hours is not None
    assert float(spot.mid or 0) == pytest.approx(30 * option.speed.hours.mid)


def test_what_is_the_same_at_both_ends_is_said_once() -> None:
    text = explain(expect_option(prepare_request(training(tokens=None, gpu_hours=Decimal(100)), LLAMA_8B)))
    assert "; takes 12.5 hours; " in text
    assert text.endswith(", 1,229.00 USD for the job.")  # 12.5 x 98.32
    assert " to " in explain(expect_option(prepare_request(training(), LLAMA_8B)))


@pytest.mark.parametrize("stated", [{"tokens": None, "gpu_hours": Decimal(100)}, {"tokens_per_s_per_gpu": 10_000}])
def test_what_follows_from_a_stated_length_or_rate_is_exact_but_on_spot_vms(stated: dict[str, object]) -> None:
    option = expect_option(prepare_request(training(**stated), LLAMA_8B))
    speed, on_demand = speed_figures(option), cost_figures(option, "on_demand").per_job
    assert speed is not None
    assert speed.hours is not None
    assert on_demand is not None
    assert (speed.hours.certainty, on_demand.certainty) == ("exact", "exact")
    assert on_demand.value == pytest.approx(float(speed.hours.value or 0) * 98.32)
    spot = cost_figures(option, "spot").per_job
    assert spot is None or spot.certainty == "estimate"


@pytest.mark.parametrize(("nodes", "said"), [(1, "hours on 1 VM, 1 are allowed"), (2, "hours on 2 VMs, 1 are allowed")])
def test_a_training_that_takes_too_long_says_on_how_many_vms(nodes: int, said: str) -> None:
    limits = {"max_hours": 1.0, "min_nodes": nodes, "max_nodes": nodes}
    (failure,) = expect_rejection(prepare_request(training(), LLAMA_8B, **limits)).failures
    assert failure.detail.endswith(said)
