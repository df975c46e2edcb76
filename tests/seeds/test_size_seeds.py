"""What the seeds know of every size of Azure."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from app.catalog.names import size_key
from tests.seeds.conftest import SEEDS, ByFile
from tests.walks import walk

pytestmark = pytest.mark.first_database

GPUS_UNKNOWN = {
    *("NC8ads_A10_v4", "NC16ads_A10_v4", "ND96is_MI300X_v5", "PB6s"),
}
"""The sizes of which no source says how many GPUs they have, though the API lists them."""


@pytest.fixture(scope="module")
def sizes(client: httpx.Client) -> list[dict[str, Any]]:
    return walk(client, "/sizes", status="any")


@pytest.fixture(scope="module")
def listed(by_file: ByFile) -> set[str]:
    """The names of the sizes that the Resource SKUs API has."""
    return {fact.subject for fact in by_file["sizes"].facts if fact.field == "quota_family"}


def test_about_1500_sizes_are_there(sizes: list[dict[str, Any]]) -> None:
    verified = [size for size in sizes if size["verified"]]
    assert len(verified) > 1500
    assert len({size["series"] for size in verified}) > 170


@pytest.mark.parametrize("field", ["vcpus", "memory_gib", "series", "quota_family"])
def test_every_size_in_the_newest_list_has(sizes: list[dict[str, Any]], listed: set[str], field: str) -> None:
    assert [size["name"] for size in sizes if size["name"] in listed and size[field] is None] == []


def test_the_number_of_gpus_is_known_but_for_a_few(sizes: list[dict[str, Any]], listed: set[str]) -> None:
    unknown = {size["name"] for size in sizes if size["name"] in listed and size["gpu_count"] is None}
    assert unknown == {f"Standard_{name}" for name in GPUS_UNKNOWN}


def test_a_size_without_a_gpu_is_of_a_type_without_gpus(sizes: list[dict[str, Any]]) -> None:
    without = [size for size in sizes if size["gpu_count"] == 0]
    assert len(without) > 1400
    assert {size["gpu_memory_gib"] for size in without} == {0}
    assert "gpu_accelerated" not in {size["category"] for size in without}
    assert {size["category"] for size in sizes if size["gpu_count"]} == {"gpu_accelerated"}


def test_a_constrained_size_has_fewer_vcpus_than_its_parent_and_the_same_memory(sizes: list[dict[str, Any]]) -> None:
    by_name = {size["name"]: size for size in sizes}
    constrained = [size for size in sizes if size["parent_size"]]
    assert len(constrained) == 246
    for size in constrained:
        parent = by_name[size["parent_size"]]
        assert size["vcpus"] < parent["vcpus"]
        assert (size["memory_gib"], size["series"]) == (parent["memory_gib"], parent["series"]), size["name"]
    assert by_name["Standard_HC44-16rs"]["vcpus"] == 16


def test_a_series_is_found_by_its_family_of_quota(client: httpx.Client) -> None:
    found = walk(client, "/sizes", series="standardDSv5Family")
    assert {size["series"] for size in found} == {"dsv5"}
    assert {size["quota_family"] for size in found} == {"standardDSv5Family"}


def test_retirement_dates_are_those_of_the_vendors_list(client: httpx.Client) -> None:
    dates = {size["name"]: (size["status"], size["retirement_date"]) for size in walk(client, "/sizes", status="any")}
    assert dates["Standard_DC2s_v2"] == ("retired", "2026-06-30")
    assert dates["Standard_D2s_v3"] == ("retiring", "2029-11-15")
    assert dates["Standard_M192is_v2"] == ("retiring", "2027-03-31")
    assert dates["Standard_D2s_v6"] == ("current", None)


@pytest.mark.parametrize(
    ("name", "figures"),
    [
        ("Standard_D2ds_v5", {"temp_disk_gib": 75, "nvme_disk_gib": None}),
        ("Standard_D128ds_v6", {"temp_disk_gib": 0, "nvme_disk_gib": 7040, "nvme_disk_count": 4}),
        ("Standard_D2ds_v6", {"nvme_disk_gib": 110}),
        ("Standard_D2s_v6", {"temp_disk_gib": 0}),
        ("Standard_E96-24s_v5", {"temp_disk_gib": 0}),
        ("Standard_B1s", {"uncached_disk_iops": 320, "temp_disk_gib": 4}),
        ("Standard_HB368rs_v5", {"memory_gib": 448, "disputed_fields": ["memory_gib"]}),
        ("Standard_DC2as_v5", {"confidential_computing": "SNP"}),
        ("Standard_EC2es_v6", {"confidential_computing": "TDX"}),
        ("Standard_D2s_v5", {"confidential_computing": None, "encryption_at_host": True}),
        ("Standard_A0", {"status": "retired", "memory_gib": 0.75}),
        (
            "Standard_L32as_v5",
            {"series": "lasv5", "trusted_launch": True, "nvme_disk_gib": 7152.558, "nvme_disk_count": 2},
        ),
        ("Standard_L160iaos_v5", {"vcpus": 160, "memory_gib": 1040, "temp_disk_gib": None, "network_mbps": 200_000}),
        ("Standard_E192ibs_v6", {"status": "preview", "memory_gib": 1832, "temp_disk_gib": 0, "gpu_count": 0}),
        ("Standard_E2bds_v6", {"series": "ebdsv6", "temp_disk_gib": None, "nvme_disk_gib": 110}),
        ("Standard_E2bs_v5", {"series": "ebsv5", "temp_disk_gib": 0, "trusted_launch": True}),
        ("Standard_D2_v3", {"trusted_launch": False}),
        ("Standard_D2pds_v6", {"trusted_launch": None, "disk_controller": None}),
        ("Standard_D2as_v7", {"disk_controller": "NVMe"}),
        ("Standard_M416s_6_v3", {"disk_controller": "NVMe, SCSI", "uncached_disk_iops": 130_000}),
        (
            "Standard_DC2eds_v5",
            {"temp_disk_gib": 47, "trusted_launch": False, "uncached_disk_iops": 3750, "network_mbps": 3000},
        ),
        ("Standard_EC128ieds_v5", {"cpu_vendor": "Intel", "network_mbps": None}),
        ("Standard_HB120-16rs_v2", {"nvme_disk_count": 1, "nvme_disk_gib": 960, "local_nvme": True}),
        ("Standard_HB176-24rs_v4", {"temp_disk_gib": 480, "nvme_disk_count": 2, "nvme_disk_gib": 3352.761}),
        ("Standard_D372ds_v7", {"series": "ddsv7", "memory_gib": 1488, "nvme_disk_gib": 21120, "nvme_disk_count": 6}),
        ("Standard_D2ds_v7", {"temp_disk_gib": None, "local_nvme": True, "disk_controller": "NVMe"}),
        ("Standard_E372ids_v7", {"temp_disk_gib": None, "nvme_disk_gib": 21120, "nvme_disk_count": 3}),
        ("Standard_D248lds_v7", {"temp_disk_gib": None, "nvme_disk_gib": 14080, "uncached_disk_mbps": 13_145}),
        ("Standard_E372is_v7", {"series": "esv7", "vcpus": 372, "temp_disk_gib": 0}),
        ("Standard_F16s", {"temp_disk_gib": 64, "uncached_disk_iops": 51_200, "uncached_disk_mbps": 768}),
        ("Standard_F16s", {"cpu_model": "Intel Xeon E5-2673 v3 or Intel Xeon E5-2673 v4", "cpu_vendor": "Intel"}),
        ("Standard_F16s_v2", {"coremark": 271_236}),
        ("Standard_DS4_v2", {"coremark": 144_002}),
        ("Standard_A2_v2", {"coremark": 12_270}),
        ("Standard_D2s_v6", {"coremark": None}),
        ("Standard_D14", {"temp_disk_gib": 800, "uncached_disk_iops": None, "network_mbps": 8000}),
        ("Standard_GS5-8", {"vcpus": 8, "temp_disk_gib": 896, "uncached_disk_iops": 80_000}),
        ("Standard_HX176-24rs", {"cpu_model": "AMD EPYC 9V33X", "infiniband": True}),
        ("Standard_NP40s", {"temp_disk_gib": 2948, "network_mbps": 30_000, "gpu_count": 0}),
        ("Standard_E2a_v4", {"temp_disk_gib": 50, "temp_disk_count": 1, "disputed_fields": []}),
        ("Standard_E96a_v4", {"temp_disk_gib": 2400, "temp_disk_count": 1, "disputed_fields": []}),
        ("Standard_D96as_v4", {"temp_disk_gib": 768, "temp_disk_count": 1, "max_data_disks": 32}),
        ("Standard_NV4ads_V710_v5", {"uncached_disk_iops": None, "uncached_disk_mbps": 180}),
        ("Standard_NV28adms_V710_v5", {"temp_disk_gib": 1536, "temp_disk_count": None, "max_data_disks": 14}),
        ("Standard_L8s_v2", {"nvme_disk_gib": 1788.139, "nvme_disk_count": 1}),
        ("Standard_L80s_v2", {"nvme_disk_gib": 17881.393, "nvme_disk_count": 10}),
        ("Standard_NG8ads_V620_v1", {"nvme_disk_gib": 894.07, "disputed_fields": []}),
        ("Standard_NG32adms_V620_v1", {"nvme_disk_gib": 3576.279, "disputed_fields": []}),
    ],
)
def test_a_size_has_the_figures_of_its_sources(client: httpx.Client, name: str, figures: dict[str, Any]) -> None:
    size = client.get(f"/sizes/{name}").json()
    assert {field: size[field] for field in figures} == figures


@pytest.mark.parametrize(
    ("name", "region", "usd"),
    [
        ("Standard_D248ds_v7", "eastus", 20.232),
        ("Standard_E372is_v7", "eastus", 35.531),
        ("Standard_E128bds_v6", "eastus", 12.506),
        ("Standard_L2as_v5", "northeurope", 0.291),
    ],
)
def test_a_size_that_a_page_adds_has_the_prices_of_lists(
    client: httpx.Client, name: str, region: str, usd: float
) -> None:
    (size,) = client.get(f"/sizes?name={name}&region={region}").json()["items"]
    assert (size["on_demand_usd_per_hour"], size["verified"]) == (usd, True)


def test_no_source_states_a_field_of_a_size_in_two_files(by_file: ByFile) -> None:
    facts = by_file["sizes"].facts
    assert len({(fact.source, size_key(fact.subject), fact.field) for fact in facts}) == len(facts)


@pytest.mark.takes_seconds
def test_every_list_of_sizes_is_named_after_its_source(by_file: ByFile) -> None:
    made = [fact for fact in by_file["sizes"].facts if Path(fact.file).parent == SEEDS / "sizes"]
    assert {Path(fact.file).stem for fact in made} == {fact.source for fact in made} != set()
    assert all(Path(fact.file).stem == fact.source for fact in made)
