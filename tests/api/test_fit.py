from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.one_database  # the queries are those of other fits, which are asked of each kind


def fit(client: httpx.Client, **needs: Any) -> dict[str, Any]:
    response = client.get("/fit", params=needs)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def test_what_fits_is_ranked_by_cost_with_unknown_prices_last(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=320, region="eastus")
    costs = [item["cost"]["on_demand"]["usd_per_hour"] for item in answer["items"]]
    known = [cost for cost in costs if cost is not None]
    assert known == sorted(known)
    assert costs == known + [None] * (len(costs) - len(known))
    assert answer["items"][0]["size"] == "Standard_NC96ads_A100_v4"
    assert answer["items"][0]["cost"]["on_demand"] == {
        "usd_per_hour": 14.692,
        "as_of": "2026-08-01",
        "price_age_days": 31,
        "approximate_date": False,
        "usd_per_month": 10725.16,
        "committed_hours_per_month": None,
    }
    assert answer["items"][0]["explanation"].startswith("Fits on 1 VM: needs 320 of 320 GiB GPU memory (0% to spare)")


def test_every_size_fits_or_is_rejected_with_its_reasons(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=320, region="eastus", include="rejected", limit=500)
    assert answer["rejected_total"] == len(answer["rejected"]) == sum(answer["rejection_summary"].values())
    everything = client.get("/sizes", params={"status": "any", "limit": 1}).json()["total"]
    assert answer["total"] + answer["rejected_total"] == everything
    assert all(rejected["failures"] for rejected in answer["rejected"])
    assert {"RETIRED", "NOT_IN_REGION", "GPU_MEMORY_TOTAL"} <= {
        failure["code"] for rejected in answer["rejected"] for failure in rejected["failures"]
    }


def test_if_nothing_fits_the_nearest_misses_are_returned(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=5000)
    assert (answer["items"], answer["total"], answer["next_cursor"]) == ([], 0, None)
    (failure, *_) = answer["nearest_misses"][0]["failures"]
    assert answer["nearest_misses"][0]["size"] == "Standard_ND96isr_MI300X_v5"
    assert (failure["required"], failure["available"], failure["shortfall"]) == (5000, 1536, 3464)


def test_more_nodes_pool_memory_and_cost_more(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=320, max_nodes=4, gpu="A100", region="eastus", hours=10, limit=500)
    nodes = {item["size"]: item["nodes"] for item in answer["items"]}
    assert nodes["Standard_NC24ads_A100_v4"] == 4
    assert nodes["Standard_NC48ads_A100_v4"] == 2
    assert nodes["Standard_NC96ads_A100_v4"] == 1
    (four,) = [item for item in answer["items"] if item["nodes"] == 4]
    assert four["cost"]["on_demand"]["usd_per_job"]["value"] == round(4 * 3.673 * 10, 6)


def test_a_budget_rejects_what_costs_more_and_says_how_much(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=320, region="eastus", budget_usd_per_month=12000, include="rejected")
    assert {item["size"] for item in answer["items"]} == {"Standard_NC96ads_A100_v4"}
    assert answer["rejection_summary"]["BUDGET"] > 0


def test_options_come_in_pages(client: httpx.Client) -> None:
    whole = fit(client, min_gpus=1, limit=500)["items"]
    first = fit(client, min_gpus=1, limit=5)
    second = fit(client, min_gpus=1, limit=5, cursor=first["next_cursor"])
    assert first["items"] + second["items"] == whole[:10]


def test_spot_ranks_by_spot(client: httpx.Client) -> None:
    answer = fit(client, min_gpu_mem=80, region="westeurope", purchase="spot", limit=500)
    costs = [
        item["cost"]["spot"]["usd_per_hour"]
        for item in answer["items"]
        if item["cost"]["spot"]["usd_per_hour"] is not None
    ]
    assert costs == sorted(costs)
    assert costs
