"""POST /fit by a service level, over HTTP."""

import httpx
import pytest

from tests.api.bodies import Body, fit, post_rejected

pytestmark = pytest.mark.first_database

SERVING: Body = {"input_tokens": 2000, "output_tokens": 300, "users": 64, "ttft_ms": 500, "tpot_ms": 40}
CHAT: Body = {"model": "llama-3.3-70b", "serving": SERVING}


def test_a_service_needs_no_inference_and_gets_options_that_meet_its_targets(client: httpx.Client) -> None:
    answer = fit(client, CHAT, include=["assumptions"])
    assert answer["fits"]
    for item in answer["items"]:
        service, speed = item["serving"], item["speed"]
        for code, time, target in (("TPOT", speed["expected_step"], 40), ("TTFT", speed["ttft"], 500)):
            assert (time["mid"] > target) == (f"{code}_UNLIKELY" in item["warnings"])
            assert time["low"] <= target
        assert service["replicas"] * service["concurrency_per_replica"] >= 64
        assert service["concurrency_per_replica"] <= service["max_concurrency_per_replica"]
        assert service["nodes_at_peak"] == service["nodes_at_mean"] == item["nodes"]
        assert service["limited_by"] in {"memory", "tpot", "ttft", "prefill", "engine"}
        latency = (speed["ttft"]["mid"] + 300 * speed["expected_step"]["mid"]) / 1e3
        assert service["request"]["mid"] == pytest.approx(latency)
        assert service["mean_requests_per_s"]["mid"] == pytest.approx(64 / latency)
    costs = [item["cost"]["on_demand"]["usd_per_hour"] for item in answer["items"]]
    assert costs == sorted(costs, key=lambda cost: (cost is None, cost))
    assumed = {one["field"]: one["value"] for one in answer["assumptions"]}
    assert assumed["serving.think_time_s"] == 0
    assert assumed["serving.prefix_cache_hit"] == 0
    assert assumed["serving.peak_to_mean"] == 1
    assert "inference.concurrency" not in assumed


def test_a_peak_takes_more_vms_than_the_average_and_a_request_costs_the_month_over_its_requests(
    client: httpx.Client,
) -> None:
    serving = SERVING | {"peak_to_mean": 4, "requests_per_day": 1_000_000}
    serving.pop("users")
    body = CHAT | {"serving": serving, "constraints": {"name": ["Standard_ND96isr_H100_v5"]}}
    (item,) = fit(client, body)["items"]
    assert item["serving"]["nodes_at_mean"] < item["serving"]["nodes_at_peak"] == item["nodes"]
    cost = item["cost"]["on_demand"]
    assert cost["usd_per_request"]["value"] == pytest.approx(cost["usd_per_hour"] * 24 / 1_000_000)
    assert cost["usd_per_million_tokens"]["value"] == pytest.approx(cost["usd_per_request"]["value"] / 300 * 1e6)
    converted = fit(client, body, pricing={"currency": "EUR"})["items"][0]["cost"]["on_demand"]["converted"]
    assert 0 < converted["cost_per_request"]["value"] < cost["usd_per_request"]["value"]


def test_a_target_that_no_replica_meets_is_a_failure_with_a_target_that_is_met(client: httpx.Client) -> None:
    body = CHAT | {"serving": SERVING | {"tpot_ms": 5}, "constraints": {"name": ["Standard_ND96isr_H100_v5"]}}
    answer = fit(client, body)
    assert answer["rejection_summary"] == {"TPOT": 1}
    (missed,) = answer["nearest_misses"]
    (failure,) = missed["failures"]
    assert (failure["constraint"], failure["unit"], failure["available"]) == ("tpot_ms", "ms", 5)
    assert any("tpot_ms" in fix["patch"].get("serving", {}) for fix in missed["fixes"])


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"inference": {"concurrency": 8}}, "inference.concurrency: cannot be given with serving"),
        ({"inference": {"context_tokens": 2048}}, "2048 is less than serving.input_tokens and serving.output_tokens"),
        ({"inference": {"prompt_tokens": 2000}}, "inference.prompt_tokens: and serving.input_tokens"),
        ({"training": {"method": "lora"}}, "serving is of a model that is served, and training is given"),
        ({"serving": SERVING | {"requests_per_second": 2}}, "requests_per_second and users are given"),
        ({"serving": SERVING | {"users": None}}, "none is given"),
        (
            {"serving": SERVING | {"users": None, "requests_per_day": 9, "think_time_s": 1}},
            "think_time_s is of users",
        ),
        ({"serving": SERVING | {"prefix_cache_hit": 1.5}}, "1"),
    ],
)
def test_a_service_that_contradicts_itself_is_refused_by_name(client: httpx.Client, change: Body, detail: str) -> None:
    problem = post_rejected(client, CHAT | change)
    assert detail in problem["detail"] + str(problem["errors"])


H100 = {"count": 8, "usable_gib": 79.6, "bandwidth_gb_per_s": 3350, "peak_tflops": 989, "usd_per_gpu_hour": 12.29}


def test_an_estimate_of_a_service_says_how_many_replicas_its_load_takes(client: httpx.Client) -> None:
    body = {"model": "llama-3.3-70b", "inference": {"tensor_parallel": 4}, "serving": SERVING, "gpus": H100}
    answer = client.post("/estimate", json=body).json()
    service, decode = answer["serving"], answer["inference"]["decode"]
    assert service["meets_targets"]
    assert service["fits"] is (service["gpus"] <= 8)
    assert service["replicas"] * service["concurrency_per_replica"] >= 64
    assert decode["expected_step"]["mid"] <= SERVING["tpot_ms"]
    assert answer["inference"]["ttft"]["mid"] <= SERVING["ttft_ms"]
    assert answer["cost"]["per_hour"]["value"] == pytest.approx(12.29 * service["gpus"])
    mean = service["mean_requests_per_s"]["mid"]
    assert answer["cost"]["per_request"]["mid"] == pytest.approx(12.29 * service["gpus"] / 3600 / mean, rel=1e-3)
    assert {"serving.think_time_s", "serving.peak_to_mean"} <= {one["field"] for one in answer["assumptions"]}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"training": {"tokens": 1e9}}, "serving is of a model that is served, and training is given"),
        ({"inference": {"concurrency": 4}}, "inference.concurrency"), ({"gpus": {"count": 8}}, "gpus.usable_gib"),
    ],
)  # fmt: skip
def test_an_estimate_of_a_service_refuses_what_contradicts_it(client: httpx.Client, change: Body, named: str) -> None:
    body = {"model": "llama-3.3-70b", "serving": SERVING, "gpus": H100} | change
    response = client.post("/estimate", json=body)
    assert response.status_code == 422
    assert named in response.text
