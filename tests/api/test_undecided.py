"""What a search leaves out because a figure is unknown is counted, and told wherever a list is empty for it."""

from collections import Counter
from typing import Any

import httpx
import pytest

from tests.walks import walk

pytestmark = pytest.mark.one_database  # counted in memory, as facets are

FIELD_OF = {
    "infiniband": "infiniband",
    "min_network_gbps": "network_mbps",
    "nvlink": "nvlink",
    "min_gpu_mem": "gpu_memory_gib",
    "min_gpus": "gpu_count",
    "max_usd_per_hour": "usd_per_hour",
    "min_vcpus": "vcpus",
    "ultra_disk": "ultra_disk",
}
SEARCHES: list[dict[str, Any]] = [
    {"infiniband": True},
    {"infiniband": True, "min_network_gbps": 100},
    {"nvlink": True, "min_gpu_mem": 100},
    {"gpu": "H100", "min_gpus": 8},
    {"max_usd_per_hour": 1, "min_vcpus": 8, "region": "eastus"},
    {"ultra_disk": True},
]
LACKING_WITHOUT_GPUS = {"nvlink", "gpu_memory_gib"}


def undecided_fields(item: dict[str, Any], search: dict[str, Any]) -> list[str] | None:
    """Return which figures of a size are unknown that a search bounds; None if a known one meets no bound."""
    unknown = []
    for name, value in search.items():
        field = FIELD_OF.get(name)
        if field is None:
            continue
        if item[field] is None and not (field in LACKING_WITHOUT_GPUS and item["gpu_count"] == 0):
            unknown.append(field)
        elif item[field] is None or not meets(name, item[field], value):
            return None
    return unknown or None


def meets(name: str, known: Any, value: Any) -> bool:
    if name.startswith("min_"):
        return bool(known >= value * (1000 if name == "min_network_gbps" else 1))
    return bool(known <= value) if name.startswith("max_") else known is value


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_sizes_of_unknown_figures_are_counted_by_what_is_unknown(client: httpx.Client, search: dict[str, Any]) -> None:
    others = {name: value for name, value in search.items() if name not in FIELD_OF}
    found = [undecided_fields(item, search) for item in walk(client, "/sizes", **others)]
    undecided = client.get("/facets", params=search).raise_for_status().json()["undecided"]
    assert undecided["total"] == sum(fields is not None for fields in found)
    counts = {one["value"]: one["count"] for one in undecided["fields"]}
    assert counts == Counter(field for fields in found for field in fields or ())
    page = client.get("/sizes", params={**search, "limit": 1}).raise_for_status().json()
    assert page["unknown"] == counts
    assert (undecided["detail"] is None) == (undecided["total"] == 0)


def test_a_search_without_bounds_is_decided(client: httpx.Client) -> None:
    answer = client.get("/facets", params={"gpu": "A100"}).raise_for_status().json()
    assert answer["undecided"] == {"total": 0, "fields": [], "detail": None}
    assert client.get("/sizes", params={"gpu": "A100"}).raise_for_status().json()["unknown"] == {}


def test_the_note_names_the_figure(client: httpx.Client) -> None:
    answer = client.get("/facets", params={"min_uncached_disk_iops": 1, "name": "*HB*"}).raise_for_status().json()
    total = answer["undecided"]["total"]
    assert total > 10
    assert answer["undecided"]["detail"] == f"{total} more sizes may match: uncached_disk_iops is unknown for {total}"
