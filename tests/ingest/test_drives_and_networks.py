from decimal import Decimal
from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

SIZED = "| Size | Max NVMe Disks (Qty.) | NVMe Disk Size (GiB) |\n|---|---|---|\n"
HOST = "| Part | Quantity | Specs |\n|---|---|---|\n| Local Storage | 1 Temp Disk <br> 8 NVMe Disks | {text} |\n\n"


@pytest.mark.parametrize(
    ("rows", "totals"),
    [
        ({"NX1": (1, 960)}, {"NX1": 960}),
        ({"NX1": (1, 960), "NX2": (2, 960)}, {"NX1": 960, "NX2": 1920}),
        ({"NX2": (2, 960), "NX4": (4, 1920)}, {"NX2": 960, "NX4": 1920}),
        ({"NX8": (8, 28672)}, {"NX8": None}),
    ],
)
def test_evidence_decides_whether_a_drive_size_is_of_one_or_of_all(
    tmp_path: Path, rows: dict[str, tuple[int, int]], totals: dict[str, int | None]
) -> None:
    table = SIZED + "".join(f"| {name} | {count} | {size} |\n" for name, (count, size) in rows.items())
    reading = read(tmp_path, table)
    assert {name: facts(reading, name).get("nvme_disk_gib") for name in rows} == totals
    assert {name: facts(reading, name)["nvme_disk_count"] for name in rows} == {name: rows[name][0] for name in rows}
    assert len(reading.reports) == list(totals.values()).count(None)


@pytest.mark.parametrize(("text", "total"), [("28,000 GiB NVMe Disks", 28672), ("224,000 GiB NVMe Disks", 8 * 28672)])
def test_the_host_specifications_decide_whether_a_drive_size_is_of_one_or_of_all(
    tmp_path: Path, text: str, total: int
) -> None:
    reading = read(tmp_path, HOST.format(text=text) + SIZED + "| NX8 | 8 | 28,672 |\n")
    found = [item.value for item in reading.facts if item.field == "nvme_disk_gib" and item.raw == "28,672"]
    assert found == [total]


SCALE = """
| Size Name | Max Front-end NICs (Qty.) | Max Front-end Bandwidth (Gbps) | Max Scale-up NICS (Qty.) | \
Max Scale-Up Bandwidth ({up}) | Max Scale-out NICS (Qty.) | Max Scale-Out Bandwidth ({out}) |
|---|---|---|---|---|---|---|
| NX128 | 1 | 160 | 4 | {rows} |
"""


@pytest.mark.parametrize(
    ("up", "out", "rows", "gbps"),
    [
        ("TBps", "Gbps", "1.8 | 4 | 4x800", 3200),
        ("Gbps", "TBps", "4 x 400 | 4 | 1.8", 1600),
        ("TBps", "Gbps", "1.8 | 4 | 400", None),
    ],
)
def test_the_unit_decides_whether_a_scale_network_is_infiniband_or_nvlink(
    tmp_path: Path, up: str, out: str, rows: str, gbps: int | None
) -> None:
    reading = read(tmp_path, SCALE.format(up=up, out=out, rows=rows))
    found = facts(reading, "NX128")
    assert (found["max_nics"], found["network_mbps"], found["nvlink"]) == (1, 160000, True)
    assert found.get("infiniband_gbps") == gbps
    assert len(reading.reports) == (gbps is None)


def test_a_note_that_bandwidth_is_per_nic_multiplies_it(tmp_path: Path) -> None:
    page = SCALE.format(up="Gbps", out="TBps", rows="400 | 4 | 1.8") + "\n- Bandwidth is per NIC through InfiniBand\n"
    reading = read(tmp_path, page)
    stated = next(item for item in reading.facts if item.field == "infiniband_gbps")
    assert (stated.value, stated.raw) == (1600, "400")
    assert stated.note is not None
    assert "per NIC" in stated.note


@pytest.mark.parametrize(
    ("note", "name"),
    [
        ("*RDMA capable", "NX24r_v1*"),
        ("\\*RDMA capable", "NX24r_v1\\*"),
        ("<sup>2</sup> RDMA capable", "NX24r_v1<sup>2</sup>"),
        ("1 GPU = one card.\n*RDMA capable", "NX24r_v1*"),
    ],
)
def test_a_footnote_gives_infiniband_to_the_sizes_with_its_mark(tmp_path: Path, note: str, name: str) -> None:
    reading = read(tmp_path, f"| Size | vCPU |\n|---|---|\n| NX24_v1 | 24 |\n| {name} | 24 |\n\n{note}\n")
    assert facts(reading, "NX24r_v1").get("infiniband") is True
    assert "infiniband" not in facts(reading, "NX24_v1")


def test_host_specifications_state_single_figures_of_every_size(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """
        | Part | Quantity <br><sup>Count Units | Specs <br><sup>SKU ID, etc.  |
        |---|---|---|
        | Processor | 96 vCPUs | Intel Xeon (Sapphire Rapids) [x86-64] |
        | Memory | 768 - 1,850  GiB | |
        | Local Storage | 1 Disk | 1,024 GiB |
        | Remote Storage | 32Disks | 80,000 IOPS <br>1,200 - 1,400 MBps |
        | Network | 8 NICs | 80 Gbps Ethernet <br>Interfaces: NetVSC |
        | Accelerators | 8 GPUs | Nvidia PCIe A100 GPU (80GB) |

        | Size Name | Memory (GiB) |
        |---|---|
        | NX96 | 1850 |
        """,
    )
    assert details(reading) == []
    assert facts(reading, "NX96") == {
        "series": "NX v1",
        "vcpus": 96,
        "cpu_model": "Intel Xeon (Sapphire Rapids)",
        "arch": "x64",
        "memory_gib": 1850,
        "temp_disk_count": 1,
        "temp_disk_gib": 1024,
        "max_data_disks": 32,
        "uncached_disk_iops": 80000,
        "max_nics": 8,
        "network_mbps": 80000,
        "gpu_count": 8,
        "gpu_vendor": "NVIDIA",
        "gpu_model": "A100 PCIe",
        "gpu_memory_gib_per_gpu": 80,
    }


def test_a_range_that_runs_backwards_and_open_superscripts_state_nothing(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """
        | Part | Quantity <br><sup>Count <sup>Units | Specs |
        |---|---|---|
        | Processor | 6 - 24<sup>vCores | Intel® Xeon® E5-2690 v3 (Haswell) |
        | Data Disks | 24 - 64<sup>Disks | 7,600 - 5,320 IOPS |
        | Accelerators | 1 - 4<sup>GPUs | [NVIDIA Tesla K80](x) 12<sup>GiB </sup> <br> 12 - 48<sup>GiB</sup> per VM |

        | Size | vCPU | GPU | GPU memory: GiB |
        |---|---|---|---|
        | NX24 | 24 | 4 | 48 |
        """,
    )
    found = facts(reading, "NX24")
    assert (found["gpu_memory_gib"], found["gpu_memory_gib_per_gpu"], found["gpu_model"]) == (48, Decimal(12), "K80")
    assert not {"max_data_disks", "uncached_disk_iops"} & set(found)
