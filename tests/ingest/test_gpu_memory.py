from decimal import Decimal
from pathlib import Path

import pytest

from app.catalog.fields import FactValue
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from tests.ingest.pages import details, facts, read

Sizes = dict[str, tuple[FactValue | None, FactValue | None]]


def memories(
    folder: Path, header: str, rows: list[str], around: str = "", title: str = "NX v1-series"
) -> tuple[Sizes, list[str]]:
    """Read a table; give each size's memory of the VM and of one GPU, and the reports."""
    table = f"| Size | {header} |\n|{'---|' * (header.count('|') + 2)}\n" + "".join(f"| {row} |\n" for row in rows)
    reading = read(folder, f"{around}\n\n{table}", title=title)
    names = [row.split("|")[0].strip() for row in rows]
    found = {name: facts(reading, name) for name in names}
    sizes = {
        name: (fields.get("gpu_memory_gib"), fields.get("gpu_memory_gib_per_gpu")) for name, fields in found.items()
    }
    return sizes, details(reading)


COUNTED = "GPU | GPU memory: GiB"
SPECS = "| Part | Quantity | Specs |\n|---|---|---|\n| Accelerators | {count} | {text} |\n"


@pytest.mark.parametrize(
    ("header", "rows", "around", "sizes"),
    [
        pytest.param(
            COUNTED, ["NX8 | 8 A100 40 GB GPUs (NVLink 3.0) | 40"], "", {"NX8": (320, 40)}, id="the row's text: per GPU"
        ),
        pytest.param(
            COUNTED, ["NX8 | 8 V100 32 GB (NVLink) | 256"], "", {"NX8": (256, 32)}, id="the row's text: per VM"
        ),
        pytest.param(
            COUNTED,
            ["NX1 | 1 | 24", "NX4 | 4 | 24", "NX5 | 4 | 96"],
            "",
            {"NX1": (24, 24), "NX4": (96, 24), "NX5": (96, 24)},
            id="a row of one GPU, both ways in one column",
        ),
        pytest.param(
            COUNTED,
            ["NX1 | 1 | 8", "NX2 | 2 | 16"],
            SPECS.format(count="1 - 4 GPUs", text="Nvidia Tesla M60 GPU (16GB)"),
            {"NX1": (8, 8), "NX2": (16, 8)},
            id="half a card counts as one GPU",
        ),
        pytest.param(
            COUNTED,
            ["NX2 | 2 | 80", "NX4 | 4 | 160"],
            "",
            {"NX2": (80, 40), "NX4": (160, 40)},
            id="it grows with the count",
        ),
        pytest.param(
            COUNTED,
            ["NX2 | 2 | 80", "NX4 | 4 | 80"],
            "",
            {"NX2": (160, 80), "NX4": (320, 80)},
            id="it stays while the count grows",
        ),
        pytest.param(
            COUNTED,
            ["NX8 | 8 | 80"],
            SPECS.format(count="8 GPUs", text="Nvidia A100 GPU (80GB)"),
            {"NX8": (640, 80)},
            id="the host's bracket: per GPU",
        ),
        pytest.param(
            COUNTED,
            ["NX8 | 8 | 640"],
            SPECS.format(count="8 GPUs", text="Nvidia A100 GPU (80GB)"),
            {"NX8": (640, 80)},
            id="the host's bracket: per VM",
        ),
        pytest.param(
            COUNTED,
            ["NX8 | 8 | 1,535"],
            SPECS.format(count="8 GPUs", text="AMD Instinct MI300X GPU (192GB)"),
            {"NX8": (1535, 192)},
            id="one short of the product",
        ),
        pytest.param(
            COUNTED,
            ["NX8 |  | 256"],
            SPECS.format(count="8", text="Nvidia Tesla V100 GPU"),
            {"NX8": (256, 32)},
            id="the count is the host's",
        ),
        pytest.param(
            COUNTED,
            ["NX8 | 8 | 32"],
            "NX is powered by 8 NVIDIA Tesla V100 GPUs, each with 32 GB of GPU memory.",
            {"NX8": (256, 32)},
            id="the prose",
        ),
        pytest.param(
            COUNTED, ["NX8 | 8 x V100 | 128"], "", {"NX8": (128, 16)}, id="the model: one of its memories fits"
        ),
        pytest.param(COUNTED, ["NX4 | 4 x P40 | 24"], "", {"NX4": (96, 24)}, id="the model: per GPU"),
        pytest.param("GPU | GPU memory", ["NX4 | 4 | 4 x 24 GB"], "", {"NX4": (96, 24)}, id="the cell is a product"),
        pytest.param("GPU | GPU memory", ["NX4 | 4 | 24 GB each"], "", {"NX4": (96, 24)}, id="the cell says each"),
        pytest.param("GPU | GPU memory", ["NX4 | 4 | 96 GB total"], "", {"NX4": (96, 24)}, id="the cell says total"),
        pytest.param("Accelerator", ["NX4 | 4 x NVIDIA A10 24GB"], "", {"NX4": (96, 24)}, id="no column of its own"),
        pytest.param(
            "GPUs | GPU model | VRAM",
            ["NX4 | 4 | NVIDIA A10 | 24 GB"],
            "",
            {"NX4": (96, 24)},
            id="the model in a column of its own",
        ),
    ],
)
def test_evidence_decides_whether_memory_is_of_one_gpu_or_of_the_vm(
    tmp_path: Path, header: str, rows: list[str], around: str, sizes: Sizes
) -> None:
    assert memories(tmp_path, header, rows, around)[0] == sizes


