"""The importer on real pages of machines without GPUs, which the second folder of VMSIZES_TEST_PAGES has."""

from datetime import date

import pytest

from app.catalog.fields import FactValue
from app.catalog.readings import Reading
from app.ingest.documents.gpu_memory import GpuMemoryIndex
from app.ingest.sources.documents import read_documents
from tests.ingest.pages import REAL, facts

pytestmark = pytest.mark.skipif(len(REAL) < 2, reason="VMSIZES_TEST_PAGES names no second folder, of CPU pages")


def page(name: str) -> Reading:
    """Read a page by its file's name."""
    return read_documents([REAL[1] / name], gpu_memories=GpuMemoryIndex.from_mapping({"V100": [16, 32]}))


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("ebdsv5-ebsv5-series.md", "Standard_E2bs_v5", {"ephemeral_os_disk": False, "series": "Ebsv5", "vcpus": 2}),
        ("ebdsv5-ebsv5-series.md", "Standard_E112ibs_v5", {"ephemeral_os_disk": False}),
        ("ebdsv5-ebsv5-series.md", "Standard_E2bds_v5", {"ephemeral_os_disk": True, "series": "Ebdsv5"}),
        ("bv1-series.md", "Standard_B1ls", {"accelerated_networking": False, "vcpus": 1, "live_migration": True}),
        ("bv1-series.md", "Standard_B12ms", {"accelerated_networking": True}),
        (
            "np-series.md",
            "Standard_NP20s",
            {"gpu_count": None, "gpu_vendor": None, "retirement_date": date(2027, 5, 31)},
        ),
        ("nm-ads-ma35d-series.md", "Standard_NM16ads_MA35D", {"gpu_count": 0, "gpu_vendor": None, "vcpus": 16}),
        (
            "ev3-esv3-series.md",
            "Standard_E2_v3",
            {"retirement_date": date(2029, 11, 15), "series": "Ev3", "network_mbps": 1000, "temp_disk_write_mbps": 23},
        ),
        ("dsv6-series.md", "Standard_D2s_v6", {"gpu_count": 0, "temp_disk_gib": 0}),
        ("hc-series.md", "Standard_HC44-16rs", {"vcpus": 16, "infiniband_gbps": 100, "memory_bandwidth_gb_per_s": 191}),
        ("lsv4-series.md", "Standard_L96s_v4", {"premium_storage_caching": False, "premium_storage": True}),
        ("lsv4-series.md", "Standard_L80s_v4", {"premium_storage_caching": True}),
        ("bsv2-series.md", "Standard_B2s_v2", {"cpu_baseline_percent": 40, "cpu_credits_max": 1152}),
        ("ev3-esv3-series.md", "Standard_E2s_v3", {"retirement_date": date(2029, 11, 15), "series": "Esv3"}),
        ("hbv5-series.md", "Standard_HB368-336rs_v5", {"vcpus": 336, "max_data_disks": 32, "max_nics": 8}),
    ],
)
def test_the_pages_figures_are_read(name: str, size: str, expected: dict[str, FactValue | None]) -> None:
    found = facts(page(name), size)
    assert {field: found.get(field) for field in expected} == expected


@pytest.mark.parametrize(
    ("name", "size"), [("bv1-series.md", "Standard_B1ls2"), ("hbv5-series.md", "Standard_HB368_336rsv5")]
)
def test_another_spelling_is_not_a_size_of_its_own(name: str, size: str) -> None:
    assert facts(page(name), size) == {}
