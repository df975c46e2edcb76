"""Sizing by a service level: replicas and VMs for a load within targets, and properties that every answer has."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.fit.estimator.service_level import CONFIDENCE, ServiceLoad
from app.fit.estimator.workload import Confidence, Engine, InferenceWorkload, ServiceLevel
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, InvalidWorkload
from app.fit.formulas.serving_speed import BASE_MS, PREFILL_FACTOR, STEP, STEPS_IN_FLIGHT
from app.fit.placement.evaluate import evaluate
from app.fit.placement.fixes import FixFinder, may_be_fixed
from app.fit.placement.jobs import ServingJob
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, cost_figures, service_figures
from app.fit.placement.prepare import PreparedRequest
from app.fit.placement.ranking import rank
from app.fit.verdict import Rejection
from tests.fit.placement.factories import (
    LLAMA_8B,
    LLAMA_70B,
    codes,
    expect_option,
    expect_rejection,
    machine,
    prepare_request,
    prepare_service,
    service,
    vm,
)
from tests.fit.test_expert_ranks import DEEPSEEK_V3

ONE_H100 = machine(gpus=Fraction(1), domain_gpus=1)

levels = st.builds(
    service,
    input_tokens=st.integers(1, 20_000),
    output_tokens=st.integers(1, 2_000),
    ttft_ms=st.sampled_from([None, 100.0, 500.0, 3000.0]),
    tpot_ms=st.sampled_from([None, 10.0, 30.0, 100.0]),
    prefix_cache_hit=st.sampled_from([None, 0.5, 1.0]),
    peak_to_mean=st.sampled_from([None, 1.5, 4.0]),
    users=st.integers(1, 3000),
    think_time_s=st.sampled_from([None, 5.0]),
)
rates = st.builds(lambda one, rate: replace(one, users=None, requests_per_second=rate), levels, st.floats(0.001, 300))
machines = st.builds(
    machine,
    gpus=st.sampled_from([Fraction(1), Fraction(2), Fraction(8)]),
    usable_bytes=st.floats(16, 180).map(lambda gib: gib * GIB),
    domain_gpus=st.sampled_from([1, 8]),
)
shapes = st.sampled_from([LLAMA_8B, LLAMA_70B])
OF_MANY = service(users=None, requests_per_second=75.0, input_tokens=300, output_tokens=600, ttft_ms=None)
OF_EXPERTS = service(users=None, requests_per_second=60.0, input_tokens=1200, ttft_ms=None)


def load_of(option: PlacementOption) -> ServiceLoad:
    assert option.attempt.load is not None
    return option.attempt.load


def nodes(on: Machine, level: ServiceLevel, shape: Any) -> float:
    """Return the VMs that a service takes; infinite where it does not fit."""
    verdict = evaluate(vm(), on, prepare_service(level, shape))
    return verdict.attempt.nodes if isinstance(verdict, PlacementOption) else float("inf")


def test_the_times_of_a_replica_are_those_computed_by_hand() -> None:
    """8B on one H100, 1,000 tokens in and 100 out, 40 requests open, in the units of the constants."""
    option = expect_option(prepare_service(service(input_tokens=1000, output_tokens=100), LLAMA_8B), ONE_H100)
    times = load_of(option).copy.times(40)
    params, embedding = 8_030_261_248, 128_256 * 4096
    read_s = (params - embedding) * 2 / 3.35e12
    kv_s = 40 * 1050 * 131_072 / 3.35e12  # 1,000 + 100 / 2 tokens of 128 KiB
    own_s = read_s * STEP.dense_read + kv_s + (32 * STEP.layer_us + 40 * STEP.sequence_us) * 1e-6
    linear_s, attention_s = 2 * (params - embedding) * 1000 / 989e12, 2 * 32 * 256 * 1000 * 32 * 500 / 989e12
    prompt_s = linear_s * STEP.prefill_dense + attention_s * 2
    prompts_s = 40 / 100 * prompt_s * (1 + STEP.vllm)
    step_s = own_s * (1 + STEP.vllm) + prompts_s + STEP.host_ms * 1e-3
    assert times.step == pytest.approx(step_s, rel=1e-6)
    busy = prompts_s / step_s
    queue_s = prompt_s * busy / (2 * (1 - busy))
    first_s = BASE_MS * 1e-3 + prompt_s * PREFILL_FACTOR + STEPS_IN_FLIGHT * step_s + queue_s
    assert times.first_token == pytest.approx(first_s, rel=1e-6)
    assert times.request == pytest.approx(times.first_token + 100 * times.step)


def test_replicas_vms_and_cost_follow_from_the_limit_of_a_replica() -> None:
    level = service(users=None, requests_per_second=20.0, peak_to_mean=2.0, input_tokens=1000, output_tokens=100)
    option = expect_option(prepare_service(level, LLAMA_8B), ONE_H100)
    load = load_of(option)
    rate = load.replica.sequences / load.replica.times.request
    assert option.attempt.nodes == option.attempt.replicas == ceil(40 / rate)
    assert load.mean_nodes == ceil(20 / rate)
    assert load.max_requests_per_s == pytest.approx(rate * option.attempt.nodes)
    cost = cost_figures(option, "on_demand")
    assert cost.per_request is not None
    assert cost.per_million_tokens is not None
    hourly = 98.32 * option.attempt.nodes
    assert float(cost.per_request.value or 0) == pytest.approx(hourly / (20 * 3600))
    assert float(cost.per_million_tokens.value or 0) == pytest.approx(hourly / (20 * 100 * 3600) * 1e6)


def test_the_limit_is_the_largest_concurrency_within_the_targets() -> None:
    for level, limit in (
        (service(tpot_ms=30.0, ttft_ms=None), "tpot"),
        (service(tpot_ms=None, ttft_ms=400.0), "ttft"),
        (service(input_tokens=12_000, output_tokens=50, tpot_ms=60.0, ttft_ms=None), "prefill"),
        (service(tpot_ms=None, ttft_ms=None, input_tokens=100_000), "memory"),
        (service(tpot_ms=None, ttft_ms=None, input_tokens=10, output_tokens=10), "engine"),
    ):
        load = load_of(expect_option(prepare_service(level)))
        assert load.replica.limit == limit
        above = load.copy.times(load.replica.sequences + 1)
        if limit in {"tpot", "prefill"}:
            assert load.replica.times.step * 1e3 <= (level.tpot_ms or 0) < above.step * 1e3
        elif limit == "ttft":
            assert load.replica.times.first_token * 1e3 <= (level.ttft_ms or 0) < above.first_token * 1e3


def test_a_size_fails_a_target_only_by_the_low_end_of_its_time_and_says_the_range() -> None:
    def asked(ttft_ms: float | None) -> PreparedRequest:
        return prepare_service(service(users=1, tpot_ms=None, ttft_ms=ttft_ms), LLAMA_8B, max_nodes=1)

    alone = load_of(expect_option(asked(None), ONE_H100)).copy.first_token_range(1)
    between = expect_option(asked((alone.low + alone.mid) / 2 * 1e3), ONE_H100)
    assert load_of(between).replica.sequences == 1
    assert "TTFT_UNLIKELY" in between.warnings
    below = evaluate(vm(), ONE_H100, asked(alone.low * 990))
    assert isinstance(below, Rejection)
    assert f"({alone.low * 1e3:.4g} to {alone.high * 1e3:.4g}) even for one request" in below.failures[0].detail


def test_more_confidence_leaves_a_replica_fewer_requests_and_fails_where_a_range_end_misses() -> None:
    most = [
        load_of(expect_option(prepare_service(service(tpot_ms=60.0, ttft_ms=None, confidence=share)))).replica.sequences
        for share in (None, "p50", "p80", "p95")
    ]
    assert most[0] == most[1] > most[2] > most[3] >= 1
    alone = load_of(expect_option(prepare_service(service(tpot_ms=None, ttft_ms=None)))).copy.step_range(1)
    strict = service(tpot_ms=alone.high * 1e3, ttft_ms=None, confidence="p95")
    (failure,) = expect_rejection(prepare_service(strict)).failures
    assert f"at a time, {failure.required:.4g} at p95, the target is {alone.high * 1e3:g}" in failure.detail
    assert load_of(expect_option(prepare_service(replace(strict, confidence="p80")))).replica.sequences >= 1


engines = st.sampled_from([None, "vllm", "sglang", "trtllm"])


# The expected time of the slowest engine is nearly flat where prompts and outputs are a few tokens.
@given(
    st.builds(replace, st.one_of(levels, rates), output_tokens=st.integers(3, 2000), disaggregated=st.booleans()),
    st.sampled_from(list(CONFIDENCE)),
    engines,
    machines,
    st.sampled_from([LLAMA_8B, LLAMA_70B, DEEPSEEK_V3]),
)
@example(OF_MANY, "p95", "vllm", machine(), LLAMA_70B).via("its load has more requests than were measured")
@example(OF_EXPERTS, "p95", None, machine(usable_bytes=140 * GIB), DEEPSEEK_V3).via("engines differ")
def test_the_end_that_a_confidence_names_is_within_every_target_in_the_range_that_is_shown(
    level: ServiceLevel, confidence: Confidence, engine: Engine | None, on: Machine, shape: Architecture
) -> None:
    level, use = replace(level, confidence=confidence), InferenceWorkload(dtype="fp8", engine=engine)
    verdict = evaluate(vm(), on, prepare_service(level, shape, use))
    if not isinstance(verdict, PlacementOption):
        return
    assert load_of(verdict).sequences >= 1
    assert verdict.speed is not None
    assert verdict.speed.step_s is not None
    assert verdict.speed.first_token_s is not None
    for target_ms, shown in ((level.tpot_ms, verdict.speed.step_s), (level.ttft_ms, verdict.speed.first_token_s)):
        end = shown.mid * (shown.high / shown.mid) ** CONFIDENCE[confidence]
        assert target_ms is None or end * 1e3 <= target_ms * (1 + 1e-9)


def test_a_cached_prefix_is_not_read_again() -> None:
    whole, half = (
        load_of(expect_option(prepare_service(service(prefix_cache_hit=hit)))).copy.times(16) for hit in (None, 0.5)
    )
    assert half.prompts < 0.55 * whole.prompts
    assert half.first_token < whole.first_token
    assert nodes(machine(), service(users=2000, prefix_cache_hit=0.8), LLAMA_70B) < nodes(
        machine(), service(users=2000), LLAMA_70B
    )


def test_targets_within_the_range_of_a_time_are_warned_of() -> None:
    loose = expect_option(prepare_service(service(users=4, ttft_ms=60_000.0, tpot_ms=1000.0)))
    assert not {"TPOT_UNCERTAIN", "TTFT_UNCERTAIN"} & set(loose.warnings)
    step = loose.speed.step_s if loose.speed else None
    assert step is not None
    close = expect_option(prepare_service(service(users=4, ttft_ms=60_000.0, tpot_ms=step.mid * 1.01e3)))
    assert "TPOT_UNCERTAIN" in close.warnings


def test_a_load_that_the_vms_do_not_bear_names_how_many_do() -> None:
    (failure,) = expect_rejection(prepare_service(service(users=1000), max_nodes=2)).failures
    assert (failure.constraint, failure.code, failure.available) == ("max_nodes", "MAX_NODES", 2)
    assert failure.required == nodes(machine(), service(users=1000), LLAMA_70B)


def test_whole_numbers_of_a_fix_have_no_decimal_point() -> None:
    prepared = prepare_service(service(requests_per_day=1e9), max_nodes=1)
    fixes = FixFinder(prepared).find_fixes(vm(), machine(), expect_rejection(prepared))
    lower = next(change for fix in fixes for change in fix.changes if change.field == "requests_per_day")
    assert isinstance(lower.value, int)
    assert lower.text == f"requests_per_day <= {lower.value}"


def test_figures_that_a_service_needs_are_not_guessed() -> None:
    assert codes(expect_rejection(prepare_service(service()), machine(peaks={}))) == {"GPU_UNKNOWN"}
    assert codes(expect_rejection(prepare_service(service()), machine(peaks={}, described=True))) == {"GPU_UNKNOWN"}


@pytest.mark.parametrize(
    ("use", "field"),
    [
        (InferenceWorkload(concurrency=8), "inference.concurrency"),
        (InferenceWorkload(context_tokens=2299), "inference.context_tokens"),
        (InferenceWorkload(prompt_tokens=2000), "inference.prompt_tokens"),
        (InferenceWorkload(output_tokens=300), "inference.output_tokens"),
    ],
)
def test_a_workload_that_contradicts_the_service_is_refused(use: InferenceWorkload, field: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        prepare_service(service(), use=use)
    assert refused.value.field == field
    assert "serving" in refused.value.detail


@given(levels | rates, machines, shapes, st.floats(1.01, 3))
def test_a_stricter_target_never_needs_fewer_vms(level: ServiceLevel, on: Machine, shape: Any, factor: float) -> None:
    for field in ("ttft_ms", "tpot_ms"):
        target = getattr(level, field)
        changed: dict[str, Any] = {field: target / factor if target is not None else 50.0}
        stricter = replace(level, **changed)
        assert nodes(on, stricter, shape) >= nodes(on, level, shape)


@given(levels | rates, machines, shapes, st.floats(1.01, 5))
def test_a_larger_load_never_needs_fewer_vms(level: ServiceLevel, on: Machine, shape: Any, factor: float) -> None:
    if level.users is not None:
        larger = replace(level, users=ceil(level.users * factor))
    else:
        larger = replace(level, requests_per_second=(level.requests_per_second or 0) * factor)
    assert nodes(on, larger, shape) >= nodes(on, level, shape)


@given(levels | rates, machines, shapes)
def test_every_option_bears_its_load_within_targets_bounds_and_memory(
    level: ServiceLevel, on: Machine, shape: Any
) -> None:
    prepared = prepare_service(level, shape)
    verdict = evaluate(vm(), on, prepared)
    if not isinstance(verdict, PlacementOption):
        return
    load, speed, job = load_of(verdict), verdict.speed, prepared.job
    assert isinstance(job, ServingJob)
    assert speed is not None
    assert speed.step_s is not None
    assert speed.first_token_s is not None
    assert 1 <= load.sequences <= load.replica.sequences
    assert verdict.attempt.required_bytes <= verdict.attempt.budget_bytes
    for code, time, target in (
        ("TPOT_UNLIKELY", speed.step_s, level.tpot_ms),
        ("TTFT_UNLIKELY", speed.first_token_s, level.ttft_ms),
    ):
        if code in verdict.warnings:
            assert load.replica.sequences == 1
            assert time.low * 1e3 <= (target or 0) < time.mid * 1e3
        else:
            assert time.mid * 1e3 <= (target or float("inf")) * (1 + 1e-9)
    assert speed.step_s.low >= (speed.min_step_s or 0)
    figures = service_figures(verdict)
    assert figures is not None
    # Little's law: requests a second x seconds of a request = requests that are open.
    at_most = load.max_requests_per_s * load.replica.times.request
    assert at_most == pytest.approx(verdict.attempt.replicas * load.replica.sequences)
    assert load.peak_requests_per_s <= load.max_requests_per_s * (1 + 1e-6)
    assert load.mean_requests_per_s <= load.peak_requests_per_s * (1 + 1e-9)
    assert figures.nodes_at_mean <= figures.nodes_at_peak <= verdict.attempt.nodes
    times = load.copy.times(load.sequences)
    assert (speed.step_s.mid, speed.first_token_s.mid) == pytest.approx((times.step, times.first_token))


@given(levels | rates, machines, shapes, st.integers(1, 4))
def test_every_fix_makes_the_service_fit(level: ServiceLevel, on: Machine, shape: Any, most: int) -> None:
    prepared = prepare_service(level, shape, max_nodes=most)
    verdict = evaluate(vm(), on, prepared)
    if not isinstance(verdict, Rejection):
        return
    finder = FixFinder(prepared)
    for fix in finder.find_fixes(vm(), on, verdict):
        request = prepared.request
        for change in fix.changes:
            request = request.with_change(change.part, change.field, change.value)
        assert request.serving is not None
        assert isinstance(request.workload, InferenceWorkload)
        asked = prepare_service(
            request.serving, shape, request.workload, max_nodes=request.constraints.max_nodes,
            checkpoint_on_local_disk=request.constraints.checkpoint_on_local_disk,
        )  # fmt: skip
        assert isinstance(evaluate(vm(), on, asked), PlacementOption), fix.text


def test_no_fix_asks_for_more_vms_than_a_request_may() -> None:
    prepared = prepare_service(service(requests_per_second=500_000.0))
    rejection = expect_rejection(prepared)
    assert rejection.failures[0].required is not None
    assert rejection.failures[0].required > 10_000
    fixes = FixFinder(prepared).find_fixes(vm(), machine(), rejection)
    assert fixes
    assert not any("node" in fix.text for fix in fixes)


@pytest.mark.parametrize("described", [False, True])
@pytest.mark.parametrize(("chip", "why"), [("7.5", "does not compute in fp8"), ("gfx1101", "for graphics")])
def test_the_peak_of_a_type_that_a_gpu_does_not_compute_in_is_not_called_unknown(
    chip: str, why: str, described: bool
) -> None:
    on = machine(capability=chip, peaks={"fp32": 8e12, "fp16": 65e12}, described=described)
    split = InferenceWorkload(dtype="fp8", expert_parallel=8)
    rejection = expect_rejection(prepare_service(service(), DEEPSEEK_V3, split), on)
    assert codes(rejection) == {"DTYPE_UNSUPPORTED"}
    assert why in rejection.failures[0].detail


@pytest.mark.parametrize(
    ("infiniband", "why"), [(False, "has no InfiniBand"), (None, "no source says that it has InfiniBand")]
)
def test_a_replica_of_a_service_spans_vms_over_infiniband_unless_ethernet_is_asked_for(
    infiniband: bool | None, why: str
) -> None:
    single = machine(gpus=Fraction(1), domain_gpus=1, infiniband=infiniband)
    level = service(tpot_ms=200.0, ttft_ms=4000.0)
    rejection = expect_rejection(prepare_service(level), single)
    assert {"NO_INFINIBAND", "GPU_MEMORY_PER_GPU"} == codes(rejection)
    (failure,) = (one for one in rejection.failures if one.code == "NO_INFINIBAND")
    assert failure.detail == f"one replica needs 3 VMs, and {why}"
    fixes = FixFinder(prepare_service(level)).find_fixes(vm(), single, rejection)
    assert "require_infiniband=false" in {fix.text for fix in fixes}
    over_ethernet = expect_option(prepare_service(level, require_infiniband=False), single)
    assert over_ethernet.attempt.parallelism.pipeline > 1
    assert "NODES_WITHOUT_INFINIBAND" in over_ethernet.warnings
    joined = replace(single, infiniband=True)
    assert expect_option(prepare_service(level), joined).attempt.parallelism.pipeline > 1


def test_stages_on_vms_with_a_slower_network_answer_later_and_have_no_speed_where_its_rate_is_unknown() -> None:
    single, level = machine(gpus=Fraction(1), domain_gpus=1), service(tpot_ms=200.0, ttft_ms=4000.0)
    fast, slow = (
        expect_option(prepare_service(level), replace(single, network_gbps=gbps)).speed for gbps in (400.0, 12.5)
    )
    assert fast is not None
    assert slow is not None
    assert fast.first_token_s is not None
    assert slow.first_token_s is not None
    # 2,000 tokens of 16 KiB to each of the stages, at 50 and at 1.6 GB/s; the fit has a factor of 1.83 on what is sent.
    assert slow.first_token_s.mid - fast.first_token_s.mid > 2000 * 16384 / 1.6e9
    unknown = replace(single, network_gbps=None)
    (failure, _) = expect_rejection(prepare_service(level), unknown).failures
    assert (failure.code, failure.detail) == (
        "NETWORK_UNKNOWN",
        "one replica needs 3 VMs, and no source says how fast the network between them is",
    )
    option = expect_option(prepare_request(InferenceWorkload(concurrency=32), max_nodes=8), unknown)
    assert option.speed is None
    assert "NETWORK_UNKNOWN" in option.warnings


def test_replicas_of_a_service_on_vms_of_their_own_need_no_infiniband() -> None:
    single = machine(gpus=Fraction(1), domain_gpus=1, infiniband=False)
    attempt = expect_option(prepare_service(service(users=5000), LLAMA_8B), single).attempt
    assert attempt.nodes == attempt.replicas > 1


def test_a_replica_of_a_service_spans_the_vms_of_a_rack_over_nvlink() -> None:
    rack = machine(gpus=Fraction(1), domain_gpus=18, domain_vms=18, infiniband=None)
    option = expect_option(prepare_service(service()), rack)
    assert option.attempt.parallelism.gpus > 1
    assert "NODES_WITHOUT_INFINIBAND" not in option.warnings


def test_sizes_that_a_change_helps_are_nearer_than_those_that_none_does() -> None:
    # 671 GB of weights are 335 in 4 bits, more than two H200 have; eight bear the load on more VMs than are allowed.
    level = service(users=None, requests_per_second=40.0, input_tokens=4000, output_tokens=800, tpot_ms=30.0)
    prepared = prepare_service(level, DEEPSEEK_V3, max_nodes=2)
    few = machine(gpus=Fraction(2), domain_gpus=2, usable_bytes=140 * GIB, bandwidth=4.8e12, infiniband=False)
    sizes = {"few": few, "many": replace(few, gpus=Fraction(8), domain_gpus=8, infiniband=True)}
    _, rejections = rank([(vm(name), on) for name, on in sizes.items()], prepared)
    shares = {rejection.size: rejection.failures[0].share_missing for rejection in rejections}
    assert list(shares) == ["many", "few"]
    assert shares["many"] > shares["few"]
    finder = FixFinder(prepared)
    fixes = {one.size: finder.find_fixes(vm(one.size), sizes[one.size], one) for one in rejections}
    assert fixes["few"] == ()
    assert len(fixes["many"]) == 2


@given(shapes, levels, machines, st.integers(1, 4), st.booleans())
def test_a_size_that_is_said_to_be_beyond_any_change_has_no_fix(
    shape: Any, level: ServiceLevel, on: Machine, most: int, infiniband: bool
) -> None:
    prepared, joined = prepare_service(level, shape, max_nodes=most), replace(on, infiniband=infiniband)
    verdict = evaluate(vm(), joined, prepared)
    if isinstance(verdict, Rejection) and not may_be_fixed(verdict.failures, joined, prepared):
        assert FixFinder(prepared).find_fixes(vm(), joined, verdict) == ()


def test_no_fix_gives_up_more_than_another_for_nothing() -> None:
    prepared = prepare_service(service(users=1, tpot_ms=3.0), budget_usd_per_month=Decimal(1000))
    rejection = expect_rejection(prepared)
    assert codes(rejection) == {"TPOT"}
    fixes = FixFinder(prepared).find_fixes(vm(), machine(), rejection)
    beside_target = [fix.changes[1:] for fix in fixes if fix.changes[0].field == "tpot_ms"]
    assert len(beside_target) == len(set(beside_target)) == 2
