"""Tables in notes of third parties: annotated names, counts in words, prices, ambiguous columns."""

from pathlib import Path

import pytest

from app.catalog.fields import FactValue
from tests.ingest.pages import details, facts, read_files

Facts = dict[str, FactValue]


def notes(folder: Path, header: str, *rows: str) -> tuple[dict[str, Facts], list[str]]:
    rule = "|".join("---" for _ in header.split("|"))
    table = "\n".join(f"| {line} |" for line in (header, rule, *rows))
    reading = read_files(folder, {"notes.md": f"# What we run\n\n{table}\n"})
    found = {item.subject: facts(reading, item.subject) for item in reading.facts}
    return found, [text for text in details(reading) if "no series can be read" not in text]


@pytest.mark.parametrize(
    "name",
    [
        "**Standard_NX6** (default)",
        "`Standard_NX6` (best value, cheap)",
        "Standard_NX6 ⭐",
        "**Standard_NX6** 🚀",
        "Standard_NX6 *",
        "Standard_NX6 \\*",
        "Standard_NX6&nbsp;<sup>1</sup>",
    ],
)
def test_annotations_are_removed_from_names(tmp_path: Path, name: str) -> None:
    assert notes(tmp_path, "SKU | vCPU", f"{name} | 6") == ({"Standard_NX6": {"vcpus": 6}}, [])


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("1x A100", {"gpu_count": 1, "gpu_model": "A100"}),
        ("8× A100 + IB", {"gpu_count": 8, "gpu_model": "A100", "infiniband": True}),
        ("A100 (2x)", {"gpu_count": 2, "gpu_model": "A100"}),
        ("A100 x4", {"gpu_count": 4, "gpu_model": "A100"}),
        ("A100 (1/6)", {"gpu_count": "1/6", "gpu_model": "A100"}),
        ("1 x full A100", {"gpu_count": 1, "gpu_model": "A100"}),
        ("8x A100 1.5TB", {"gpu_count": 8, "gpu_model": "A100"}),
        ("1× A10, more CPU", {"gpu_count": 1, "gpu_model": "A10"}),
        ("None (CPU only)", {"gpu_count": 0}),
        ("A100", {"gpu_model": "A100"}),
        ("-", {}),
        ("1/6 GPU", {"gpu_count": "1/6"}),
        ("8x A100 (2× host + 4× link)", {"gpu_count": 8, "gpu_model": "A100"}),
    ],
)
def test_a_gpu_cell_may_put_its_count_anywhere(tmp_path: Path, cell: str, expected: Facts) -> None:
    found, reports = notes(tmp_path, "Size | vCPU | GPU", f"Standard_NX6 | 6 | {cell}")
    of_size = found["Standard_NX6"]
    del of_size["vcpus"]
    if fraction := of_size.pop("gpu_fraction", None):
        of_size["gpu_count"] = fraction
    assert (of_size, reports) == (expected, [])


def test_a_column_of_models_may_have_counts(tmp_path: Path) -> None:
    found, _ = notes(tmp_path, "Size | GPU Type", "Standard_NX6 | 2 x A100")
    assert found["Standard_NX6"] == {"gpu_count": 2, "gpu_model": "A100"}


@pytest.mark.parametrize(
    ("rows", "each"),
    [
        (["NX40 | 8x V100 32GB"], {"NX40": 32}),
        (["NX24 | 4x V100 (64GB)"], {"NX24": 16}),
        (["NX12 | 2x V100 32GB"], {"NX12": None}),
        (["NX12 | 2x V100 32GB each"], {"NX12": 32}),
        (["NX12 | 2x V100 32GB total"], {"NX12": 16}),
        (["NX6 | 1x V100 16GB", "NX12 | 2x V100 32GB"], {"NX6": 16, "NX12": 16}),
        (["NX12 | 2x V100 24GB"], {"NX12": None}),
        (["NX40 | V100 x 8 (32 GB)"], {"NX40": 32}),
        (["NX12 | 2 V100 32 GB GPUs"], {"NX12": 32}),
    ],
)
def test_memory_beside_several_gpus_is_of_each_or_of_all_as_the_model_has_it(
    tmp_path: Path, rows: list[str], each: dict[str, int | None]
) -> None:
    found, reports = notes(tmp_path, "Size | GPU", *rows)
    assert {name: values.get("gpu_memory_gib_per_gpu") for name, values in found.items()} == each
    assert len(reports) == sum(memory is None for memory in each.values())


@pytest.mark.parametrize("header", ["VRAM", "GPU Memory", "GPU RAM", "GPUMem", "vRAM/GPU"])
def test_the_memory_of_gpus_has_many_names(tmp_path: Path, header: str) -> None:
    found, _ = notes(tmp_path, f"Size | GPU | {header}", "NX24 | 4x A100 | 160 GB")
    assert found["NX24"]["gpu_memory_gib"] == 160
    assert found["NX24"]["gpu_memory_gib_per_gpu"] == 40


def test_a_wrong_note_is_kept_as_written(tmp_path: Path) -> None:
    found, reports = notes(tmp_path, "Size | GPU | VRAM", "NX16 | 4x A10 | 96 GB")
    assert (found["NX16"]["gpu_count"], found["NX16"]["gpu_memory_gib"], reports) == (4, 96, [])