@pytest.mark.parametrize("count", ["1/6", "⅙", "0.1667"])
def test_a_slice_of_a_gpu_has_the_slices_memory(tmp_path: Path, count: str) -> None:
    reading = read(
        tmp_path, f"| Size | GPU | GPU Memory GiB |\n|---|---|---|\n| NX6 | {count} | 4 |\n| NX36 | 1 | 24 |\n"
    )
    found = facts(reading, "NX6")
    assert (found["gpu_memory_gib"], found["gpu_memory_gib_per_gpu"], found["gpu_fraction"]) == (4, 24, "1/6")


def test_slices_without_a_whole_gpu_are_decided_together(tmp_path: Path) -> None:
    sizes, _ = memories(tmp_path, COUNTED, ["NX4 | 1/4 | 8", "NX8 | 1/2 | 16"])
    assert sizes == {"NX4": (8, 32), "NX8": (16, 32)}


@pytest.mark.parametrize(
    "rows", [["NX8 | 8 | 40"], ["NX8 | | 40"], ["NX2 | 2 x V100 | 32"], ["NX6 | 1/6 | 4"], ["NX8 | 8 | about 40"]]
)
def test_undecided_memory_is_reported_and_not_read(tmp_path: Path, rows: list[str]) -> None:
    sizes, reports = memories(tmp_path, COUNTED, rows)
    assert set(sizes.values()) == {(None, None)}
    assert len(reports) == 1


def test_a_total_that_does_not_divide_gives_no_memory_of_one_gpu(tmp_path: Path) -> None:
    sizes, _ = memories(tmp_path, COUNTED, ["NX8 | 8 x MI300X | 1,535"])
    assert sizes == {"NX8": (1535, None)}


def test_the_header_is_no_evidence(tmp_path: Path) -> None:
    sizes, reports = memories(tmp_path, "GPUs | Memory per GPU (GB)", ["NX8 | 8 | 44"])
    assert sizes == {"NX8": (None, None)}
    assert len(reports) == 1


def test_a_derived_value_has_a_note(tmp_path: Path) -> None:
    reading = read(tmp_path, "| Size | GPU | GPU memory: GiB |\n|---|---|---|\n| NX8 | 8 A100 40 GB | 40 |\n")
    notes = {item.field: (item.raw, item.note) for item in reading.facts}
    assert notes["gpu_memory_gib"] == ("40", "8 x 40 GiB")
    assert notes["gpu_memory_gib_per_gpu"] == ("40", None)


def test_host_specifications_that_the_rows_refute_are_reported(tmp_path: Path) -> None:
    around = SPECS.format(count="1 - 4 GPUs", text="Nvidia Tesla M60 GPU (16GB)")
    _, reports = memories(tmp_path, COUNTED, ["NX1 | 1 | 8", "NX2 | 2 | 16"], around)
    assert ["the host specifications say 16" in report for report in reports] == [True]


MODELS = [
    {"id": "v100-16", "model": "V100 16GB", "family": "V100", "aliases": "Tesla V100", "memory_gib": "16"},
    {"id": "v100-32", "model": "V100 32GB", "family": "V100", "aliases": "", "memory_gib": "32"},
    {"id": "h100", "model": "H100 SXM", "family": "H100", "aliases": "", "memory_gib": "80"},
    {"id": "h100-nvl", "model": "H100 NVL", "family": "H100", "aliases": "H100 PCIe NVL", "memory_gib": "94"},
    {"id": "a10", "model": "A10", "family": "", "aliases": "NVIDIA A10; A10-24", "memory_gib": "24"},
    {"id": "new", "model": "X1", "family": "", "aliases": "", "memory_gib": ""},
]


@pytest.mark.parametrize(
    ("text", "memories"),
    [
        ("NVIDIA Tesla V100", [16, 32]),
        ("V100", [16, 32]),
        ("H100 NVL", [94]),
        ("H100", [80, 94]),
        ("NVIDIA A10 GPU", [24]),
        ("A100", []),
        ("X1", []),
        ("", []),
    ],
)
def test_a_model_is_found_however_it_is_written(text: str, memories: list[int]) -> None:
    assert GpuMemoryIndex.from_rows(MODELS).find(text) == tuple(Decimal(memory) for memory in memories)


@pytest.mark.parametrize(
    ("title", "memories"), [("NVadsA10_v5 size series", [24]), ("NDasrA100_v4", []), ("NX-H100-v5", [80, 94])]
)
def test_a_model_is_found_inside_the_words_of_a_title(title: str, memories: list[int]) -> None:
    assert GpuMemoryIndex.from_rows(MODELS).find_in_title(title) == tuple(Decimal(memory) for memory in memories)
