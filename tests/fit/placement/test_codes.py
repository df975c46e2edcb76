from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from app.fit.formulas.quantities import GIB
from app.fit.placement.evaluate import CHECKS, evaluate
from app.fit.placement.fixes import PROPOSALS
from app.fit.placement.jobs import ServingJob
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, explain, rounded
from app.fit.placement.prepare import PreparedRequest
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
    training,
    vm,
)

UNPRICED = {"on_demand": None, "spot": Decimal(1)}

PROVOKED: Mapping[str, tuple[PreparedRequest, Machine, dict[str, Any]]] = {
    "GPU_COUNT": (prepare_request(serving()), machine(gpus=Fraction(0)), {}),
    "GPU_UNKNOWN": (prepare_request(serving()), machine(bandwidth=None), {}),
    "DTYPE_UNSUPPORTED": (prepare_request(serving()), machine(capability="7.0"), {}),
    "TP_HEADS": (prepare_request(serving(tensor_parallel=3)), machine(), {}),
    "TP_BLOCKS": (prepare_request(serving(dtype="fp8", tensor_parallel=8), QWEN_235B), machine(), {}),
    "EP_GROUPS": (prepare_request(serving(dtype="fp8", data_parallel_attention=3), QWEN_235B), machine(), {}),
    "PP_LAYERS": (prepare_request(serving(pipeline_parallel=81), max_nodes=100), machine(), {}),
    "FRACTIONAL_GPU": (prepare_request(serving(), max_nodes=8), machine(gpus=Fraction(1, 6)), {}),
    "NVLINK_DOMAIN": (prepare_request(serving(pipeline_parallel=1), tp_in_nvlink=True), machine(domain_gpus=1), {}),
    "NO_INFINIBAND": (prepare_request(training(recompute="full"), max_nodes=4), machine(infiniband=False), {}),
    "NETWORK_UNKNOWN": (
        prepare_service(service(tpot_ms=200.0, ttft_ms=4000.0)),
        machine(gpus=Fraction(1), domain_gpus=1, network_gbps=None),
        {},
    ),
    "MAX_NODES": (prepare_request(serving(tensor_parallel=8, pipeline_parallel=4), max_nodes=2), machine(), {}),
    "GPU_MEMORY_PER_GPU": (prepare_request(serving()), machine(usable_bytes=20 * GIB), {}),
    "TPOT": (prepare_service(service(tpot_ms=1.0)), machine(), {}),
    "TTFT": (prepare_service(service(ttft_ms=1.0)), machine(), {}),
    "RAM": (prepare_request(serving()), machine(memory_bytes=100 * GIB), {}),
    "LOCAL_DISK": (prepare_request(serving(), checkpoint_on_local_disk=True), machine(disk_bytes=None), {}),
    "NOT_IN_REGION": (prepare_request(serving(), regions=("westeurope",)), machine(), {"region": None}),
    "RETIRED": (prepare_request(serving()), machine(), {"status": "retired"}),
    "WITHDRAWN": (prepare_request(serving()), machine(), {"status": "withdrawn"}),
    "STATUS": (prepare_request(serving(), allow_preview=False), machine(), {"status": "preview"}),
    "UNVERIFIED": (prepare_request(serving(), verified_only=True), machine(), {"verified": False}),
    "BUDGET": (prepare_request(serving(), budget_usd_per_month=Decimal(1000)), machine(), {}),
    "NO_PRICE": (prepare_request(serving(), budget_usd_per_month=Decimal(1000)), machine(), {"usd_per_hour": UNPRICED}),
    "TIME": (prepare_request(training(recompute="full"), max_hours=1.0, max_nodes=4), machine(), {}),
}


@pytest.mark.parametrize("code", PROVOKED)
def test_every_code_is_reported_where_it_applies(code: str) -> None:
    prepared, on, facts = PROVOKED[code]
    assert code in codes(expect_rejection(prepared, on, vm(**facts)))


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("NVLINK_DOMAIN", "needs 4 tensor ranks, and its GPUs share no NVLink"),
        ("EP_GROUPS", "no split of the model with 3 groups is possible on 1 VM"),
    ],
)
def test_a_number_of_one_is_said_in_the_singular(code: str, said: str) -> None:
    prepared, on, facts = PROVOKED[code]
    failures = expect_rejection(prepared, on, vm(**facts)).failures
    assert said in [failure.detail for failure in failures if failure.code == code]


