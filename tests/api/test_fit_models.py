import re
from typing import Any

import httpx
import pytest

from tests.api.bodies import LLAMA, Body, fit

pytestmark = pytest.mark.first_database

EUROPE = {"regions": ["westeurope"]}


def option(answer: Body, size: str) -> Body:
    (found,) = [item for item in answer["items"] if item["size"] == size]
    assert isinstance(found, dict)
    return found


def miss(answer: Body, size: str) -> Body:
    (found,) = [item for item in answer["rejected"] if item["size"] == size]
    assert isinstance(found, dict)
    return found


def test_llama_70b_fits_on_four_a100_and_not_on_two_h100(client: httpx.Client) -> None:
    answer = fit(client, LLAMA, include=["rejected"], limit=500)
    placed = option(answer, "Standard_NC96ads_A100_v4")
    assert placed["parallelism"] == {
        "tensor": 4, "pipeline": 1, "expert": 1, "data_attention": 1, "data": 1, "zero_stage": None, "gpus": 4,
        "idle_gpus": 0,
    }  # fmt: skip
    assert placed["per_gpu"]["need"]["mid"] == pytest.approx(57.36, abs=0.01)
    assert placed["per_gpu"]["budget"]["value"] == pytest.approx(72.91, abs=0.01)
    assert placed["max_concurrency"]["mid"] == 56
    assert placed["speed"]["tokens_per_s"]["value"] == pytest.approx(1101.3, abs=0.1)
    assert placed["explanation"].startswith("Fits on 1 VM with TP=4 over PCIe: needs 57.4 of 72.9 GiB on each GPU")
    rejected = miss(answer, "Standard_NC80adis_H100_v5")
    (failure,) = rejected["failures"]
    assert failure["code"] == "GPU_MEMORY_PER_GPU"
    assert failure["required"] == pytest.approx(110.85, abs=0.01)
    assert failure["available"] == pytest.approx(85.56, abs=0.01)
    assert [fix["text"] for fix in rejected["fixes"]] == ["concurrency <= 11", "dtype=fp8", "+1 node"]


@pytest.mark.parametrize("sequence", [1024, 2048, 4096])
def test_a_model_sharded_over_vms_needs_all_of_its_memory_on_none_of_them(client: httpx.Client, sequence: int) -> None:
    training = {"method": "full", "sequence_tokens": sequence, "micro_batch": 1, "recompute": "selective"}
    body = {"model": "deepseek-v3", "training": training, "constraints": {"max_nodes": 64, "name": ["*GB300_v6"]}}
    assert fit(client, body)["fits"]
    whole = fit(client, body | {"training": training | {"loading": "whole"}})
    for missed in whole["nearest_misses"]:
        assert [failure["code"] for failure in missed["failures"]] == ["RAM"]
        assert [fix["text"] for fix in missed["fixes"]] == ["loading=sharded"]


def test_a_size_of_undescribed_gpus_has_those_of_all_described_sizes_of_its_series(client: httpx.Client) -> None:
    small = {"model": "llama-3.1-8b", "inference": {"context_tokens": 1024}}
    (item,) = fit(client, small, constraints={"name": ["Standard_ND96is_MI300X_v5"]})["items"]
    assert item["parallelism"]["gpus"] + item["parallelism"]["idle_gpus"] == 8
    assert {"GPU_OF_SERIES", "NO_LOCAL_DISK"} <= set(item["warnings"])
    on_disk = {"checkpoint_on_local_disk": True}
    answer = fit(client, small, constraints=on_disk, include=["rejected"], limit=500)
    assert not any("GPU_OF_SERIES" in item["warnings"] for item in answer["items"])
    reasons = {one["size"]: [failure["detail"] for failure in one["failures"]] for one in answer["rejected"]}
    assert all("no source says" in detail for detail in reasons["Standard_ND96isf_H100_v5"])
    assert {"Standard_ND96isf_H100_v5", "Standard_ND96is_noIB_H100_v5"} <= _with(answer, "RAM")
    assert reasons["Standard_NC132ds_xl_RTXPRO6000BSE_v6"] == ["no source states its number of GPUs"]


def _with(answer: Body, code: str) -> set[str]:
    return {one["size"] for one in answer["rejected"] if code in {failure["code"] for failure in one["failures"]}}


