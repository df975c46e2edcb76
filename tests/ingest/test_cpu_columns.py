"""Columns of pages about CPU sizes: caches and clocks, burst credits, rates of local disks, tables of benchmarks."""

from decimal import Decimal
from pathlib import Path

import pytest

from app.catalog.fields import FactValue
from tests.ingest.pages import details, facts, read


def one_cell(folder: Path, header: str, cell: str) -> dict[str, FactValue]:
    """Return the fields that a column of one cell states, which must not be reported."""
    reading = read(folder, f"| Size | vCPU | {header} |\n|---|---|---|\n| NX6_v1 | 6 | {cell} |\n")
    assert details(reading) == []
    return {name: value for name, value in facts(reading, "NX6_v1").items() if name not in ("series", "vcpus")}


@pytest.mark.parametrize(
    ("header", "cell", "found"),
    [
        ("L3 Cache (MB)", "48.5", {"l3_cache_mib": Decimal("48.5")}),
        ("L3 Cache (GB)", "1.5", {"l3_cache_mib": 1536}),
        ("Memory Bandwidth (GB/s)", "190", {"memory_bandwidth_gb_per_s": 190}),
        ("Memory Bandwidth (TB/s)", "6.5", {"memory_bandwidth_gb_per_s": 6500}),
        ("Base CPU Frequency (GHz)", "2.5", {"cpu_base_ghz": Decimal("2.5")}),
        ("Single-core Frequency Peak (GHz)", "3.7", {"cpu_peak_ghz": Decimal("3.7")}),
        ("All-core Frequency Peak (GHz)", "3.4", {"cpu_all_core_peak_ghz": Decimal("3.4")}),
        ("Backend NICs (Qty.)", "4", {"backend_nics": 4}),
        ("Base CPU Performance of VM (%)<sup>1</sup>", "22.5%", {"cpu_baseline_percent": Decimal("22.5")}),
        ("Base CPU Performance of VM (%)", "40", {"cpu_baseline_percent": 40}),
        ("Initial Credits (Qty.)", "60", {"cpu_credits_initial": 60}),
        ("Credits banked/hour (Qty.)", "24", {"cpu_credits_per_hour": 24}),
        ("Max Banked Credits (Qty.)", "1,152", {"cpu_credits_max": 1152}),
        ("Temp Disk Sequential Read<sup>1</sup> Throughput (MB/s)", "750", {"temp_disk_sequential_read_mbps": 750}),
        ("Temp Disk Sequential Write Throughput (MBps)", "1,120", {"temp_disk_sequential_write_mbps": 1120}),
        ("Temp Disk Random Read (RR) IOPS", "4000", {"temp_disk_read_iops": 4000}),
        ("Temp Disk Random Read (RR)1 IOPS", "4000", {"temp_disk_read_iops": 4000}),
        ("Max Temp Disk Sequential Read (SR) IOPS", "250,000", {"temp_disk_sequential_read_iops": 250_000}),
        ("Temp ReadWrite Storage IOPS", "9,000", {"temp_disk_iops": 9000}),
        ("Temp ReadWrite Storage Speed (MBps)", "125", {"temp_disk_mbps": 125}),
        ("Uncached Storage IOPS", "3,750", {"uncached_disk_iops": 3750}),
        ("Uncached Storage Burst<sup>1</sup> Speed (MBps)", "1,200", {"uncached_disk_burst_mbps": 1200}),
        (
            "Uncached Premium Uncached Premium SSD Burst Throughput (MB/s)",
            "1250",
            {"uncached_disk_burst_mbps": 1250},
        ),
        ("Max Network Bandwidth (Mbps)", "16,000+", {"network_mbps": 16_000}),
        ("NVMe Disk IOPS", "1.5M", {"nvme_disk_iops": 1_500_000}),
        ("NVMe Disk Throughput (MB/s)", "2000", {"nvme_disk_mbps": 2000}),
        ("Max temp storage throughput: IOPS / MBps", "9000/125", {"temp_disk_iops": 9000, "temp_disk_mbps": 125}),
        (
            "Max local disk throughput: IOPS / Read MBps / Write MBps",
            "3000 / 46 / 23",
            {"temp_disk_iops": 3000, "temp_disk_read_mbps": 46, "temp_disk_write_mbps": 23},
        ),
        (
            "Max burst uncached Ultra Disk and Premium SSD v2 throughput: IOPS/MBps",
            "15000/1200",
            {"ultra_disk_burst_iops": 15000, "ultra_disk_burst_mbps": 1200},
        ),
        (
            "Max cached and local disk throughput: IOPS / MBps (cache size in GiB)",
            "4,000 / 32 (12)",
            {"cached_disk_iops": 4000, "cached_disk_mbps": 32},
        ),
        ("Max cached disk throughput: IOPS / MBps (cache size in GiB)", "NA / NA (0)", {}),
        ("Max data disks / throughput: IOPS", "4 / 4x500", {"max_data_disks": 4, "uncached_disk_iops": 2000}),
        ("Max disk throughput: IOPS", "16 x 500", {"uncached_disk_iops": 8000}),
        ("Local HDD: GiB", "70", {"temp_disk_gib": 70}),
        ("Max NICs / Network bandwidth", "2 / moderate", {"max_nics": 2}),
        ("Max NICs / Network bandwidth", "8 extremely high", {"max_nics": 8}),
        ("Max Temp Disk Burst<sup>2</sup> IOPS", "10,000", {"temp_disk_burst_iops": 10000}),
        ("Max Temp Disk Burst Throughput (MB/s)", "250", {"temp_disk_burst_mbps": 250}),
        ("EPC Memory (MiB)", "56", {"epc_memory_mib": 56}),
        ("EPC Memory (GiB)", "4", {"epc_memory_mib": 4096}),
        ("Max Remote Storage (Qty.)", "48", {"max_data_disks": 48}),
        ("Temp storage (SSD) GiB", "Remote Storage Only", {"temp_disk_gib": 0}),
        ("Max Temp Disk Cache Size (GiB)", "793", {"disk_cache_gib": 793}),
        ("Disk Cache Size (GiB)", "1,600", {"disk_cache_gib": 1600}),
        ("Cached Disk Random Read (RR)<sup>1</sup> IOPS", "4000", {"cached_disk_iops": 4000}),
        ("Cached Disk Random Read (RR)<sup>1</sup> Throughput (MB/s)", "32", {"cached_disk_mbps": 32}),
        ("Base size", "NX12_v1", {"parent_size": "NX12_v1"}),
        ("OS Disk Size (GB)", "128", {}),
    ],
)
def test_a_column_of_a_cpu_page_is_read(tmp_path: Path, header: str, cell: str, found: dict[str, FactValue]) -> None:
    assert one_cell(tmp_path, header, cell) == found


