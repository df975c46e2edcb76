from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from app.ingest.documents.values import find_units, is_blank, to_amount, to_fraction
from tests.ingest.pages import details, facts, read

TERABYTE = Decimal("931.323")


def one_cell(folder: Path, header: str, cell: str) -> tuple[Mapping[str, object], list[str]]:
    """Read one size with one column beside its vCPUs."""
    reading = read(folder, f"| Size | vCPU | {header} |\n|---|---|---|\n| NX6 | 6 | {cell} |\n")
    found = {name: value for name, value in facts(reading, "NX6").items() if name not in ("vcpus", "series")}
    return found, details(reading)


@pytest.mark.parametrize(
    ("header", "cell", "found"),
    [
        ("Memory (GB)", "1,900", {"memory_gib": 1900}),
        ("RAM", "900 GB", {"memory_gib": 900}),
        ("Memory:GiB", "2,00,000", {"memory_gib": 200000}),
        ("Memory (TiB)", "1.5", {"memory_gib": 1536}),
        ("Temp Disk Size (TB)", "16", {"temp_disk_gib": Decimal("14901.161")}),
        ("Temp Disk Size", "1 TiB", {"temp_disk_gib": 1024}),
        ("Temp storage (SSD) Gib", "736", {"temp_disk_gib": 736}),
        ("Max Temp Storage Disks (Qty.)", "4", {"temp_disk_count": 4}),
        ("Max data disks", "32Disks", {"max_data_disks": 32}),
        (
            "Max uncached disk throughput: IOPS / MBps",
            "80,000 / 800",
            {"uncached_disk_iops": 80000, "uncached_disk_mbps": 800},
        ),
        (
            "Max uncached disk throughput (IOPS/MBps)",
            "80000/800",
            {"uncached_disk_iops": 80000, "uncached_disk_mbps": 800},
        ),
        ("Uncached Premium SSD Throughput (MB/s)", "1,200", {"uncached_disk_mbps": 1200}),
        ("Uncached Disk Burst IOPS", "9,000", {"uncached_disk_burst_iops": 9000}),
        ("Max NICs / Expected network bandwidth (MBps)", "2/20,000", {"max_nics": 2, "network_mbps": 20000}),
        ("Max NICs/network bandwidth (Mbps)", "8 / 40000", {"max_nics": 8, "network_mbps": 40000}),
        ("Max network bandwidth", "24,000 Mbps", {"network_mbps": 24000}),
        ("Max Network Bandwidth (Mb/s)", "75000", {"network_mbps": 75000}),
        ("Network bandwidth (Gbps)", "12.5", {"network_mbps": 12500}),
        ("Network", "InfiniBand", {"infiniband": True}),
        ("Network", "InfiniBand / 25 Gbps", {"infiniband": True, "network_mbps": 25000}),
        (
            "Network",
            "80 Gbps Ethernet, 8x 400 Gb/s NDR InfiniBand",
            {"network_mbps": 80000, "infiniband": True, "infiniband_gbps": 3200},
        ),
        ("InfiniBand", "EDR", {"infiniband": True}),
        ("InfiniBand", "No", {"infiniband": False}),
        ("InfiniBand (Gbps)", "1,600", {"infiniband": True, "infiniband_gbps": 1600}),
        ("vCPU / Memory (GiB)", "6 / 112", {"vcpus": 6, "memory_gib": 112}),
        ("Processor", "AMD EPYC 7V12(Rome)", {"cpu_model": "AMD EPYC 7V12 (Rome)", "arch": "x64"}),
        ("NVMe Disks<sup>2</sup>", "2x960 GB", {"nvme_disk_count": 2, "nvme_disk_gib": Decimal("1788.139")}),
        ("NVMe Disks", "1x 960 GB", {"nvme_disk_count": 1, "nvme_disk_gib": Decimal("894.07")}),
        ("Direct Disk NVMe<sup>3</sup>", "1 TB", {"nvme_disk_count": 1, "nvme_disk_gib": TERABYTE}),
        ("Local NVMe (GiB)", "960", {"nvme_disk_gib": 960}),
        ("GPU", "1/3", {"gpu_count": Fraction(1, 3), "gpu_fraction": "1/3"}),
        ("GPU", "0.25", {"gpu_count": Fraction(1, 4), "gpu_fraction": "1/4"}),
        ("GPUs", "4 x NVIDIA A10", {"gpu_count": 4, "gpu_model": "A10", "gpu_vendor": "NVIDIA"}),
        ("Accelerators (Qty.)", "8", {"gpu_count": 8}),
        ("GPUs", "8 (NVIDIA A10)", {"gpu_count": 8, "gpu_model": "A10", "gpu_vendor": "NVIDIA"}),
        ("GPUs", "2 x NVIDIA GPUs", {"gpu_count": 2, "gpu_vendor": "NVIDIA"}),
        ("Virtual Workstations", "25", {"virtual_workstations": 25}),
        ("GPU / Memory", "1 / 24 GB", {"gpu_count": 1, "gpu_memory_gib": 24, "gpu_memory_gib_per_gpu": 24}),
        ("Max cached throughput: IOPS / MBps", "4000 / 32 (50)", {"cached_disk_iops": 4000, "cached_disk_mbps": 32}),
        ("Temp Disk Size", "1.024 TiB", {"temp_disk_gib": Decimal("1048.576")}),
    ],
)
def test_a_cell_is_read_in_the_unit_of_its_header_or_its_own(
    tmp_path: Path, header: str, cell: str, found: dict[str, object]
) -> None:
    values, reports = one_cell(tmp_path, header, cell)
    assert (values, reports) == ({name: value for name, value in found.items() if name != "vcpus"}, [])


