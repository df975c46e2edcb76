"""Questions over several clouds: which sizes, whose regions, and the same size elsewhere."""

from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.one_database


def get(clouds: httpx.Client, path: str, **params: Any) -> Any:
    answer = clouds.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_list_is_over_all_clouds_and_each_row_names_its_provider(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", min_gpu_mem_per_gpu=80, sort="usd_per_gpu_hour", limit=30)["items"]
    assert {item["provider"] for item in found} >= {"runpod", "verda", "hyperstack", "lambda"}
    prices = [item["usd_per_gpu_hour"] for item in found]
    assert prices == sorted(prices)


def test_a_region_elsewhere_is_named_as_what_is_wrong(clouds: httpx.Client) -> None:
    answer = clouds.get("/sizes", params={"region": "eastus", "continent": "europe"})
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "region=eastus: not in continent=europe; GET /regions says where each region is",
    )


def test_a_provider_narrows_lists_facets_and_prices(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", provider="aws,oci", limit=500, fields="provider")
    assert {item["provider"] for item in found["items"]} == {"aws", "oci"}
    facets = get(clouds, "/facets", provider="aws")
    # A facet ignores its own parameter.
    assert {each["value"] for each in facets["provider"]} >= {"azure", "aws", "gcp"}
    assert {each["value"] for each in facets["series"]} >= {"aws_m5"}
    assert all(each["value"].startswith("aws_") for each in facets["series"] if each["value"])
    prices = get(clouds, "/prices", provider="gcp", limit=500)["items"]
    assert {get(clouds, f"/sizes/{name}")["provider"] for name in {item["size"] for item in prices[:20]}} == {"gcp"}
    assert get(clouds, "/fit", provider="lambda", min_gpus=8)["items"][0]["size"].startswith("gpu_8x")
    assert clouds.get("/sizes", params={"provider": "nobody"}).status_code == 422


def test_the_first_size_of_azure_in_a_region_stays_one_of_azure(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", region="eastus", sort="usd_per_hour", limit=20)["items"]
    assert {item["provider"] for item in found} == {"azure"}
    assert {item["region"] for item in found} == {"eastus"}


def test_a_country_or_continent_means_the_regions_there(clouds: httpx.Client) -> None:
    found = get(clouds, "/sizes", country="de", name="m5.large,n2-standard-8,standard_d8s_v5", limit=9)["items"]
    assert {item["region"] for item in found} == {"eu-central-1", "europe-west3", "germanywestcentral"}
    found = get(clouds, "/sizes", continent="europe", provider="aws", limit=200)["items"]
    regions = {item["code"]: item for item in get(clouds, "/regions", limit=500)["items"]}
    assert {regions[item["region"]]["continent"] for item in found} == {"europe"}
    assert regions["us-east-1"]["country"] == "US"
    prices = get(clouds, "/prices", country="IE", size="m5.large")["items"]
    assert [item["region"] for item in prices] == ["eu-west-1"]
    answer = clouds.get("/sizes", params={"country": "XX"})
    assert answer.status_code == 422
    assert "country=XX" in answer.json()["detail"]
    assert "DE" in answer.json()["detail"]


def test_a_name_may_begin_with_its_provider(clouds: httpx.Client) -> None:
    assert get(clouds, "/sizes/aws:m5.large")["name"] == "m5.large"
    assert get(clouds, "/sizes/Azure:D8s_v5")["name"] == "Standard_D8s_v5"
    compared = get(clouds, "/compare", size="aws:m7i.2xlarge,gcp:n2-standard-8,azure:d8s_v5")
    assert compared["sizes"] == ["m7i.2xlarge", "n2-standard-8", "Standard_D8s_v5"]
    missing = clouds.get("/sizes/azure:m5.large")
    assert missing.status_code == 404
    assert "azure:m5.large" in missing.json()["detail"]


@pytest.mark.parametrize(
    ("name", "provider", "same"),
    [
        ("m7i.2xlarge", "azure", "Standard_D8s_v6"),
        ("m7i.2xlarge", "gcp", "c3-standard-8"),
        ("n2-standard-8", "aws", "m6i.2xlarge"),
        ("d8s_v5", "aws", "m6i.2xlarge"),
        ("d8s_v5", "gcp", "n2-standard-8"),
    ],
)
def test_similar_sizes_are_found_on_other_clouds(clouds: httpx.Client, name: str, provider: str, same: str) -> None:
    found = get(clouds, f"/sizes/{name}/similar", provider=provider, limit=8)["items"]
    assert {item["provider"] for item in found} == {provider}
    assert same in {item["size"] for item in found}
    assert found[0]["vcpus"] == 8


def test_a_computed_price_is_estimated_and_names_its_formula(clouds: httpx.Client) -> None:
    (price,) = get(clouds, "/prices", size="a1.large", region="eu-west-1")["items"]
    assert price["estimate"]["estimated"] is True
    assert "us-east-1" in price["estimate"]["formula"]
    (row,) = get(clouds, "/sizes", name="a1.large", region="eu-west-1")["items"]
    assert row["estimate"] == price["estimate"]
    (listed,) = get(clouds, "/sizes", name="a1.large", region="us-east-1")["items"]
    assert "estimate" not in listed
    (price,) = get(clouds, "/prices", size="bm.gpu.h100.8")["items"]
    assert price["estimate"]["formula"].startswith("OCPUs or GPUs x")
    formulas = {one["id"]: one["formula"] for one in get(clouds, "/sources", limit=500)["items"]}
    assert formulas[price["source_id"]] == price["estimate"]["formula"]


def test_a_fit_is_over_all_clouds_unless_it_names_some(clouds: httpx.Client) -> None:
    body: dict[str, Any] = {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192}, "limit": 40}
    found = clouds.post("/fit", json=body | {"constraints": {"provider": ["gcp", "aws"], "continent": ["europe"]}})
    assert found.status_code == 200, found.text
    regions = {one["code"]: one for one in get(clouds, "/regions", limit=500)["items"]}
    used = {regions[option["region"]]["provider"] for option in found.json()["items"]}
    assert used <= {"gcp", "aws"}
    assert used
    assert {regions[option["region"]]["continent"] for option in found.json()["items"]} == {"europe"}
    refused = clouds.post("/fit", json=body | {"constraints": {"provider": ["nobody"]}})
    assert refused.status_code == 422


def test_an_unknown_region_is_told_those_of_its_own_cloud(clouds: httpx.Client) -> None:
    for written, meant in (("us-east-9", "us-east-1"), ("us-east9", "us-east1"), ("eastus9", "eastus")):
        detail = clouds.get("/sizes", params={"region": written}).json()["detail"]
        assert written in detail
        assert f"{meant}" in detail