def test_a_list_of_constrained_sizes_states_their_vcpus_and_parents(tmp_path: Path) -> None:
    table = "| Size name | Active vCPUs | Base size |\n|---|---|---|\n"
    table += "| Standard_NX8-**2**s_v5 | **2** | NX8s_v5 |\n| Standard_NX8s_v5 | 8 | NX8s_v5 |\n"
    table += "| Standard_NX8-4s_v5 | 4 | as above |\n"
    reading = read(tmp_path, table, title="Constrained sizes")
    assert facts(reading, "Standard_NX8-2s_v5") == {"vcpus": 2, "parent_size": "Standard_NX8s_v5"}
    assert facts(reading, "Standard_NX8s_v5") == {"vcpus": 8}
    assert facts(reading, "Standard_NX8-4s_v5") == {"vcpus": 4}
    assert sum("column 'Base size': is not the name of a size" in text for text in details(reading)) == 1


@pytest.mark.parametrize(
    ("cell", "model", "arch"),
    [
        ("Intel Xeon 8573C (Emerald Rapids) [x86-64]", "Intel Xeon 8573C (Emerald Rapids)", "x64"),
        (
            "Intel Xeon 8473C (Sapphire Rapids) [x86-64] <br>Intel Xeon 8370C (Ice Lake) [x86-64]",
            "Intel Xeon 8473C (Sapphire Rapids) or Intel Xeon 8370C (Ice Lake)",
            "x64",
        ),
        (
            "AMD EPYC 7763v (Milan) [x86-64] , AMD EPYC 9004 (Genoa) [x86-64]",
            "AMD EPYC 7763v (Milan) or AMD EPYC 9004 (Genoa)",
            "x64",
        ),
        ("Intel Xeon 8171M 2.1 GHz (Skylake) [x86-64]", "Intel Xeon 8171M (Skylake)", "x64"),
        ('AMD EPYC™ 9V33X ("Genoa-X")', "AMD EPYC 9V33X (Genoa-X)", "x64"),
        (
            "6th generation Intel® Xeon® Scalable processors (Granite Rapids)",
            "Intel Xeon Scalable (Granite Rapids)",
            "x64",
        ),
        ("Intel® 5th Generation Xeon® Scalable processors", "Intel Xeon Scalable (generation 5)", "x64"),
        ("AMD third-Generation EPYC<sup>TM</sup> 7763v", "AMD EPYC 7763v", "x64"),
        ("Intel@ Xeon® 6 6973PC (Granite Rapids) [x86-64]", "Intel Xeon 6 6973PC (Granite Rapids)", "x64"),
        ("Ampere Altra [Arm64]", "Ampere Altra", "arm64"),
        ("Azure Cobalt 100 [ARM-64] <br>with a fast network", "Azure Cobalt 100", "arm64"),
    ],
)
def test_every_cpu_that_a_vm_may_run_on_is_named(tmp_path: Path, cell: str, model: str, arch: str) -> None:
    specs = f"| Part | Quantity | Specs |\n|---|---|---|\n| Processor | 2 - 96 vCPUs | {cell} |\n\n"
    found = facts(read(tmp_path, f"{specs}| Size | vCPU |\n|---|---|\n| NX6_v1 | 6 |\n"), "NX6_v1")
    assert (found["cpu_model"], found["arch"]) == (model, arch)


