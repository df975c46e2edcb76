"""The importer on real pages of machines without GPUs, which the second folder of VMSIZES_TEST_PAGES has."""

from datetime import date

import pytest

from app.catalog.fields import FactValue
from app.catalog.readings import Reading
from app.ingest.documents.gpu_rows import GpuMemoryIndex
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


@pytest.mark.skipif(len(REAL) < 3, reason="VMSIZES_TEST_PAGES names no third folder, of more CPU pages")
@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("dsv5-series.md", "Standard_D2s_v5", {"accelerated_networking": True, "uncached_disk_burst_mbps": 1200}),
        ("dav4-series.md", "Standard_D2a_v4", {"memory_gib": 8, "series": "Dav4", "network_mbps": 2000}),
        ("dldsv5-series.md", "Standard_D2lds_v5", {"temp_disk_iops": 9000, "uncached_disk_burst_iops": 10_000}),
        ("dcasccv5-series.md", "Standard_DC4as_cc_v5", {"preview": True}),
        ("dsv2-series.md", "Standard_DS1_v2", {"series": "Dsv2"}),
        ("ebdsv6-series.md", "Standard_E96ds_v6", {"series": None, "preview": None, "cpu_model": None}),
        ("dnsv6-series.md", "Standard_D2ns_v6", {"uncached_disk_burst_mbps": 1250}),
        ("endsv6-series.md", "Standard_E2nds_v6", {"temp_disk_read_iops": 37_500, "temp_disk_write_iops": 15_000}),
        ("ecesv6-series.md", "Standard_EC2es_v6", {"temp_disk_gib": 0}),
        ("easv5-series.md", "Standard_E2as_v5", {"cpu_model": "AMD EPYC 7763v (Milan) or AMD EPYC 9004 (Genoa)"}),
        ("ecasv5-ecadsv5-series.md", "Standard_EC2ads_v5", {"cpu_model": "AMD EPYC 7763v", "series": "ECadsv5"}),
        ("laosv4-series.md", "Standard_L32aos_v4", {"nvme_disk_count": 12, "network_mbps": 50_000}),
        ("mbdsv4-series.md", "Standard_M304bds_4_v4", {"temp_disk_gib": 12_000}),
        ("mbdsv4-series.md", "Standard_M48bds_v4", {"network_mbps": 24_000}),
        ("mbdsv4-series.md", "Standard_M48bds_v3", {"network_mbps": None}),
        ("lsv2-series.md", "Standard_L80s_v2", {"network_mbps": 16_000}),
        ("mdsv2-mm-series.md", "Standard_M192ids_v2", {"retirement_date": date(2027, 3, 31)}),
        ("mdsv2-mm-series.md", "Standard_M32dms_v2", {"retirement_date": None, "temp_disk_sequential_read_mbps": 400}),
        ("dasv7-series.md", "Standard_D2as_v7", {"nvme_interface": True, "scsi_interface": False}),
        ("dpdsv6-series.md", "Standard_D2pds_v6", {"nvme_interface": None, "scsi_interface": None}),
        ("msv3-hm-series.md", "Standard_M416s_6_v3", {"nvme_interface": True, "scsi_interface": True}),
        ("msv3-hm-series.md", "Standard_M416s_6_v3", {"uncached_disk_iops": 130_000, "uncached_disk_mbps": 4000}),
        ("mdsv4-series.md", "Standard_M16lds_v4", {"uncached_disk_mbps": None, "max_data_disks": 64}),
    ],
)
def test_more_pages_figures_are_read(name: str, size: str, expected: dict[str, FactValue | None]) -> None:
    found = facts(read_documents([REAL[2] / name], gpu_memories=GpuMemoryIndex.from_mapping({})), size)
    assert {field: found.get(field) for field in expected} == expected
