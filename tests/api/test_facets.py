"""Facets are compared with the items of GET /sizes, one search at a time."""

from collections import Counter
from typing import Any

import httpx
import pytest

from app.catalog.queries.facets import COUNTED_FACETS, FLAG_FACETS, RANGE_FACETS
from app.catalog.queries.filters import SCOPE_FILTERS
from app.catalog.queries.params import FACET_OF_PARAM, SizeFilter
from app.schemas.sizes import FacetsOut
from tests.walks import walk

pytestmark = pytest.mark.one_database  # counted in memory: tests/catalog/test_column_filters.py has each kind

SEARCHES: list[dict[str, Any]] = [
    {},
    {"gpu": "A100"},
    {"gpu": ["A100", "H100*"], "region": "eastus", "max_usd_per_hour": 20},
    {"region": ["eastus", "westeurope"], "os": "windows", "min_vcpus": 12},
    {"status": "retired", "min_gpu_mem": 32},
    {"series": "nc_a100_v4", "gpu_vendor": "AMD"},
    {"nvlink": True, "infiniband": False, "min_gpus": 2, "max_gpus": 8},
    {"q": "v4", "purchase": "spot", "min_usd_per_hour": 1, "verified": True, "premium_storage": True},
    {"available_in": ["eastus", "westeurope"], "arch": "x64", "min_local_disk": 100, "min_network_gbps": 10},
    {"name": "nosuchname"},
]


def facets(client: httpx.Client, search: dict[str, Any]) -> dict[str, Any]:
    answer = client.get("/facets", params=search)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def list_items(client: httpx.Client, search: dict[str, Any], *, but: str = "", **more: Any) -> list[dict[str, Any]]:
    """Return all sizes of a search without the parameters that belong to a facet."""
    query = {name: value for name, value in search.items() if FACET_OF_PARAM.get(name, name) != but} | more
    if but == "status":
        query["status"] = "any"
    return walk(client, "/sizes", **query)


def to_counts(values: list[dict[str, Any]]) -> dict[str | None, int]:
    return {each["value"]: each["count"] for each in values}


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_the_total_is_that_of_the_list(client: httpx.Client, search: dict[str, Any]) -> None:
    assert facets(client, search)["total"] == len(list_items(client, search))


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_values_are_counted_as_if_their_own_parameter_were_not_given(
    client: httpx.Client, search: dict[str, Any]
) -> None:
    found = facets(client, search)
    for name in COUNTED_FACETS:
        values = [item[name] for item in list_items(client, search, but=name)]
        if name == "disk_controller":  # each is counted of a size that has several
            values = [part for value in values for part in (value.split(", ") if value else [None])]
        assert to_counts(found[name]) == Counter(values), name


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_region_counts_the_sizes_found_in_it(client: httpx.Client, search: dict[str, Any]) -> None:
    counts = to_counts(facets(client, search)["region"])
    codes = [region["code"] for region in client.get("/regions?limit=500").json()["items"]]
    for code in ("eastus", "westeurope", "swedencentral", *codes[:3]):
        assert counts.get(code, 0) == len(list_items(client, search, region=code)), code
    assert set(counts) <= set(codes)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_flag_counts_the_sizes_with_it(client: httpx.Client, search: dict[str, Any]) -> None:
    found = facets(client, search)["flags"]
    assert [each["value"] for each in found] == list(FLAG_FACETS)
    for name, count in to_counts(found).items():
        assert name is not None
        assert count == len(list_items(client, search, but=name, **{name: True})), name


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_a_range_has_the_ends_of_the_known_values_whatever_its_own_bounds(
    client: httpx.Client, search: dict[str, Any]
) -> None:
    found = facets(client, search)
    for name in RANGE_FACETS.keys() - {"local_disk_gib", "zones", "gpu_memory_gib_per_gpu"}:
        values = [item[name] for item in list_items(client, search, but=name)]
        known = [value for value in values if value is not None]
        expected = {
            "min": min(known, default=None),
            "max": max(known, default=None),
            "unknown": len(values) - len(known),
        }
        assert found[name] == expected, name


