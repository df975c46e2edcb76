"""Sizes at the prices of a day: lists, one size, fits, comparisons and exports agree with GET /prices."""

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.walks import PRICED, assert_same_answers, walk

TODAY = "2026-09-01"
SIZE = "Standard_D16ads_v6"
DAYS = ("2024-01-10", "2024-05-01", "2026-06-30", TODAY)
LINUX = {"os": "linux", "purchase": "on_demand"}


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def in_force(client: httpx.Client, **params: Any) -> Mapping[str, float]:
    """Return the on-demand Linux prices of the size by region, as GET /prices has them."""
    path = f"/sizes/{SIZE}/prices"
    return {row["region"]: row["usd_per_hour"] for row in get(client, path, limit=500, **LINUX, **params)["items"]}


@pytest.mark.parametrize("day", DAYS)
def test_every_answer_has_the_price_of_the_day(client: httpx.Client, day: str) -> None:
    prices = in_force(client, as_of=day)
    here = {"as_of": day, "region": "eastus"}
    (row,) = get(client, "/sizes", name=SIZE, **here)["items"]
    assert (row["region"], row["usd_per_hour"]) == ("eastus", prices["eastus"])
    assert row["price_as_of"] <= day
    assert get(client, f"/sizes/{SIZE}", as_of=day)["usd_per_hour"] == min(prices.values())
    (fit,) = get(client, "/fit", name=SIZE, **here)["items"]
    assert fit["cost"]["on_demand"]["usd_per_hour"] == prices["eastus"]
    compared = get(client, "/compare", size=f"{SIZE},Standard_D2ads_v6", **here)["fields"]
    (usd,) = [field for field in compared if field["field"] == "usd_per_hour"]
    assert usd["values"][0]["value"] == prices["eastus"]
    (exported,) = csv.DictReader(io.StringIO(client.get("/sizes.csv", params={"name": SIZE, **here}).text))
    assert float(exported["usd_per_hour"]) == prices["eastus"]


@pytest.mark.first_database
def test_the_prices_of_the_size_are_not_the_same_on_all_days(client: httpx.Client) -> None:
    assert len({in_force(client, as_of=day, region="eastus")["eastus"] for day in DAYS}) > 1


@pytest.mark.parametrize(
    "path",
    [
        *PRICED,
        "/sizes?region=eastus,westeurope&sort=-usd_per_gpu_hour&limit=500",
        "/sizes?available_in=eastus,westeurope&os=windows&limit=500",
        f"/sizes/{SIZE}?currency=EUR",
        f"/sizes/{SIZE}/similar?limit=500",
        f"/sizes/{SIZE}/similar?region=eastus,westeurope&purchase=spot&limit=500",
        "/sizes/nc24ads_a100_v4/similar?region=eastus&limit=500",
        "/sizes/nc24ads_a100_v4/similar?region=eastus,westeurope&limit=500",
        "/compare?size=nc24ads_a100_v4,nc40ads_h100_v5&region=eastus,westeurope",
    ],
)
def test_prices_of_today_are_the_same_by_their_history(client: httpx.Client, path: str) -> None:
    assert_same_answers(client, path, f"{path}&as_of={TODAY}")


@pytest.mark.parametrize("region", ["eastus", "eastus,westeurope"])
def test_similar_sizes_have_the_prices_of_the_day(client: httpx.Client, region: str) -> None:
    then = {"as_of": "2024-05-01", "region": region}
    found = get(client, f"/sizes/{SIZE}/similar", limit=100, **then)
    prices = {row["name"]: row["usd_per_hour"] for row in walk(client, "/sizes", **then)}
    assert found["total"] > 100
    for row in found["items"]:
        assert row["usd_per_hour"] == prices[row["size"]]


@pytest.mark.parametrize("path", [*PRICED, f"/sizes/{SIZE}/similar", f"/sizes/{SIZE}/cost?region=eastus"])
def test_the_first_day_of_the_calendar_is_a_day_without_prices(client: httpx.Client, path: str) -> None:
    url = httpx.URL(path).copy_remove_param("currency")  # rates begin later, and the error says so
    answer = client.get(url, params={**url.params, "as_of": "0001-01-01"})
    assert answer.status_code == 200, answer.text
    assert re.findall(r'"usd_per_hour":[0-9]', answer.text) == []