def test_the_parts_of_a_gpu_add_up_to_its_need(client: httpx.Client) -> None:
    for item in fit(client, LLAMA)["items"]:
        parts = item["per_gpu"]
        known = [parts[name] for name in ("weights", "kv_cache", "activations", "overhead")]
        assert sum(part["value"] if part["value"] is not None else part["mid"] for part in known) == pytest.approx(
            parts["need"]["mid"]
        )


@pytest.mark.parametrize(
    ("model", "dtype", "nodes"),
    [
        ("llama-3.1-405b", "fp8", 2),
        ("llama-3.1-405b", "bf16", 4),
        ("deepseek-v3", "fp8", 4),
        ("mixtral-8x7b", "bf16", 1),
    ],
)
@pytest.mark.parametrize("sort", ["cost_per_hour", "cost_per_1m_tokens", "nodes"])
def test_large_models_are_ranked_in_europe(client: httpx.Client, model: str, dtype: str, nodes: int, sort: str) -> None:
    body = {"model": model, "inference": {"dtype": dtype, "context_tokens": 8192, "concurrency": 8}}
    items = fit(client, body, constraints=EUROPE | {"max_nodes": nodes}, sort=sort, limit=500)["items"]
    assert items
    figures = [_ranked(item, sort) for item in items if item["cost"]["on_demand"]["usd_per_hour"] is not None]
    assert figures == sorted(figures)
    assert any(item["pareto_optimal"] for item in items)


def _ranked(item: Body, sort: str) -> Any:
    cost = item["cost"]["on_demand"]
    return {
        "cost_per_hour": cost["usd_per_hour"],
        "cost_per_1m_tokens": cost["usd_per_million_tokens"]["mid"],
        "nodes": item["nodes"],
    }[sort]


@pytest.mark.parametrize(
    ("training", "constraints", "sizes"),
    [
        ({"sequence_tokens": 2048}, {}, {"Standard_ND96isr_H100_v5", "Standard_NC96ads_A100_v4"}),
        ({"method": "qlora", "sequence_tokens": 2048, "recompute": "full"}, {}, {"Standard_NC24ads_A100_v4"}),
    ],
)
def test_trainings_have_a_range_of_hours_and_cost_less_on_spot(
    client: httpx.Client, training: Body, constraints: Body, sizes: set[str]
) -> None:
    body = {"model": "llama-3.1-8b", "training": training | {"tokens": 1e9}}
    answer = fit(client, body, constraints=constraints, sort="cost_per_job", limit=500)
    assert sizes <= {item["size"] for item in answer["items"]}
    for item in answer["items"]:
        hours, cost = item["speed"]["hours"], item["cost"]
        assert 0 < hours["low"] < hours["mid"] < hours["high"]
        for purchase in ("on_demand", "spot"):
            hourly, job = cost[purchase]["usd_per_hour"], cost[purchase].get("usd_per_job")
            assert (job is None) is (hourly is None)
            if job is not None:
                evicted = cost[purchase].get("interruptions", {"overhead": 0, "storage_usd_per_hour": 0})
                paid = hourly + evicted["storage_usd_per_hour"]
                assert job["mid"] == pytest.approx(paid * hours["mid"] * (1 + evicted["overhead"]))


def test_70b_trains_on_several_vms_with_infiniband_and_on_others_only_where_that_is_waived(
    client: httpx.Client,
) -> None:
    body = {"model": "llama-3.1-70b", "training": {"sequence_tokens": 4096, "tokens": 1e9, "recompute": "full"}}
    asked: Body = {"max_nodes": 16, "gpu": ["a100", "h100"]}
    strict = fit(client, body, constraints=asked, include=["rejected"], limit=500)
    assert {"Standard_ND96isr_H100_v5", "Standard_ND96amsr_A100_v4"} <= {item["size"] for item in strict["items"]}
    refused = miss(strict, "Standard_NC96ads_A100_v4")
    assert {failure["code"] for failure in refused["failures"]} == {"NO_INFINIBAND", "GPU_MEMORY_PER_GPU"}
    waived = fit(client, body, constraints=asked | {"require_infiniband": False}, limit=500)
    assert "NODES_WITHOUT_INFINIBAND" in option(waived, "Standard_NC96ads_A100_v4")["warnings"]


