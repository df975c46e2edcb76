from collections import Counter

import httpx
import pytest

from tests.walks import walk

pytestmark = pytest.mark.first_database

CPU = {"max_gpus": "0"}
NEEDS = {"infiniband_gbps": "infiniband", "nvme_disk_gib": "local_nvme", "nvme_disk_count": "local_nvme"}
"""The fields without which others do not apply."""


def test_the_known_figures_are_those_that_the_list_has(client: httpx.Client) -> None:
    sizes = [*walk(client, "/sizes", **CPU)]
    coverage = client.get("/coverage", params=CPU).json()
    assert coverage["total"] == len(sizes)
    assert len(coverage["items"]) > 30
    for item in coverage["items"]:
        if item["field"] == "local_disk_gib" or not item["total"]:
            continue
        applies = [size for size in sizes if size.get(NEEDS.get(item["field"], "")) is not False]
        having = [size for size in applies if size[item["field"]] is not None]
        assert (item["known"], item["total"]) == (len(having), len(applies))
        assert item["percent"] == round(100 * item["known"] / item["total"], 1)
        assert {one["category"]: one["known"] for one in item["categories"] if one["known"]} == Counter(
            size["category"] for size in having
        )
        lacking = Counter(size["series"] for size in applies if size[item["field"]] is None)
        assert {one["series"]: one["sizes"] for one in item["unknown"]} == lacking


def test_figures_of_gpus_apply_to_no_size_without_one(client: httpx.Client) -> None:
    items = {item["field"]: item for item in client.get("/coverage", params=CPU).json()["items"]}
    assert items["gpu_model"] == {
        "field": "gpu_model",
        "total": 0,
        "known": 0,
        "percent": None,
        "categories": [],
        "unknown": [],
    }


@pytest.mark.parametrize("field", ["cpu_model", "uncached_disk_iops", "network_mbps", "local_disk_gib"])
def test_what_is_unknown_has_a_reason_for_each_series(client: httpx.Client, field: str) -> None:
    items = {item["field"]: item for item in client.get("/coverage", params=CPU).json()["items"]}
    unknown = items[field]["unknown"]
    assert sum(one["sizes"] for one in unknown) == items[field]["total"] - items[field]["known"]
    for one in unknown:
        assert one["reason"] in ("no_page", "not_stated", "stated_of_others")
        assert (one["reason"] == "stated_of_others") <= (one["sizes"] < one["total"])


def test_coverage_takes_the_filters_of_sizes(client: httpx.Client) -> None:
    hpc = client.get("/coverage?category=high_performance_compute").json()
    infiniband = next(item for item in hpc["items"] if item["field"] == "infiniband")
    assert infiniband["percent"] == 100.0
    assert client.get("/coverage?gpu=H1000").status_code == 422


@pytest.mark.parametrize(
    ("field", "percent"),
    [
        ("cpu_model", 90),
        ("network_mbps", 90),
        ("uncached_disk_iops", 88),
        ("uncached_disk_mbps", 88),
        ("local_disk_gib", 97),
        ("max_data_disks", 99),
        ("max_nics", 99),
    ],
)
def test_what_people_choose_by_is_known_of_nearly_all_sizes_of_azure_without_a_gpu(
    client: httpx.Client, field: str, percent: float
) -> None:
    items = {item["field"]: item for item in client.get("/coverage", params=CPU).json()["items"]}
    assert items[field]["percent"] >= percent