@pytest.mark.parametrize(
    "search", [{"gpu": "A10", "provider": "azure"}, {"gpu": "A10", "min_gpu_mem_per_gpu": 24}, {}], ids=str
)
def test_memory_of_one_gpu_goes_from_the_least_slice_to_the_greatest_whole_gpu(
    client: httpx.Client, search: dict[str, Any]
) -> None:
    name = "gpu_memory_gib_per_gpu"
    listed = list_items(client, search, but=name)
    items = [item for item in listed if item["gpu_count"] and item[name] is not None]
    slices = [item["gpu_memory_gib"] if item["gpu_count"] < 1 else item[name] for item in items]
    ends = facets(client, search)[name]
    assert (ends["min"], ends["max"]) == (min(slices), max(item[name] for item in items))
    assert ends["unknown"] == sum(item[name] is None for item in listed)
    for bound, end in (("min_gpu_mem_per_gpu", "min"), ("max_gpu_mem_per_gpu", "max")):
        reached = {key: value for key, value in search.items() if "gpu_mem" not in key} | {bound: ends[end]}
        assert len(list_items(client, reached)) == len(items), "a slider at its end leaves nothing out"
    if search:
        assert (ends["min"], ends["max"]) == (4, 24)


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    "search",
    [
        {"as_of": "2025-06-01", "gpu": "A100", "max_usd_per_hour": 20},
        {"as_of": "2026-07-01", "region": ["eastus", "westeurope"], "gpu": "A100", "purchase": "spot"},
        {"known_at": "2020-01-01", "gpu": "A100", "region": "eastus"},
    ],
    ids=str,
)
def test_facets_of_a_past_day_are_those_of_the_list_of_that_day(client: httpx.Client, search: dict[str, Any]) -> None:
    found, items = facets(client, search), list_items(client, search)
    assert found["total"] == len(items)
    assert to_counts(found["series"]) == Counter(item["series"] for item in items)
    regions = to_counts(found["region"])
    for code in ("eastus", "swedencentral"):
        assert regions.get(code, 0) == len(list_items(client, search, region=code)), code
    prices = [item["usd_per_hour"] for item in list_items(client, search, but="usd_per_hour")]
    known = [price for price in prices if price is not None]
    ends = {"min": min(known, default=None), "max": max(known, default=None)}
    assert found["usd_per_hour"] == ends | {"unknown": len(prices) - len(known)}


def test_facets_of_a_day_to_come_are_refused(client: httpx.Client) -> None:
    assert client.get("/facets?as_of=2090-01-01").status_code == 422


def test_local_disks_are_counted_together(client: httpx.Client) -> None:
    disks = [(item["temp_disk_gib"], item["nvme_disk_gib"]) for item in list_items(client, {})]
    known = [(temp or 0) + (nvme or 0) for temp, nvme in disks if (temp, nvme) != (None, None)]
    ends = {"min": min(known), "max": max(known), "unknown": len(disks) - len(known)}
    assert facets(client, {})["local_disk_gib"] == ends


def test_the_greatest_count_comes_first_and_unknown_last(client: httpx.Client) -> None:
    for name in (*COUNTED_FACETS, "region"):
        counts = [(-each["count"], each["value"] is None, each["value"]) for each in facets(client, {})[name]]
        assert counts == sorted(counts), name


def test_every_parameter_is_a_facet_s_own_or_narrows_everything() -> None:
    narrowing = {"q", "name", "cpu", "available_in"}
    assert set(SizeFilter.model_fields) == {*FACET_OF_PARAM, *narrowing, *SCOPE_FILTERS}
    assert set(FacetsOut.model_fields) == {"total", "undecided", *COUNTED_FACETS, "region", "flags", *RANGE_FACETS}


@pytest.mark.parametrize(
    ("query", "expected"), [("region=nowhere", "no such region"), ("gpu_model=A100", "did you mean gpu?")]
)
def test_an_invalid_search_is_rejected(client: httpx.Client, query: str, expected: str) -> None:
    answer = client.get(f"/facets?{query}")
    assert answer.status_code == 422
    assert expected in answer.json()["detail"]