@pytest.mark.parametrize(("constrained", "within"), [(True, "NVLink"), (False, "NVLink or one VM")])
def test_what_tensor_ranks_must_share_is_what_the_request_allows(constrained: bool, within: str) -> None:
    on = machine(domain_gpus=2, gpus=Fraction(8 if constrained else 2))
    prepared = prepare_request(serving(tensor_parallel=4), tp_in_nvlink=constrained)
    failures = expect_rejection(prepared, on).failures
    said = [failure.detail for failure in failures if failure.code == "NVLINK_DOMAIN"]
    assert said == [f"4 tensor ranks must share {within}, and 2 can"]


@pytest.mark.parametrize(
    ("usd", "said"), [("21.359992", "21.36"), ("470.650317888", "470.65"), ("0.0052", "0.0052"), ("1234.5", "1,234.50")]
)
def test_the_price_of_an_explanation_is_rounded_and_that_of_the_option_is_exact(usd: str, said: str) -> None:
    option = expect_option(prepare_request(serving()), of=vm(usd_per_hour={"on_demand": Decimal(usd), "spot": None}))
    assert explain(option).endswith(f"; {said} USD an hour on-demand in eastus.")
    assert option.usd_per_hour == Decimal(usd)


def test_a_long_time_has_no_exponent() -> None:
    assert [rounded(time, digits=4) for time in (468_712.3, 12.3456, 0.5)] == ["468,700", "12.35", "0.5"]


def test_every_check_is_provoked_and_every_proposal_belongs_to_a_code() -> None:
    assert set(CHECKS) <= set(PROVOKED)
    assert set(PROPOSALS) <= set(PROVOKED)


def test_all_failures_are_reported_largest_shortfall_first() -> None:
    rejection = expect_rejection(
        prepare_request(serving(), checkpoint_on_local_disk=True), machine(gpus=Fraction(1), disk_bytes=100 * GIB)
    )
    assert [failure.code for failure in rejection.failures] == ["GPU_MEMORY_PER_GPU", "LOCAL_DISK"]
    missing = [failure.share_missing for failure in rejection.failures]
    assert missing == sorted(missing, reverse=True)


@pytest.mark.parametrize("budget", ["budget_usd_per_month", "budget_usd_per_job"])
def test_an_unknown_price_meets_no_budget_and_is_a_warning_without_one(budget: str) -> None:
    unpriced, job = vm(usd_per_hour=UNPRICED), training(method="lora", recompute="full")
    (failure,) = expect_rejection(prepare_request(job, LLAMA_70B, **{budget: Decimal(10**9)}), of=unpriced).failures
    assert (failure.constraint, failure.code, failure.available) == (budget, "NO_PRICE", None)
    assert failure.detail == "no source says its on-demand price, so it meets no budget"
    assert "NO_PRICE" in expect_option(prepare_request(job), of=unpriced).warnings


def test_a_job_of_unknown_length_meets_no_budget() -> None:
    (failure,) = expect_rejection(
        prepare_request(training(method="lora", recompute="full"), budget_usd_per_job=Decimal(10**9)), machine(peaks={})
    ).failures
    assert (failure.constraint, failure.code) == ("budget_usd_per_job", "TIME")


def test_budgets_are_checked_only_where_nothing_else_fails() -> None:
    dear = prepare_request(serving(), budget_usd_per_month=Decimal(1), checkpoint_on_local_disk=True)
    assert codes(expect_rejection(dear)) == {"BUDGET"}
    assert codes(expect_rejection(dear, machine(disk_bytes=GIB))) == {"LOCAL_DISK"}


@pytest.mark.parametrize("disk_bytes", [None, 0.0, GIB])
def test_a_disk_that_was_not_asked_for_is_a_warning(disk_bytes: float | None) -> None:
    assert "NO_LOCAL_DISK" in expect_option(prepare_request(serving()), machine(disk_bytes=disk_bytes)).warnings
    assert "NO_LOCAL_DISK" not in expect_option(prepare_request(serving())).warnings
    described = machine(disk_bytes=disk_bytes, described=True)
    warned = "NO_LOCAL_DISK" in expect_option(prepare_request(serving()), described).warnings
    assert warned is (disk_bytes is not None)