def test_if_nothing_fits_the_nearest_misses_are_returned(client: httpx.Client) -> None:
    answer = fit(client, LLAMA | {"inference": {"context_tokens": 8192, "concurrency": 100_000}})
    assert (answer["fits"], answer["items"], answer["total"]) == (False, [], 0)
    assert len(answer["nearest_misses"]) == 3
    assert answer["nearest_misses"][0]["fixes"]
    assert answer["rejected"] == []
    assert answer["rejected_total"] == sum(answer["rejection_summary"].values())


def test_a_gpu_that_serves_the_model_in_fp16_is_the_nearest_miss(client: httpx.Client) -> None:
    small: Body = {"model": "qwen2.5-1.5b", "inference": {"context_tokens": 4096, "concurrency": 1}}
    answer = fit(client, small, constraints={"regions": ["eastus"]})
    nearest = answer["nearest_misses"][0]
    assert nearest["size"] == "Standard_NC4as_T4_v3"
    assert nearest["fixes"][0]["patch"] == {"inference": {"dtype": "fp16"}}
    in_fp16 = fit(client, small, inference=small["inference"] | {"dtype": "fp16"}, constraints={"regions": ["eastus"]})
    assert in_fp16["items"][0]["size"] == "Standard_NC4as_T4_v3"


def test_every_size_with_a_gpu_fits_or_is_rejected(client: httpx.Client) -> None:
    answer = fit(client, LLAMA, include=["rejected"], limit=500)
    every, without_gpus = (
        client.get(f"/sizes?status=any&limit=1{more}").json()["total"] for more in ("", "&max_gpus=0")
    )
    with_gpus = every - without_gpus
    assert len(answer["items"]) + len(answer["rejected"]) == answer["total"] + answer["rejected_total"] == with_gpus
    assert all(rejected["failures"] for rejected in answer["rejected"])


def test_a_size_without_a_gpu_is_rejected_where_the_request_names_it(client: httpx.Client) -> None:
    answer = fit(client, LLAMA, constraints={"name": ["Standard_D8s_v5"]})
    assert answer["rejection_summary"] == {"GPU_COUNT": 1}


def test_assumptions_and_the_model_are_returned_on_request(client: httpx.Client) -> None:
    plain = fit(client, LLAMA)
    assert plain["assumptions"] == []
    assert "workload" not in plain
    told = fit(client, LLAMA, include=["workload", "assumptions"])
    assert {one["field"] for one in told["assumptions"]} >= {"inference.dtype", "inference.utilization"}
    assert told["workload"]["parameters"]["total"]["value"] == 70553706496
    assert told["items"] == plain["items"]


def test_only_the_requested_purchase_models_are_priced(client: httpx.Client) -> None:
    answer = fit(client, LLAMA, pricing={"purchases": ["spot"]}, constraints=EUROPE, limit=500)
    assert [list(item["cost"]) for item in answer["items"]] == [["spot"]] * answer["total"]
    costs = [item["cost"]["spot"]["usd_per_hour"] for item in answer["items"]]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known) == costs[: len(known)]


def test_prices_of_another_day_come_from_their_history(client: httpx.Client) -> None:
    (newest, *_) = fit(client, LLAMA, constraints=EUROPE | {"name": ["Standard_NC96ads_A100_v4"]})["items"]
    today = newest["cost"]["on_demand"]
    on_that_day = fit(client, LLAMA, constraints=EUROPE, pricing={"as_of": today["as_of"]}, limit=500)
    assert option(on_that_day, "Standard_NC96ads_A100_v4")["cost"]["on_demand"] == today
    before = fit(client, LLAMA, constraints=EUROPE, pricing={"as_of": "2010-01-01"}, include=["rejected"])
    assert before["items"] == []
    failures = miss(before, "Standard_NC96ads_A100_v4")["failures"]
    assert [failure["code"] for failure in failures] == ["NOT_IN_REGION"]


@pytest.mark.takes_seconds
def test_prices_of_today_are_the_same_by_their_history(client: httpx.Client) -> None:
    for constraints in (EUROPE, {}, {"regions": ["eastus", "westus2"], "available_in": ["eastus"]}):
        now = fit(client, LLAMA, constraints=constraints, limit=500)
        then = fit(client, LLAMA, constraints=constraints, limit=500, pricing={"as_of": "2026-09-01"})
        assert now == then


