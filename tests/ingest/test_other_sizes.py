"""Pages of sizes without GPUs: high performance computing, general purpose, other accelerators."""

from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

GPU_FIELDS = {"gpu_count", "gpu_model", "gpu_vendor", "gpu_memory_gib", "gpu_memory_gib_per_gpu"}


def test_a_page_of_high_performance_sizes_gives_no_gpus(tmp_path: Path) -> None:
    header = "|Size |vCPU |Processor |Memory (GiB) |RDMA performance (Gb/s) |Temp storage (GiB) |Max Ethernet vNICs |"
    row = "|Standard_HX120-96rs_v3 |96 |AMD EPYC 7V73X |448 |200 |2 * 960 |8 |"
    found = facts(read(tmp_path, f"{header}\n|--|--|--|--|--|--|--|\n{row}\n"), "Standard_HX120-96rs_v3")
    expected = {
        "vcpus": 96, "cpu_model": "AMD EPYC 7V73X", "memory_gib": 448, "infiniband_gbps": 200, "temp_disk_gib": 1920,
        "max_nics": 8,
    }  # fmt: skip
    assert {name: found.get(name) for name in expected} == expected
    assert GPU_FIELDS.isdisjoint(found)


def test_a_disk_size_is_per_disk_if_one_disk_has_the_size_of_several(tmp_path: Path) -> None:
    rows = "| D8_v6 | 1 | 440 |\n| D32_v6 | 4 | 440 |\n| D64_v6 | 4 | 880 |\n"
    reading = read(tmp_path, f"| Size | Temp Disks (Qty.) | Temp Disk Size (GiB) |\n|---|---|---|\n{rows}")
    total = {name: facts(reading, name)["temp_disk_gib"] for name in ("D8_v6", "D32_v6", "D64_v6")}
    assert total == {"D8_v6": 440, "D32_v6": 1760, "D64_v6": 3520}


def test_a_disk_size_is_the_total_unless_its_table_shows_otherwise(tmp_path: Path) -> None:
    rows = "| NX4 | 2 | 256 |\n| NX24 | 12 | 1,536 |\n| NX28 | 14 | 1,536 |\n"
    reading = read(tmp_path, f"| Size | Temp Disks (Qty.) | Temp Disk Size (GiB) |\n|---|---|---|\n{rows}")
    assert facts(reading, "NX28")["temp_disk_gib"] == 1536


@pytest.mark.parametrize(
    ("rows", "note", "total"),
    [
        ("| NX4 | 3 | 960 |\n| NX8 | 6 | 960 |\n| NX28 | 9 | 960 |\n", "", 8640),
        ("| NX4 | 3 | 960 |\n| NX8 | 6 | 960 |\n| NX24 | 6 | 1920 |\n| NX28 | 9 | 1920 |\n", "", 17280),
        (
            "| NX4 | 2 | 400 |\n| NX28 | 2 | 6000 |\n",
            "- Total local temporary storage is calculated by multiplying the max number of storage disks with it.",
            12_000,
        ),
        ("| NX4 | 2 | 400 |\n| NX28 | 2 | 6000 |\n", "", 6000),
    ],
    ids=["three counts", "two figures", "a note", "nothing"],
)
def test_a_disk_size_is_that_of_one_disk_where_its_table_or_a_note_says_so(
    tmp_path: Path, rows: str, note: str, total: int
) -> None:
    table = f"| Size | Temp Disks (Qty.) | Temp Disk Size (GiB) |\n|---|---|---|\n{rows}"
    assert facts(read(tmp_path, f"{table}\n{note}\n"), "NX28")["temp_disk_gib"] == total


def test_sizes_whose_cell_is_explained_as_remote_storage_have_no_local_disk(tmp_path: Path) -> None:
    table = "| Size | vCPU | Temp storage (SSD) GiB |\n|---|---|---|\n| NX4 | 4 | RS* |\n"
    reading = read(tmp_path, f"{table}\n*RS: These VMs have support for remote storage only\n")
    assert facts(reading, "NX4")["temp_disk_gib"] == 0
    assert details(reading) == []
    assert "temp_disk_gib" not in facts(read(tmp_path, table), "NX4")


def test_accelerators_of_another_kind_are_no_gpus(tmp_path: Path) -> None:
    text = """
        | Part | Quantity | Specs |
        |---|---|---|
        | Processor | 192 vCPUs | AMD EPYC (Genoa) [x86-64] |
        | Network | 5 NICs | |
        | Accelerators | 10 cards/20 VPUs | AMD Xilinx Alveo MA35D |

        | Size Name | vCPUs (Qty.) | Accelerators (Qty.) | Accelerator-Memory (GB) |
        |---|---|---|---|
        | Standard_NX16 | 16 | 1 | 8 |
    """
    reading = read(tmp_path, text, title="NX-series")
    found = facts(reading, "Standard_NX16")
    assert found["gpu_count"] == 0
    assert (GPU_FIELDS - {"gpu_count"}).isdisjoint(found)
    assert (found["vcpus"], found["cpu_model"]) == (16, "AMD EPYC (Genoa)")


def test_specifications_of_a_host_are_not_those_of_its_sizes(tmp_path: Path) -> None:
    specs = "| Part | Quantity | Specs |\n|---|---|---|\n| Processor | 192 vCPUs | |\n| Network | 5 NICs | |\n"
    table = "\n| Size | vCPU |\n|---|---|\n| Standard_NX16 | 16 |\n"
    reading = read(tmp_path, specs + table, title="NX-series")
    assert "max_nics" not in facts(reading, "Standard_NX16")
    assert ["of the host" in report.detail for report in reading.reports] == [True]


ACCELERATORS = """
# {title}

{words}

| Size Name | vCPUs (Qty.) |
|---|---|
| Standard_NX10s | 10 |

### Accelerators

Accelerator (GPUs, FPGAs, etc.) details of every size

| Size Name | Accelerators (Qty.) | Accelerator-Memory (GB) |
|---|---|---|
| Standard_NX10s | 1 | 64 |
"""


def test_accelerators_are_not_gpus_unless_the_page_says_so(tmp_path: Path) -> None:
    advice = "We advise to migrate to the NDv2 series with NVIDIA V100 GPUs, an alternative to these sizes."
    reading = read(tmp_path, ACCELERATORS.format(title="NX size series", words=advice), title="NX size series")
    found = facts(reading, "Standard_NX10s")
    assert found["vcpus"] == 10
    assert not {name for name in found if name.startswith("gpu")}
    assert any("without saying that they are GPUs" in report for report in details(reading))


@pytest.mark.parametrize("words", ["Each has one AMD GPU.", "Machines for graphics."])
def test_accelerators_of_a_page_that_names_gpus_are_gpus(tmp_path: Path, words: str) -> None:
    reading = read(tmp_path, ACCELERATORS.format(title="NX size series", words=words), title="NX size series")
    assert facts(reading, "Standard_NX10s")["gpu_count"] == 1