@pytest.mark.parametrize(
    ("facts", "code"),
    [({"usable_bytes": None}, "GPU_UNKNOWN"), ({"memory_bytes": None}, "RAM"), ({"gpus": None}, "GPU_UNKNOWN")],
)
def test_an_unknown_fact_is_a_failure(facts: dict[str, Any], code: str) -> None:
    (failure,) = expect_rejection(prepare_request(serving()), machine(**facts)).failures
    assert (failure.code, failure.available) == (code, None)
    assert ("no source states" if code == "GPU_UNKNOWN" else "no source says") in failure.detail


@pytest.mark.parametrize("fact", ["memory_bytes", "disk_bytes", "bandwidth", "capability"])
def test_unknown_facts_of_a_described_machine_fail_no_check(fact: str) -> None:
    described = machine(**{fact: None, "described": True})
    assert prepare_request(serving()).job.find_attempt(described, prepare_request(serving()).limits) is not None


@pytest.mark.parametrize(
    ("chip", "dtype", "supported"),
    [
        ("8.0", "bf16", True), ("7.5", "bf16", False), ("7.5", "fp16", True),
        ("7.0", "fp8", False), ("7.5", "fp8", False), ("8.0", "fp8", True), ("8.6", "fp8", True), ("8.9", "fp8", True),
        ("7.5", "nvfp4", False), ("8.0", "nvfp4", True), ("9.0", "nvfp4", True), ("9.0", "fp4", True),
        ("10.0", "fp4", True), ("9.0", "mxfp4", True),
        ("7.5", "mxfp4", False), ("8.0", "mxfp4", True), ("gfx942", "mxfp4", True),
        ("7.0", "awq_int4", False), ("7.5", "awq_int4", True), ("7.0", "gptq_int4", True), ("gfx942", "awq_int4", True),
        ("gfx942", "fp8", True), ("gfx942", "fp4", False), ("gfx1101", "bf16", False), ("3.7", "fp32", False),
    ],
)  # fmt: skip
def test_a_type_needs_a_chip_that_computes_in_it(chip: str, dtype: str, supported: bool) -> None:
    verdict = evaluate(vm(), machine(capability=chip), prepare_request(serving(dtype=dtype)))
    assert isinstance(verdict, PlacementOption) is supported


@pytest.mark.parametrize(
    ("chip", "dtype", "warned", "peak"),
    [
        ("8.0", "fp8", True, 989e12), ("8.9", "fp8", False, 1979e12), ("9.0", "nvfp4", True, 989e12),
        ("9.0", "fp8", False, 1979e12), ("8.0", "awq_int4", False, 989e12), ("8.0", "bf16", False, 989e12),
    ],
)  # fmt: skip
def test_weights_of_a_type_that_the_gpu_lacks_are_computed_in_16_bits_with_a_warning(
    chip: str, dtype: str, warned: bool, peak: float
) -> None:
    prepared, on = prepare_request(serving(dtype=dtype)), machine(capability=chip)
    option = expect_option(prepared, on)
    assert ("WEIGHT_ONLY" in option.warnings) is warned
    assert isinstance(prepared.job, ServingJob)
    assert prepared.job.serving_on(on, option.attempt).gpus.peak_tflops == peak / 1e12


@pytest.mark.parametrize(("kv_dtype", "least"), [("fp8", "8.9"), ("nvfp4", "10.0")])
def test_a_kv_cache_has_no_weight_only_kernels(kv_dtype: str, least: str) -> None:
    ampere = machine(capability="8.0")
    (failure,) = expect_rejection(prepare_request(serving(dtype="fp8", kv_dtype=kv_dtype)), ampere).failures
    assert (failure.constraint, failure.code) == ("kv_dtype", "DTYPE_UNSUPPORTED")
    said = f"keeps no KV cache in {kv_dtype}: its GPU is of compute capability 8.0, and {least} is needed"
    assert failure.detail == said
    assert "WEIGHT_ONLY" in expect_option(prepare_request(serving(dtype="fp8")), ampere).warnings


def test_legacy_chips_count_where_they_are_allowed() -> None:
    old = machine(capability="gfx1030")
    assert codes(expect_rejection(prepare_request(serving(dtype="fp16")), old)) == {"DTYPE_UNSUPPORTED"}
    assert (
        prepare_request(serving(dtype="fp16"), allow_legacy=True).job.find_attempt(
            old, prepare_request(serving()).limits
        )
        is not None
    )