def test_prices_are_reported_once_per_table(tmp_path: Path) -> None:
    header = "Size | vCPU | ~On-demand | Spot | €/month | Cost/hr | Est. Cost | OD $/hr (host) | Best for"
    row = "6 | $1.04 | n/a | €9 | ~$1 | $2/hr | **$3** | tests"
    found, reports = notes(tmp_path, header, f"NX6 | {row}", f"NX12 | {row}")
    assert found == {"NX6": {"vcpus": 6}, "NX12": {"vcpus": 6}}
    assert ["prices" in text for text in reports] == [True]
    assert "~On-demand, Spot, €/month, Cost/hr, Est. Cost, OD $/hr (host)" in reports[0]


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("Size | GPUs | InfiniBand | Bandwidth", "NX6 | 8x A100 | HDR | 200 Gb/s"),
        ("Size | GPU | Memory", "NX6 | A100 | 80 GB"),
    ],
)
def test_a_column_that_its_neighbour_makes_ambiguous_is_not_read(tmp_path: Path, header: str, row: str) -> None:
    found, reports = notes(tmp_path, header, row)
    assert {"network_mbps", "memory_gib"}.isdisjoint(found["NX6"])
    assert ["may be the" in text for text in reports] == [True]


def test_rows_that_are_series_give_no_facts_of_sizes(tmp_path: Path) -> None:
    series = ("NXv3", "NX A100 v4", "NXasT4_v3", "NX_A100_v4", "Standard_NXads_H100_v5", "NXadsV710_v5")
    found, reports = notes(tmp_path, "Name | vCPUs | GPU", *(f"{name} | 24 | 4" for name in series))
    assert (found, reports) == ({}, [])


def test_a_table_that_names_sizes_in_no_column_of_names_is_reported_if_it_has_two(tmp_path: Path) -> None:
    assert notes(tmp_path, "Setting | Value", "size | Standard_NX6") == ({}, [])
    _, reports = notes(tmp_path, "Setting | Value", "size | Standard_NX6", "other | Standard_NX12")
    assert len(reports) == 1


def test_total_nvme_is_that_of_all_drives(tmp_path: Path) -> None:
    header = "Size | Number of NVMe Disks | Total NVMe Capacity (GiB)"
    found, reports = notes(tmp_path, header, "NX48 | 2 | 1,788", "NX96 | 8 | 28,610")
    assert (found["NX96"], reports) == ({"nvme_disk_count": 8, "nvme_disk_gib": 28610}, [])


@pytest.mark.parametrize("wrap", [("\r\n", ""), ("\n", "\ufeff"), ("\r\n", "\ufeff"), ("\r", "")])
def test_line_ends_byte_order_marks_and_tabs_are_read(tmp_path: Path, wrap: tuple[str, str]) -> None:
    text = f"{wrap[1]}# NX-series\n\n| Size\t|\tvCPU |\n|---|---|\n|\tStandard_NX6 |\t6\t|\n".replace("\n", wrap[0])
    reading = read_files(tmp_path, {"notes.md": text.encode()})
    assert facts(reading, "Standard_NX6") == {"vcpus": 6, "series": "NX"}
    assert {item.line for item in reading.facts if item.field == "vcpus"} == {5}


@pytest.mark.parametrize(
    ("cell", "count", "total"),
    [
        ("320GB (40GB each)", 8, 320),
        ("320 GB (8 x 40 GB)", 8, 320),
        ("320GB total", 8, 320),
        ("40GB each", 8, 320),
        ("320GB (80GB each)", 8, None),
    ],
)
def test_a_cell_may_state_the_memory_of_all_and_of_each(
    tmp_path: Path, cell: str, count: int, total: int | None
) -> None:
    found, reports = notes(tmp_path, "Size | GPU | VRAM", f"NX96 | {count}x A100 | {cell}")
    assert found["NX96"].get("gpu_memory_gib") == total
    assert len(reports) == (total is None)


@pytest.mark.parametrize("cell", ["~1 A100", "A100 (1-4x)", "1-4 A100", "1 – 4 x A100"])
def test_a_range_of_gpus_is_no_count(tmp_path: Path, cell: str) -> None:
    found, reports = notes(tmp_path, "Size | vCPU | GPU", f"NX96 | 6 | {cell}")
    assert found == {"NX96": {"vcpus": 6}}
    assert len(reports) == 1


@pytest.mark.parametrize(
    ("gpus", "cell", "gbps"),
    [
        ("8x A100", "200 Gb/s", None),
        ("8x A100", "8x200 Gb/s", 1600),
        ("8x A100", "1600 Gb/s", 1600),
        ("1x A100", "200 Gb/s", 200),
        ("8x V100", "100 Gb/s", 100),
    ],
)
def test_the_rate_of_one_port_may_not_be_that_of_a_vm_with_many(
    tmp_path: Path, gpus: str, cell: str, gbps: int | None
) -> None:
    found, reports = notes(tmp_path, "Size | GPU | InfiniBand", f"NX96 | {gpus} | {cell}")
    assert (found["NX96"]["infiniband"], found["NX96"].get("infiniband_gbps")) == (True, gbps)
    assert len(reports) == (gbps is None)


def test_sentences_of_notes_do_not_apply_to_sizes_of_a_table(tmp_path: Path) -> None:
    text = """
# What we run

Our machines are powered by 8 NVIDIA A100 GPUs with 80 GB of memory and AMD EPYC 7V12 (Rome) CPUs, with NVLink 3.0.

| Size | vCPU | VRAM |
|---|---|---|
| Standard_D2_v3 | 2 | |
| Standard_NX6 | 6 | 80 GB |
"""
    reading = read_files(tmp_path, {"notes.md": text})
    assert facts(reading, "Standard_D2_v3") == {"vcpus": 2}
    assert facts(reading, "Standard_NX6") == {"vcpus": 6}
