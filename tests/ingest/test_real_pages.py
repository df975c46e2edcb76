"""The importer on real documentation pages; they are no part of the project, the environment names their folder."""

from collections import defaultdict
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from app.catalog.fields import FIELDS, FactValue
from app.catalog.names import size_key
from app.catalog.readings import Reading
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from app.ingest.sources.documents import read_documents
from tests.ingest.pages import REAL

pytestmark = pytest.mark.skipif(not REAL, reason="VMSIZES_TEST_PAGES names no folder of documentation pages")

MEMORIES = GpuMemoryIndex.from_mapping(
    {
        "V100": [16, 32], "A100": [40, 80], "P40": [24], "P100": [16], "M60": [8, 16], "K80": [12, 24], "T4": [16],
        "H100": [80, 94], "H200": [141], "MI300X": [192], "GB200": [192], "GB300": [288], "A10": [24], "MI25": [16],
        "V620": [32], "V710": [24], "RTX PRO 6000": [96],
    }
)  # fmt: skip

SPOT_CHECKS: dict[str, dict[str, FactValue]] = {
    "nd96asr_v4": {
        "vcpus": 96, "memory_gib": 900, "gpu_count": 8, "gpu_memory_gib": 320, "gpu_memory_gib_per_gpu": 40,
        "temp_disk_gib": 6000, "network_mbps": 24000, "infiniband_gbps": 1600,
    },
    "nd96amsr_a100_v4": {
        "memory_gib": 1900, "gpu_memory_gib": 640, "gpu_memory_gib_per_gpu": 80, "temp_disk_gib": 6400,
    },
    "nd96isr_h100_v5": {
        "vcpus": 96, "gpu_memory_gib": 640, "uncached_disk_iops": 40800, "uncached_disk_mbps": 612,
        "network_mbps": 80000, "infiniband_gbps": 3200, "max_data_disks": 32,
    },
    "nd96isr_h200_v5": {
        "memory_gib": 1850, "gpu_memory_gib": 1128, "gpu_memory_gib_per_gpu": 141, "max_data_disks": 16,
    },
    "nd96isr_mi300x_v5": {"gpu_memory_gib": 1535, "max_data_disks": 16, "uncached_disk_iops": 80000},
    "nd128isr_ndr_gb200_v6": {
        "arch": "arm64", "vcpus": 128, "gpu_memory_gib": 768, "gpu_memory_gib_per_gpu": 192, "infiniband_gbps": 1600,
        "max_data_disks": 16,
    },
    "nd128isr_gb300_v6": {"memory_gib": 864, "gpu_memory_gib": 1152, "infiniband_gbps": 3200, "network_mbps": 160000},
    "nc24ads_a100_v4": {
        "vcpus": 24, "temp_disk_gib": 64, "nvme_disk_count": 1, "nvme_disk_gib": Decimal("894.07"), "infiniband": False,
        "generation_1": False, "generation_2": True,
    },
    "nc80adis_h100_v5": {"vcpus": 80, "gpu_memory_gib": 188, "uncached_disk_iops": 240000, "uncached_disk_mbps": 7000},
    "ncc40ads_h100_v5": {"accelerated_networking": False, "max_nics": 8, "temp_disk_gib": 800},
    "nv6ads_a10_v5": {
        "gpu_count": Fraction(1, 6), "gpu_fraction": "1/6", "gpu_memory_gib": 4, "gpu_memory_gib_per_gpu": 24,
        "network_mbps": 5000,
    },
    "nv36adms_a10_v5": {"memory_gib": 880, "gpu_count": 1},
    "nv4as_v4": {"gpu_count": Fraction(1, 8), "gpu_memory_gib": 2, "gpu_model": "Instinct MI25", "gpu_vendor": "AMD"},
    "nv12s_v3": {"gpu_memory_gib": 8, "retirement_date": date(2026, 9, 30)},
    "nv48s_v3": {"gpu_memory_gib": 32, "gpu_memory_gib_per_gpu": 8},
    "nc64as_t4_v3": {"gpu_memory_gib": 64, "memory_gib": 440},
    "nd24s": {"gpu_memory_gib": 96, "gpu_memory_gib_per_gpu": 24, "retirement_date": date(2023, 9, 6)},
    "nd40rs_v2": {"vcpus": 40, "gpu_count": 8, "gpu_memory_gib": 256, "gpu_memory_gib_per_gpu": 32},
    "nc24rs_v3": {"gpu_memory_gib": 64, "infiniband": True, "retirement_date": date(2025, 9, 30)},
    "ng32adms_v620_v1": {"memory_gib": 176, "gpu_memory_gib": 32, "nvme_disk_gib": Decimal("3576.279")},
    "nc256ds_xl_rtxpro6000bse_v6": {"gpu_memory_gib": 192, "gpu_memory_gib_per_gpu": 96, "preview": True},
}  # fmt: skip


@pytest.fixture(scope="module")
def reading() -> Reading:
    return read_documents(REAL[:1], gpu_memories=MEMORIES)


@pytest.fixture(scope="module")
def stated(reading: Reading) -> dict[tuple[str, str], set[FactValue]]:
    values: dict[tuple[str, str], set[FactValue]] = defaultdict(set)
    for item in reading.facts:
        values[size_key(item.subject), item.field].add(item.value)
    return values


@pytest.mark.parametrize("size", SPOT_CHECKS)
def test_the_pages_figures_are_read(stated: dict[tuple[str, str], set[FactValue]], size: str) -> None:
    missing = {name: value for name, value in SPOT_CHECKS[size].items() if value not in stated[size, name]}
    assert missing == {}


def test_most_cells_become_facts_and_few_become_reports(reading: Reading) -> None:
    assert len(reading.facts) >= 2700
    read_badly = [report for report in reading.reports if "is not there" not in report.detail]
    assert len(read_badly) <= 20


def test_every_fact_is_of_a_known_field_and_found_on_its_line(reading: Reading) -> None:
    lines: dict[str, list[str]] = {}
    for item in reading.facts:
        assert item.field in FIELDS[item.kind]
        text = lines.setdefault(item.file, Path(item.file).read_text(encoding="utf-8").splitlines())
        assert 1 <= item.line <= len(text)
        if item.raw.replace(",", "").isdigit():
            assert item.raw in text[item.line - 1]


def test_count_times_memory_of_one_is_the_memory_of_all(reading: Reading) -> None:
    by_source: dict[tuple[str, str], dict[str, FactValue]] = defaultdict(dict)
    for item in reading.facts:
        by_source[item.source, item.subject][item.field] = item.value
    checked = 0
    for found in by_source.values():
        each, count, total = (found.get(name) for name in ("gpu_memory_gib_per_gpu", "gpu_count", "gpu_memory_gib"))
        if isinstance(each, Decimal) and isinstance(count, Fraction) and isinstance(total, Decimal):
            assert Fraction(each) * count == Fraction(total)
            checked += 1
    assert checked >= 60


def test_a_bogus_page_does_not_reassign_sizes(stated: dict[tuple[str, str], set[FactValue]]) -> None:
    assert stated["nv6ads_a10_v5", "series"] == {"NVadsA10_v5"}
