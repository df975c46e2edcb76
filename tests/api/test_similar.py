from itertools import pairwise
from typing import Any

import httpx
import pytest

from app.fit.similarity import DISTANCE_TERMS
from tests.walks import walk

pytestmark = pytest.mark.first_database


def get(client: httpx.Client, path: str, **parameters: Any) -> dict[str, Any]:
    response = client.get(path, params=parameters)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def similar(client: httpx.Client, name: str, **parameters: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = get(client, f"/sizes/{name}/similar", **parameters)["items"]
    return items


def test_the_nearest_size_has_the_same_gpu(client: httpx.Client) -> None:
    items = similar(client, "nc24ads_a100_v4", limit=500)
    assert items[0]["size"] == "Standard_NC48ads_A100_v4"
    assert "Standard_NC24ads_A100_v4" not in {item["size"] for item in items}
    for nearer, farther in pairwise(items):
        assert nearer["distance"] <= farther["distance"]


def test_a_distance_is_the_sum_of_its_terms(client: httpx.Client) -> None:
    for item in similar(client, "nc24ads_a100_v4", limit=500):
        assert [term["term"] for term in item["terms"]] == [term.name for term in DISTANCE_TERMS]
        assert sum(term["contribution"] for term in item["terms"]) == pytest.approx(item["distance"], abs=4e-4)


def test_cheaper_and_bigger_sizes_are_flagged(client: httpx.Client) -> None:
    own = get(client, "/sizes/nc48ads_a100_v4")
    items = similar(client, "nc48ads_a100_v4", limit=500)
    assert {item["cheaper"] for item in items} >= {True, False}
    for item in items:
        if item["usd_per_hour"] is not None:
            assert item["cheaper"] is (item["usd_per_hour"] < own["usd_per_hour"])
        if item["bigger"]:
            assert all(item[name] >= own[name] for name in ("gpu_memory_gib", "vcpus", "memory_gib"))
    assert any(item["bigger"] for item in items)


def test_values_are_those_of_the_list_of_sizes(client: httpx.Client) -> None:
    asked = {"region": "westeurope", "os": "windows", "purchase": "spot"}
    items = similar(client, "nc24ads_a100_v4", limit=500, **asked)
    rows = {row["name"]: row for row in walk(client, "/sizes", **asked)}
    assert items
    for item in items:
        row = rows[item["size"]]
        for name in ("gpu_count", "gpu_memory_gib", "vcpus", "memory_gib", "region", "usd_per_hour", "status"):
            assert item[name] == row[name], (item["size"], name)


def test_of_several_regions_the_cheapest_is_used(client: httpx.Client) -> None:
    asked = {"region": "westeurope,eastus"}
    rows = {row["name"]: row for row in walk(client, "/sizes", **asked)}
    items = similar(client, "nc24ads_a100_v4", limit=500, **asked)
    assert {(item["region"], item["usd_per_hour"]) for item in items} == {
        (rows[item["size"]]["region"], rows[item["size"]]["usd_per_hour"]) for item in items
    }


def test_a_size_that_is_not_sold_there_has_neighbours_that_are(client: httpx.Client) -> None:
    everywhere = {row["name"] for row in walk(client, "/sizes", status="any")}
    here = {row["name"] for row in walk(client, "/sizes", region="westeurope")}
    with_gpu = {row["name"] for row in walk(client, "/sizes", min_gpu_mem=40, status="any")}
    absent = sorted((everywhere - here) & with_gpu)
    assert absent
    for name in absent[:5]:
        items = similar(client, name, region="westeurope")
        assert {item["size"] for item in items} <= here
        assert all(term["term"] != "usd_per_hour" for item in items for term in item["terms"])
        assert {item["cheaper"] for item in items} <= {None}


@pytest.mark.takes_seconds
@pytest.mark.one_database  # tests/services/test_similar_columns.py compares with the SQL of each kind
def test_a_size_of_any_series_has_similar_ones_which_are_not_retired(client: httpx.Client) -> None:
    of_series = {row["series"]: row["name"] for row in walk(client, "/sizes", status="any")}
    assert len(of_series) > 150
    for name in of_series.values():
        for asked in ({}, {"purchase": "spot", "os": "windows"}):
            items = similar(client, name, limit=3, **asked)
            assert name not in {item["size"] for item in items}
            assert all(item["status"] != "retired" for item in items)


def test_the_pages_make_up_the_whole_list(client: httpx.Client) -> None:
    whole = get(client, "/sizes/nd40rs_v2/similar", limit=500)
    walked, cursor = [], None
    while True:
        page = get(client, "/sizes/nd40rs_v2/similar", limit=7, **({"cursor": cursor} if cursor else {}))
        walked += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert walked == whole["items"]
    assert whole["total"] == len(walked) > 7


def test_aliases_and_spellings_resolve_to_one_size(client: httpx.Client) -> None:
    spelled = ("Standard_ND96asr_A100_v4", "nd96asr_v4", "STANDARD_ND96ASR_V4")
    assert len({client.get(f"/sizes/{name}/similar").text for name in spelled}) == 1
