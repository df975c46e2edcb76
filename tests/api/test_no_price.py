"""An answer without a price says where prices are known: unknown is not none."""

from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.first_database

ONLY_POLAND = (
    "linux reserved_3y: no price is known in westeurope, only in polandcentral; "
    "`vmsizes refresh azure-prices` brings the others"
)
MODEL = {"model": "llama-3.3-70b", "inference": {"context_tokens": 8192, "concurrency": 1}}
RESOURCES = {"resources": {"min_gpus": 1}}


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    response = client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/sizes", {"gpu": "A100"}),
        ("/sizes", {"gpu": "A100", "sort": "usd_per_hour", "limit": 1}),
        ("/sizes", {"max_usd_per_hour": 10}),  # which no size is known to cost
        ("/sizes", {"gpu": "A100", "fields": "name"}),
        ("/fit", {"min_gpus": 1}),
        ("/fit", {"min_gpus": 1, "budget_usd_per_month": 1000}),
        ("/sizes/d4s_v5/cost", {}),
    ],
)
def test_an_answer_without_a_price_says_where_prices_are_known(
    client: httpx.Client, path: str, params: dict[str, Any]
) -> None:
    body = get(client, path, region="westeurope", purchase="reserved_3y", **params)
    assert body["no_price"] == {
        "os": "linux",
        "purchase": "reserved_3y",
        "known_in": ["polandcentral"],
        "detail": ONLY_POLAND,
    }
    assert "no_price" not in get(client, path, region="polandcentral", purchase="reserved_3y", **params)
    assert "no_price" not in get(client, path, region="westeurope,polandcentral", purchase="reserved_3y", **params)
    assert "no_price" not in get(client, path, purchase="reserved_3y", **params)


@pytest.mark.parametrize("body", [MODEL, RESOURCES], ids=["model", "resources"])
def test_a_body_without_a_price_is_answered_with_where_prices_are_known(
    client: httpx.Client, body: dict[str, Any]
) -> None:
    def fit(region: str, *purchases: str) -> Any:
        asked = {**body, "constraints": {"regions": [region]}, "pricing": {"purchases": purchases}}
        response = client.post("/fit", json=asked)
        assert response.status_code == 200, response.text
        return response.json()

    assert fit("westeurope", "reserved_3y", "on_demand")["no_price"]["detail"] == ONLY_POLAND
    assert "no_price" not in fit("westeurope", "on_demand", "reserved_3y")  # ranked by the first


def test_a_described_machine_has_no_price_anywhere(client: httpx.Client) -> None:
    body = client.post("/fit", json={**MODEL, "hardware": {"gpu": "h100_sxm5_80gb", "gpus": 4}}).json()
    assert body["fits"]
    assert "no_price" not in body


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        (
            {"purchase": "savings_1y", "region": "eastus,westus"},
            (
                "linux savings_1y: no price is known in eastus or westus, only in belgiumcentral, francecentral, "
                "northeurope, polandcentral, swedencentral, westeurope; "
                "`vmsizes refresh azure-prices` brings the others"
            ),
        ),
        (
            {"purchase": "reserved_1y", "os": "windows"},
            (
                "windows reserved_1y: no price is known in any region; it covers the machine and not the licence of "
                "Windows: os=linux has its price"
            ),
        ),
        (
            {"purchase": "reserved_1y", "os": "windows", "region": "eastus"},
            (
                "windows reserved_1y: no price is known in eastus, nor in any other region; "
                "it covers the machine and not the licence of Windows"
            ),
        ),
        (
            {"purchase": "on_demand", "region": "eastus", "as_of": "2022-12-31"},
            "linux on_demand: no price is known in eastus, nor in any other region on 2022-12-31",
        ),
        ({"as_of": "2022-12-31"}, "linux on_demand: no price is known in any region on 2022-12-31"),
    ],
)
def test_where_prices_are_known_is_told_in_words(client: httpx.Client, params: dict[str, str], detail: str) -> None:
    assert get(client, "/sizes", limit=1, **params)["no_price"]["detail"] == detail
    assert get(client, "/fit", min_vcpus=1, limit=1, **params)["no_price"]["detail"] == detail


def test_many_regions_are_counted(client: httpx.Client) -> None:
    note = get(client, "/sizes", purchase="spot", region="norwaywest", limit=1)["no_price"]
    regions = get(client, "/regions", limit=500)["total"]
    assert 6 < len(note["known_in"]) < regions
    assert note["detail"] == (
        f"linux spot: no price is known in norwaywest, but in {len(note['known_in'])} of {regions} regions; "
        "`vmsizes refresh azure-prices` brings the others"
    )


def test_a_page_of_sizes_that_have_no_price_is_no_matter_of_the_region(client: httpx.Client) -> None:
    body = get(client, "/sizes", name="ng16", status="any")
    assert {row["usd_per_hour"] for row in body["items"]} == {None}
    assert "no_price" not in body


def test_of_what_was_known_on_a_past_day_nothing_is_said(client: httpx.Client) -> None:
    body = get(client, "/sizes", region="westeurope", purchase="reserved_3y", known_at="2026-08-31", limit=1)
    assert "no_price" not in body
