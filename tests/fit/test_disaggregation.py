"""Prefill and decoding on replicas of their own: queues, the way of the cache, and when it takes fewer replicas."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from app.fit.estimator.estimate import estimate_serving
from app.fit.estimator.speed_model import MAX_BUSY, most_busy, wait_s
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement.option import service_figures
from app.fit.results import DisaggregationFigures, Estimate, ServiceReport
from tests.fit.placement.factories import LLAMA_70B, expect_option, machine, prepare_service, service

H100 = Gpus(count=8, usable_gib=79.6, bandwidth_gb_per_s=3350.0, peak_tflops=1979.0, link="nvlink")
FP8 = InferenceWorkload(tensor_parallel=4, dtype="fp8")
LONG: dict[str, Any] = {
    "input_tokens": 6000,
    "output_tokens": 300,
    "requests_per_second": 20.0,
    "ttft_ms": 1500.0,
    "tpot_ms": 20.0,
}
SHORT = LONG | {"input_tokens": 500, "output_tokens": 1000}


def answer(gpus: Gpus = H100, **level: Any) -> Estimate:
    return estimate_serving(LLAMA_70B, FP8, gpus, Assumptions(), service(**level))


def report(**level: Any) -> ServiceReport:
    found = answer(**level).serving
    assert found is not None
    assert found.meets_targets
    return found


def parts(**level: Any) -> DisaggregationFigures:
    found = report(**level, disaggregated=True).disaggregation
    assert found is not None
    return found


def test_a_prompt_waits_half_of_its_reading_where_replicas_read_for_half_of_the_time() -> None:
    # M/D/1: S u / (2 (1 - u)) with S = 0.2 s and u = 0.5.
    assert wait_s(0.2, 0.5) == pytest.approx(0.1)
    assert wait_s(0.2, 0.8) == pytest.approx(0.4)
    assert most_busy(0.2, spare_s=0.1) == pytest.approx(0.5)
    assert most_busy(0.2, spare_s=60) == MAX_BUSY


def test_long_prompts_and_a_strict_target_take_fewer_replicas_and_short_prompts_no_fewer() -> None:
    assert (report(**LONG, disaggregated=True).replicas or 0) < (report(**LONG).replicas or 0) / 1.5
    assert (report(**SHORT, disaggregated=True).replicas or 0) >= (report(**SHORT).replicas or 0)
    assert report(**LONG).disaggregation is None


def test_replicas_of_both_kinds_bear_the_peak_and_are_paid_for() -> None:
    level = LONG | {"peak_to_mean": 2.0}
    found, of_kinds = report(**level, disaggregated=True), parts(**level)
    assert of_kinds.prefill_replicas + of_kinds.decode_replicas == found.replicas
    assert of_kinds.prefill_replicas_at_mean + of_kinds.decode_replicas_at_mean == found.replicas_at_mean
    assert found.gpus == 4 * (found.replicas or 0)
    assert found.requests_per_s is not None
    assert (found.requests_per_s.mid or 0) >= 40
    assert 0 < of_kinds.prefill_busy <= MAX_BUSY
    priced = answer(replace(H100, usd_per_gpu_hour=Decimal(10)), **level, disaggregated=True).cost
    assert priced is not None
    assert priced.per_hour.value == 10 * (found.gpus or 0)


def test_a_step_of_a_replica_that_generates_has_no_prompts_of_others() -> None:
    usual, separate = answer(**LONG), answer(**LONG, disaggregated=True)
    steps = []
    for found in (usual, separate):
        assert found.inference is not None
        assert found.inference.decode is not None
        assert found.serving is not None
        steps.append((found.serving.concurrency_per_replica, found.inference.decode.expected_step.mid or 0))
    # More than five times the requests, and the step is no longer.
    assert steps[1][0] > 5 * steps[0][0]
    assert steps[1][1] <= 20
    assert separate.inference is not None
    assert separate.inference.decode is not None
    assert separate.inference.ttft is not None
    assert separate.serving is not None
    assert separate.serving.disaggregation is not None
    evidence = separate.inference.decode.expected_step.evidence
    assert evidence is not None
    assert (evidence.family, evidence.outside) == ("decode_step_disaggregated", ("disaggregated",))
    answered = separate.serving.requests_per_s  # whatever limits it, its range is not a point
    assert answered is not None
    assert float(answered.low or 0) < 0.9 * float(answered.mid or 0)
    assert float(answered.high or 0) > 1.1 * float(answered.mid or 0)
    for unmeasured in (separate.inference.ttft.evidence, separate.serving.disaggregation.kv_transfer.evidence):
        assert unmeasured is not None
        assert unmeasured.n == 0


def test_the_cache_of_a_prompt_moves_at_the_speed_of_the_network() -> None:
    # 6,000 tokens x 80 layers x 2 x 8 heads x 128 x 2 bytes over four GPUs, and a latency; TCP reaches 80 %.
    of_a_gpu = 6000 * 80 * 2 * 8 * 128 * 2 / 4
    fast = answer(replace(H100, network="infiniband"), **LONG, disaggregated=True).serving
    slow = answer(replace(H100, network="ethernet", network_gbps=100), **LONG, disaggregated=True).serving
    assert fast is not None
    assert slow is not None
    assert fast.disaggregation is not None
    assert slow.disaggregation is not None
    assert fast.disaggregation.kv_transfer.mid == pytest.approx(of_a_gpu / 50e9 + 30e-6)
    assert slow.disaggregation.kv_transfer.mid == pytest.approx(of_a_gpu / 10e9 + 300e-6)


@pytest.mark.parametrize("users", [3, 50, 2000])
def test_users_are_answered_as_fast_as_their_requests_come(users: int) -> None:
    level = {name: value for name, value in LONG.items() if name != "requests_per_second"} | {"users": users}
    found = report(**level, disaggregated=True)
    assert found.requests_per_s is not None
    assert found.peak_requests_per_s is not None
    assert float(found.peak_requests_per_s.mid or 0) <= float(found.requests_per_s.mid or 0) * (1 + 1e-9)


def test_a_target_that_leaves_no_time_to_wait_is_shared_with_shorter_steps() -> None:
    strict, loose = (
        report(**LONG | {"ttft_ms": ttft, "tpot_ms": 50.0}, disaggregated=True) for ttft in (400.0, 1500.0)
    )
    assert strict.limited_by == "ttft"
    assert (strict.replicas or 0) > (loose.replicas or 0)


def test_the_search_finds_the_replicas_of_the_estimate_for_the_same_split() -> None:
    level = service(**LONG, disaggregated=True)
    prepared = prepare_service(level, use=replace(FP8, pipeline_parallel=1))
    option = expect_option(prepared, machine(usable_bytes=79.6 * GIB))
    searched = service_figures(option)
    found = parts(**LONG)
    assert searched is not None
    assert searched.disaggregation is not None
    assert searched.disaggregation.prefill_replicas == found.prefill_replicas
    # The search pays for whole VMs, and uses all replicas on them.
    assert found.decode_replicas <= searched.disaggregation.decode_replicas <= found.decode_replicas + 1
    assert option.speed is not None
    assert option.speed.first_token_s is not None
    assert option.speed.first_token_s.mid <= 1.5