@pytest.mark.parametrize("cell", ["", "-", "–", "—", "N/A", "n/a", "TBD", "Not available"])
def test_a_blank_cell_is_unknown_and_not_reported(tmp_path: Path, cell: str) -> None:
    assert one_cell(tmp_path, "Memory (GiB)", cell) == ({}, [])


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("Memory (GiB)", "768 – 1536"),
        ("Memory (GiB)", "24 - 96"),
        ("Memory (GiB)", "up to 96"),
        ("Memory (GiB)", "lots"),
        ("Memory (GiB)", "1.900"),
        ("Max data disks", "24.000"),
        ("Memory (GiB)", "9" * 40),
        ("Memory", "112"),
        ("Max data disks", "8.5"),
        ("Max data disks", "8 GiB"),
        ("Max NICs / network bandwidth (Mbps)", "8"),
        ("Max uncached disk throughput: IOPS / MBps", "1 / 2 / 3"),
        ("Network bandwidth", "Up to 10 Gbps"),
        ("Network", "fast"),
        ("Network", "100 GB/s"),
        ("Temp Disk Size (GiB)", "80 Gbps"),
        ("GPU", "some"),
        ("NVMe Disks", "a few"),
    ],
)
def test_a_cell_that_is_not_understood_is_reported_with_its_place(tmp_path: Path, header: str, cell: str) -> None:
    reading = read(tmp_path, f"| Size | vCPU | {header} |\n|---|---|---|\n| NX6 | 6 | {cell} |\n")
    found = set(facts(reading, "NX6")) - {"series"}
    assert found == {"vcpus"}
    report = reading.reports[0]
    assert (report.line, report.column, report.cell) == (9, header, cell)


@pytest.mark.parametrize(
    ("header", "cell", "detail"),
    [
        ("Max data disks", "-24", "is below 0"),
        ("Network bandwidth (Gbps)", "99999999999999", "must be at most 2147483647 Mbps"),
        ("Memory (GiB)", "99999999999999", "must be below 1,000,000,000,000 GiB"),
    ],
)
def test_a_figure_that_cannot_be_is_reported_with_its_bound(
    tmp_path: Path, header: str, cell: str, detail: str
) -> None:
    values, (report,) = one_cell(tmp_path, header, cell)
    assert (values, f": {detail} (cell" in report) == ({}, True), report


@pytest.mark.parametrize(
    ("text", "total", "rest"),
    [("1,900", 1900, ""), ("4x800", 3200, ""), ("2 x 960 GB", 1920, "GB"), ("1.8 TBps", Decimal("1.8"), "TBps")],
)
def test_an_amount_is_a_number_and_its_suffix(text: str, total: object, rest: str) -> None:
    amount = to_amount(text)
    assert amount is not None
    assert (amount.total, amount.suffix) == (total, rest)


@pytest.mark.parametrize(
    ("text", "share"), [("0.33", "1/3"), ("0.167", "1/6"), ("½", "1/2"), ("1 1/2", "3/2"), ("8", "8")]
)
def test_a_fraction_of_a_gpu_is_a_rational(text: str, share: str) -> None:
    assert to_fraction(text) == Fraction(share)


def test_bits_and_bytes_differ_by_the_case_of_a_letter() -> None:
    assert find_units("Mb/s") == ["Mbps"]
    assert find_units("MB/s") == ["MBps"]


def test_zero_is_a_value() -> None:
    assert not is_blank("0")