def test_nothing_was_known_before_it_was_taken_in(client: httpx.Client) -> None:
    unknown = {"known_at": "2020-01-01"}
    (row,) = get(client, "/sizes", name=SIZE, **unknown)["items"]
    assert (row["region"], row["usd_per_hour"], row["price_as_of"], row["price_age_days"]) == (None,) * 4
    assert (row["vcpus"], row["status"]) == (16, "current")
    assert get(client, "/sizes", name=SIZE, max_usd_per_hour=1000, **unknown)["total"] == 0
    assert get(client, "/sizes", region="eastus", **unknown)["total"] == 0
    assert get(client, f"/sizes/{SIZE}", **unknown)["usd_per_hour"] is None
    assert get(client, "/fit", name=SIZE, budget_usd_per_month=100000, **unknown)["items"] == []
    body = {"resources": {"min_vcpus": 2}, "constraints": {"name": [SIZE]}, "pricing": unknown}
    (item,) = client.post("/fit", json=body).json()["items"]
    assert item["cost"]["on_demand"]["usd_per_hour"] is None


@pytest.mark.first_database
def test_bounds_and_order_are_by_the_prices_of_the_day(client: httpx.Client) -> None:
    asked = {"region": "eastus", "as_of": DAYS[0], "series": "dadsv6", "sort": "-usd_per_hour"}
    whole = get(client, "/sizes", **asked)["items"]
    prices = [row["usd_per_hour"] for row in whole]
    assert prices == sorted(prices, reverse=True)
    paged = walk(client, "/sizes", **asked | {"limit": 2})
    assert [row["name"] for row in paged] == [row["name"] for row in whole]
    most = prices[len(prices) // 2]
    cheap = get(client, "/sizes", max_usd_per_hour=most, **asked)["items"]
    assert [row["usd_per_hour"] for row in cheap] == [price for price in prices if price <= most]


@pytest.mark.first_database
def test_a_cursor_belongs_to_its_day(client: httpx.Client) -> None:
    cursor = get(client, "/sizes", region="eastus", limit=2, as_of=DAYS[0])["next_cursor"]
    for other in ({}, {"as_of": DAYS[1]}, {"as_of": DAYS[0], "known_at": TODAY}):
        refused = client.get("/sizes", params={"region": "eastus", "limit": 2, "cursor": cursor, **other})
        assert refused.status_code == 400, refused.text


TOMORROW = "2026-09-02"
GETS = (
    *(f"/sizes?name={SIZE}&", f"/sizes/{SIZE}?", f"/fit?name={SIZE}&", "/compare?size=d2s_v5,d4s_v5&"),
    *(f"/sizes.csv?name={SIZE}&", f"/prices?size={SIZE}&", f"/prices.csv?size={SIZE}&", f"/sizes/{SIZE}/prices?"),
    *(f"/sizes/{SIZE}/cost?", f"/sizes.parquet?name={SIZE}&", f"/sizes?name={SIZE}&currency=EUR&"),
    f"/sizes/{SIZE}/similar?limit=1&",
)


@pytest.mark.first_database
@pytest.mark.parametrize("path", GETS)
@pytest.mark.parametrize("field", ["as_of", "known_at"])
def test_a_day_to_come_is_refused_with_the_latest_that_is_allowed(client: httpx.Client, path: str, field: str) -> None:
    assert client.get(f"{path}{field}={TODAY}").status_code == 200
    refused = client.get(f"{path}{field}={TOMORROW}")
    assert refused.status_code == 422, refused.text
    assert f"{field}={TOMORROW}: must not be later than {TODAY}" in refused.json()["detail"]


@pytest.mark.first_database
def test_disks_and_histories_refuse_a_day_to_come_too(client: httpx.Client) -> None:
    history = f"/sizes/{SIZE}/price-history?region=eastus&known_at={TOMORROW}"
    for path in (f"/disks?as_of={TOMORROW}", history):
        assert client.get(path).status_code == 422


@pytest.mark.first_database
@pytest.mark.parametrize("needs", [{"resources": {"min_vcpus": 2}}, {"model": "llama-3.1-8b", "inference": {}}])
@pytest.mark.parametrize("field", ["as_of", "known_at"])
def test_a_fit_names_the_path_of_a_day_to_come(client: httpx.Client, needs: Mapping[str, Any], field: str) -> None:
    refused = client.post("/fit", json={**needs, "pricing": {field: TOMORROW}})
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == f"/body/pricing/{field}"
    assert f"must not be later than {TODAY}" in refused.json()["detail"]
