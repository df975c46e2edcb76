"""Every suggested fix is applied to requests over the real catalog, and the size then fits."""

import httpx
import pytest

from tests.api.bodies import LLAMA, Body, apply_merge_patch, fit

pytestmark = pytest.mark.one_database  # fixes are found by arithmetic, after the same queries as any fit

QUESTIONS: dict[str, Body] = {
    "serving": LLAMA,
    "serving in fp8 in Europe": {
        "model": "llama-3.1-405b",
        "inference": {"dtype": "fp8", "context_tokens": 8192, "concurrency": 8},
        "constraints": {"regions": ["westeurope"]},
    },
    "a long context": {"model": "llama-3.1-8b", "inference": {"context_tokens": 131072, "concurrency": 1}},
    "a cut that is impossible": LLAMA | {"inference": LLAMA["inference"] | {"tensor_parallel": 3}},
    "a cut that is wide": LLAMA | {"inference": LLAMA["inference"] | {"tensor_parallel": 8, "pipeline_parallel": 2}},
    "within NVLink, verified, current": LLAMA
    | {
        "constraints": {
            "tp_in_nvlink": True, "verified_only": True, "allow_preview": False, "allow_retiring": False,
            "budget_usd_per_month": 20000,
        }
    },
    "types of weights and cache that GPUs lack": {
        "model": "llama-3.1-8b",
        "inference": {"dtype": "fp8", "kv_dtype": "fp8", "context_tokens": 4096, "concurrency": 2},
        "constraints": {"allow_preview": False, "gpu": ["T4", "V100", "A100", "M60"]},
    },
    "a service": {
        "model": "llama-3.1-70b",
        "serving": {"input_tokens": 2000, "output_tokens": 300, "users": 200, "ttft_ms": 500, "tpot_ms": 35},
        "constraints": {"max_nodes": 2},
    },
    "a service within a narrow target": {
        "model": "deepseek-v3",
        "serving": {
            "input_tokens": 8000, "output_tokens": 500, "requests_per_second": 5, "ttft_ms": 300, "tpot_ms": 15,
        },
    },
    "training": {
        "model": "llama-3.1-70b",
        "training": {"sequence_tokens": 4096, "tokens": 1e9},
        "constraints": {"max_nodes": 2},
    },
    "training in time and within a budget": {
        "model": "llama-3.1-8b",
        "training": {"sequence_tokens": 2048, "micro_batch": 4, "zero_stage": 0, "tokens": 1e9},
        "constraints": {"max_hours": 20, "budget_usd_per_job": 500, "max_nodes": 2},
    },
}  # fmt: skip


@pytest.mark.takes_seconds
@pytest.mark.parametrize("name", QUESTIONS)
def test_a_size_fits_after_any_fix_that_is_suggested_for_it(client: httpx.Client, name: str) -> None:
    body = QUESTIONS[name]
    rejected = fit(client, body, include=["rejected"])["rejected"]
    suggested = [(miss["size"], fix) for miss in rejected for fix in miss["fixes"]]
    assert suggested
    for size, fix in suggested:
        changed = apply_merge_patch(body, fix["patch"])
        changed["constraints"] = changed.get("constraints", {}) | {"name": [size]}
        answer = fit(client, changed)
        assert [item["size"] for item in answer["items"]] == [size], (size, fix["text"], answer["nearest_misses"])


def test_a_size_that_no_change_helps_has_no_fix(client: httpx.Client) -> None:
    rejected = fit(client, LLAMA, constraints={"regions": ["westeurope"]}, include=["rejected"])["rejected"]
    hopeless = {"NOT_IN_REGION", "RETIRED", "GPU_UNKNOWN", "GPU_COUNT"}
    for miss in rejected:
        if {failure["code"] for failure in miss["failures"]} & hopeless:
            assert miss["fixes"] == []


def test_every_type_that_a_gpu_lacks_is_reported_and_mended(client: httpx.Client) -> None:
    body = QUESTIONS["types of weights and cache that GPUs lack"]
    (miss,) = fit(client, body, constraints={"name": ["Standard_NC4as_T4_v3"]})["nearest_misses"]
    lacking = [(failure["code"], failure["constraint"]) for failure in miss["failures"]]
    assert lacking == [("DTYPE_UNSUPPORTED", "dtype"), ("DTYPE_UNSUPPORTED", "kv_dtype")]
    assert {"inference": {"dtype": "int8", "kv_dtype": "fp16"}} in [fix["patch"] for fix in miss["fixes"]]