SSD = "| Size | Local Solid State Disks (Qty.) | Local Solid State Disk Size (GiB) |\n|---|---|---|\n"


def test_local_solid_state_disks_are_not_called_nvme(tmp_path: Path) -> None:
    found = facts(read(tmp_path, f"{SSD}| NX6 | 1 | 960 |\n"), "NX6")
    assert (found["local_ssd_count"], found["local_ssd_gib"]) == (1, 960)
    assert not {name for name in found if name.startswith("nvme")}


def test_the_size_of_several_solid_state_disks_is_not_guessed(tmp_path: Path) -> None:
    reading = read(tmp_path, f"{SSD}| NX6 | 8 | 14304 |\n")
    assert facts(reading, "NX6") == {"series": "NX v1", "local_ssd_count": 8}
    assert ["of one drive or of all" in text for text in details(reading)] == [True]


def test_results_of_a_benchmark_are_not_specifications(tmp_path: Path) -> None:
    table = "| VM Size | CPU | vCPUs | Memory(GiB) | Avg Score | StdDev |\n|---|---|---|---|---|---|\n"
    rows = "| Standard_NX1 | Xeon A | 1 | 1.9 | 6,514 | 56 |\n| Standard_NX1 | Xeon B | 1 | 1.9 | 6,162 | 195 |\n"
    reading = read(tmp_path, table + rows)
    assert facts(reading, "Standard_NX1") == {}
    assert ["results of a benchmark" in text for text in details(reading)] == [True]


def test_figures_with_nvme_are_taken_where_a_page_has_a_table_for_each_controller(tmp_path: Path) -> None:
    header = "| Size Name | Uncached Disk IOPS | Max NICs |\n|---|---|---|\n"
    tables = (
        f"## NXsv3 (SCSI)\n\n{header}| NX4s_v3 | 65,000 | 8 |\n\n## NXsv3 (NVMe)\n\n{header}| NX4s_v3 | 130,000 | 8 |\n"
    )
    reading = read(tmp_path, tables, title="NXsv3 size series")
    stated = facts(reading, "NX4s_v3")
    assert {name: value for name, value in stated.items() if name != "series"} == {
        "uncached_disk_iops": 130_000,
        "max_nics": 8,
        "nvme_interface": True,
        "scsi_interface": True,
    }
    (detail,) = details(reading)
    assert "is of disks with SCSI" in detail


@pytest.mark.parametrize(
    ("sentence", "controllers"),
    [
        ("This VM series will only work on OS images that support NVMe.", (True, False)),
        ("This VM series works only on OS images that support NVMe.", (True, False)),
        (
            "It will only work on OS images that support NVMe (i.e. drivers required for the local storage).",
            (None, None),
        ),
    ],
)
def test_a_page_says_that_its_sizes_need_nvme(
    tmp_path: Path, sentence: str, controllers: tuple[bool | None, bool | None]
) -> None:
    page = f"| Size | vCPU |\n|---|---|\n| NX6s_v6 | 6 |\n\n> [!NOTE]\n> {sentence}\n"
    stated = facts(read(tmp_path, page, title="NXsv6 size series"), "NX6s_v6")
    assert (stated.get("nvme_interface"), stated.get("scsi_interface")) == controllers
