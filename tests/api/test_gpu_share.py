"""If a size's fraction of a GPU is unknown, so is its memory per GPU."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import httpx
import pytest

from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

OF_ONE: dict[str, Any] = {"gpu_memory_gib_per_gpu": 96}


@pytest.fixture
def gpu_share_client(service: CacheMiddleware) -> Iterator[httpx.Client]:
    """A client of a catalog with sizes of one GPU, of a quarter of one, and of an unknown fraction."""
    statements = [
        *size("Standard_G1", gpu_count=1, gpu_memory_gib=96, **OF_ONE),
        *size("Standard_G4th", gpu_count=Fraction(1, 4), gpu_memory_gib=24, **OF_ONE),
        *size("Standard_GUnknown", **OF_ONE),
        *size("Standard_GCountUnknown", gpu_memory_gib=96, **OF_ONE),
        *size("Standard_None", gpu_count=0, gpu_memory_gib=0),
    ]
    prices = [price(f"Standard_{name}", "1.5") for name in ("G1", "G4th", "GUnknown", "GCountUnknown", "None")]
    ingest(writable(service), reading(statements, regions=["eastus"], prices=prices), now=NOW)
    with server(service) as url, open_client(url) as client:
        yield client


def find_names(client: httpx.Client, path: str, **asked: Any) -> set[str]:
    body = client.get(path, params=asked).raise_for_status().json()
    return {(row.get("name") or row["size"]).removeprefix("Standard_") for row in body["items"]}


@pytest.mark.takes_seconds
def test_a_size_whose_share_of_a_gpu_is_unknown_meets_no_bound_of_one_gpu(gpu_share_client: httpx.Client) -> None:
    assert find_names(gpu_share_client, "/sizes", min_gpu_mem_per_gpu=24) == {"G1", "G4th"}
    assert find_names(gpu_share_client, "/sizes", min_gpu_mem_per_gpu=25) == {"G1"}
    assert find_names(gpu_share_client, "/sizes", max_gpu_mem_per_gpu=96) == {"G1", "G4th"}
    assert gpu_share_client.get("/facets", params={"min_gpu_mem_per_gpu": 24}).json()["total"] == 2
    exported = gpu_share_client.get("/sizes.csv", params={"min_gpu_mem_per_gpu": 24, "fields": "name"}).text.split()
    assert exported == ["name", "Standard_G1", "Standard_G4th"]


@pytest.mark.parametrize("bound", [{"min_gpu_mem_per_gpu": 0}, {"max_gpu_mem_per_gpu": 96}])
def test_a_size_without_a_gpu_meets_no_bound_of_one_gpu_and_is_no_open_question(
    gpu_share_client: httpx.Client, bound: dict[str, int]
) -> None:
    assert find_names(gpu_share_client, "/sizes", **bound) == {"G1", "G4th"}
    exported = gpu_share_client.get("/sizes.csv", params={**bound, "fields": "name"}).text.split()
    assert exported == ["name", "Standard_G1", "Standard_G4th"]
    facets = gpu_share_client.get("/facets", params=bound).raise_for_status().json()
    assert (facets["total"], facets["undecided"]["total"]) == (2, 0)
    assert (facets["gpu_memory_gib_per_gpu"]["min"], facets["gpu_memory_gib_per_gpu"]["max"]) == (24, 96)


@pytest.mark.takes_seconds
def test_a_fit_rejects_a_size_with_an_unknown_share(gpu_share_client: httpx.Client) -> None:
    assert find_names(gpu_share_client, "/fit", min_gpu_mem_per_gpu=24) == {"G1", "G4th"}
    rejected = {
        miss["size"].removeprefix("Standard_"): miss["failures"][0]
        for miss in gpu_share_client.get("/fit", params={"min_gpu_mem_per_gpu": 24, "include": "rejected"}).json()[
            "rejected"
        ]
    }
    for name in ("GUnknown", "GCountUnknown"):
        assert rejected[name]["code"] == "GPU_MEMORY_PER_GPU"
        assert rejected[name]["detail"].endswith("no source says what it has")
    body = gpu_share_client.post("/fit", json={"resources": {"min_gpu_mem_per_gpu": 24}}).raise_for_status().json()
    assert {option["size"] for option in body["items"]} == {"Standard_G1", "Standard_G4th"}
