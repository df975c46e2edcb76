"""A service on one placement: the replicas that its load takes, and its agreement with the search of POST /fit."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.estimator.estimate import estimate_serving
from app.fit.estimator.service_level import CONFIDENCE
from app.fit.estimator.workload import Confidence, Engine, Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.quantities import GIB, Assumptions, InvalidWorkload
from app.fit.placement.option import service_figures
from app.fit.results import Estimate, ServiceReport
from tests.fit.placement.factories import LLAMA_70B, expect_option, machine, prepare_service, service
from tests.fit.test_expert_ranks import DEEPSEEK_V3

H100 = Gpus(
    count=8, usable_gib=79.6, bandwidth_gb_per_s=3350.0, peak_tflops=989.0, link="nvlink", usd_per_gpu_hour=Decimal(10)
)
H200 = replace(H100, usable_gib=140.0, bandwidth_gb_per_s=4800.0, peak_tflops=1979.0)


def answer(
    shape: Architecture = LLAMA_70B, gpus: Gpus = H100, use: InferenceWorkload | None = None, **level: Any
) -> Estimate:
    workload = use or InferenceWorkload(tensor_parallel=4)
    return estimate_serving(shape, workload, gpus, Assumptions(), service(**level))


def report(*given: Any, **level: Any) -> ServiceReport:
    found = answer(*given, **level).serving
    assert found is not None
    return found


def test_the_replicas_of_a_service_are_those_that_the_search_finds_for_the_same_split() -> None:
    level = service(requests_per_second=40.0, peak_to_mean=2.0)
    prepared = prepare_service(level, use=InferenceWorkload(tensor_parallel=4, pipeline_parallel=1))
    option = expect_option(prepared, machine(usable_bytes=79.6 * GIB))
    searched = service_figures(option)
    found = report(requests_per_second=40.0, peak_to_mean=2.0)
    assert searched is not None
    assert (found.max_concurrency_per_replica, found.limited_by) == (
        searched.max_concurrency_per_replica, searched.limited_by
    )  # fmt: skip
    # The search pays for whole VMs, and uses all replicas on them.
    assert found.replicas is not None
    assert found.replicas <= searched.replicas <= found.replicas + 1
    assert found.peak_requests_per_s == searched.peak_requests_per_s


def test_the_figures_of_a_service_are_those_of_all_replicas_at_its_peak() -> None:
    found = answer(requests_per_second=40.0, peak_to_mean=2.0)
    service_of, served = found.serving, found.inference
    assert service_of is not None
    assert served is not None
    assert served.decode is not None
    assert served.memory_per_gpu is not None
    assert served.memory_per_gpu.copies == service_of.replicas
    sequences = service_of.concurrency_per_replica * (service_of.replicas or 0)
    rate, step = served.decode.expected_tokens_per_s, served.decode.expected_step
    assert float(rate.mid or 0) * float(step.mid or 0) / 1e3 == pytest.approx(sequences)
    assert (served.decode.expected_step.mid or 0) <= 40.0
    assert (service_of.requests_per_s.mid or 0) >= 80.0 if service_of.requests_per_s else False
    assert (service_of.gpus, service_of.gpus_at_mean) == (
        4 * (service_of.replicas or 0), 4 * (service_of.replicas_at_mean or 0)
    )  # fmt: skip
    assert service_of.fits is ((service_of.gpus or 0) <= 8)


def test_a_request_costs_what_all_gpus_do_over_what_they_answer_on_average() -> None:
    found = answer(requests_per_second=40.0, peak_to_mean=2.0)
    assert found.cost is not None
    assert found.serving is not None
    assert found.cost.per_request is not None
    assert found.cost.per_million_tokens is not None
    hourly = Decimal(10) * (found.serving.gpus or 0)
    assert found.cost.per_hour.value == hourly
    assert float(found.cost.per_request.value or 0) == pytest.approx(float(hourly) / (40 * 3600))
    assert float(found.cost.per_million_tokens.value or 0) == pytest.approx(float(hourly) / (40 * 3600 * 300) * 1e6)
    of_users = answer(users=100).cost
    assert of_users is not None
    assert of_users.per_request is not None
    assert of_users.per_request.certainty == "estimate"


@pytest.mark.parametrize(("level", "limit"), [({"tpot_ms": 1.0}, "tpot"), ({"ttft_ms": 1.0}, "ttft")])
def test_figures_of_the_load_are_left_out_where_one_request_misses_a_target(level: dict[str, Any], limit: str) -> None:
    found = answer(**level)
    assert found.serving == ServiceReport(
        meets_targets=False, fits=False, replicas=None, replicas_at_mean=None, gpus=None, gpus_at_mean=None,
        concurrency_per_replica=0, max_concurrency_per_replica=0, limited_by=limit,
    )  # fmt: skip
    assert found.cost is None


def test_a_copy_that_does_not_hold_one_request_is_limited_by_memory() -> None:
    found = report(LLAMA_70B, replace(H100, usable_gib=30.0))
    assert (found.meets_targets, found.limited_by, found.replicas) == (False, "memory", None)


@given(
    st.integers(1, 5000), st.integers(1, 5000), st.floats(5, 200), st.floats(0.2, 1), st.sampled_from([(8, 1), (1, 8)])
)
def test_more_users_and_stricter_targets_never_take_fewer_replicas(
    few: int, more: int, tpot: float, share: float, split: tuple[int, int]
) -> None:
    use = InferenceWorkload(dtype="fp8", tensor_parallel=split[0], data_parallel_attention=split[1])
    less, most = (
        report(DEEPSEEK_V3, H200, use, users=users, tpot_ms=tpot, ttft_ms=5000.0) for users in (few, few + more)
    )
    strict = report(DEEPSEEK_V3, H200, use, users=few, tpot_ms=tpot * share, ttft_ms=5000.0)
    assert (less.replicas or 0) <= (most.replicas or 0)
    assert less.meets_targets or not strict.meets_targets
    if strict.replicas is not None:
        assert (less.replicas or 0) <= strict.replicas


@given(
    st.sampled_from(["p80", "p95"]),
    st.floats(15, 200),
    st.floats(100, 5000),
    st.sampled_from([None, "vllm", "sglang", "trtllm"]),
    st.fixed_dictionaries({"users": st.integers(1, 5000), "disaggregated": st.booleans()}),
)
def test_the_end_that_a_confidence_names_is_within_the_targets(
    confidence: Confidence, tpot: float, ttft: float, engine: Engine | None, load: dict[str, Any]
) -> None:
    use = InferenceWorkload(dtype="fp8", tensor_parallel=8, engine=engine)
    found = answer(DEEPSEEK_V3, H200, use, tpot_ms=tpot, ttft_ms=ttft, confidence=confidence, **load)
    assert found.serving is not None
    if not found.serving.meets_targets:
        return
    assert found.inference is not None
    assert found.inference.decode is not None
    assert found.inference.ttft is not None
    for target, shown in ((tpot, found.inference.decode.expected_step), (ttft, found.inference.ttft)):
        middle, high = float(shown.mid or 0), float(shown.high or 0)
        assert middle * (high / middle) ** CONFIDENCE[confidence] <= target * (1 + 1e-9)


def test_a_service_needs_the_figures_of_its_gpus() -> None:
    with pytest.raises(InvalidWorkload) as error:
        answer(LLAMA_70B, Gpus(count=4))
    assert error.value.field == "serving"
    assert "gpus.usable_gib, gpus.bandwidth_gb_per_s, gpus.peak_tflops" in error.value.detail