def test_many_hours_of_training_are_written_without_an_exponent(client: httpx.Client) -> None:
    training = {"method": "full", "tokens": 1_000_000_000_000, "sequence_tokens": 4096}
    (long, *_) = fit(client, {"model": "llama-3.1-8b", "training": training}, limit=1)["items"]
    assert re.search(r"takes \d{1,3}(,\d{3})+ to \d{1,3}(,\d{3})+ hours", long["explanation"]), long["explanation"]


def test_a_training_says_what_it_assumes_of_its_activations(client: httpx.Client) -> None:
    body = {"model": "llama-3.1-70b", "training": {"method": "qlora"}, "include": ["assumptions"]}
    one_a100 = {"constraints": {"name": ["Standard_NC24ads_A100_v4"]}}
    said = fit(client, body | one_a100)
    assert "assuming sequences of 2,048 tokens and recompute=full" in said["items"][0]["explanation"]
    assumed = {one["field"]: one["value"] for one in said["assumptions"]}
    assert (assumed["training.sequence_tokens"], assumed["training.recompute"]) == (2048, "full")
    kept = fit(
        client, {**body, **one_a100, "training": {"method": "qlora", "sequence_tokens": 2048, "recompute": "none"}}
    )
    assert kept["items"] == []
    (fix, *_) = kept["nearest_misses"][0]["fixes"]
    assert fix["patch"] == {"training": {"recompute": "full"}}


def test_options_of_a_training_of_known_length_are_in_the_order_of_its_cost(client: httpx.Client) -> None:
    body = {"model": "llama-3.1-8b", "training": {"tokens": 1e9}, "limit": 500}

    def costs(answer: Body, name: str) -> list[float]:
        known = [item["cost"]["on_demand"].get(name) for item in answer["items"]]
        return [one["mid"] if isinstance(one, dict) else one for one in known if one is not None]

    by_job, by_hour = fit(client, body), fit(client, body, sort="cost_per_hour")
    assert costs(by_job, "usd_per_job") == sorted(costs(by_job, "usd_per_job"))
    assert costs(by_hour, "usd_per_hour") == sorted(costs(by_hour, "usd_per_hour"))
    assert by_job["items"] != by_hour["items"]
    assert fit(client, body, sort="cost_per_job")["items"] == by_job["items"]
    assert "USD for the job" in by_job["items"][0]["explanation"]
    untimed = body | {"training": {}}
    assert fit(client, untimed)["items"] == fit(client, untimed, sort="cost_per_hour")["items"]


PAGED: list[Body] = [
    {"resources": {"min_vcpus": 1}},
    {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192}},
    {"model": "llama-3.1-8b", "training": {"method": "lora", "tokens": 1e9}, "pricing": {"as_of": "2026-08-15"}},
]


@pytest.mark.parametrize("body", PAGED, ids=["resources", "serving", "training of a day"])
def test_a_body_is_read_to_its_end_by_cursors(client: httpx.Client, body: Body) -> None:
    whole = fit(client, body, limit=500)
    assert whole["next_cursor"] is None or whole["total"] > 500
    size = max(2, len(whole["items"]) // 3)
    page, items = fit(client, body, limit=size), []
    while True:
        items += page["items"]
        if page["next_cursor"] is None or len(items) >= len(whole["items"]):
            break
        page = fit(client, body, limit=size, cursor=page["next_cursor"])
        assert page["total"] == whole["total"]
    assert items[: len(whole["items"])] == [*whole["items"]]
    assert len({item["size"] for item in items}) == len(items)


def test_a_cursor_belongs_to_its_body(client: httpx.Client) -> None:
    body = {"resources": {"min_vcpus": 1}, "limit": 2}
    cursor = fit(client, body)["next_cursor"]
    others: list[Body] = [{"resources": {"min_vcpus": 2}}, {"constraints": {"verified_only": True}}, {"sort": "waste"}]
    others += [{"pricing": {"purchases": ["spot"]}}, LLAMA | {"resources": None}]
    for other in others:
        response = client.post("/fit", json={**body, **other, "cursor": cursor})
        assert response.status_code == 400, other
        assert response.json()["type"].endswith("bad-cursor")
    euro = fit(client, body, cursor=cursor, pricing={"currency": "EUR"})
    assert euro["exchange_rate"]["currency"] == "EUR"
    assert fit(client, body, cursor=cursor)["items"][0]["size"] == euro["items"][0]["size"]
    assert client.post("/fit", json={**body, "cursor": "abc"}).status_code == 400
