"""What a page says that its sizes do not have: accelerators, GPUs, local disks."""

from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

TABLE = "| Size | vCPU |\n|---|---|\n| Standard_NX6 | 6 |\n\n"
CAPTION = "### Accelerators\n\nAccelerator (GPUs, FPGAs, etc.) info for each size\n\n"
COUNTS = "| Size Name | Accelerators (Qty.) | Accelerator-Memory (GB) |\n|---|---|---|\n| Standard_NX6 | 2 | 128 |\n\n"
SPECS = (
    "| Part | Quantity | Specs |\n|---|---|---|\n| Processor | 2 - 96 vCPUs | |\n| {part} | {quantity} | {text} |\n\n"
)
GPU_FIELDS = {"gpu_model", "gpu_vendor", "gpu_memory_gib", "gpu_memory_gib_per_gpu"}


@pytest.mark.parametrize(
    "text",
    [
        f"{CAPTION}> [!NOTE]\n> No accelerators are present in this series.\n",
        "No GPUs are present in these sizes.\n",
        f"{CAPTION}> [!NOTE]\n> This series doesn't include any accelerators.\n",
        SPECS.format(part="Accelerators", quantity="None", text=""),
    ],
)
def test_a_page_that_says_that_there_is_no_accelerator_states_zero_gpus(tmp_path: Path, text: str) -> None:
    reading = read(tmp_path, f"{TABLE}{text}", title="NX series")
    assert facts(reading, "Standard_NX6")["gpu_count"] == 0
    assert details(reading) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        CAPTION,
        SPECS.format(part="Accelerators", quantity="", text=""),
        SPECS.format(part="Accelerators", quantity="N/A", text=""),
        "No accelerators are needed for this kind of work.\n",
        "This series doesn't include the drivers of accelerators.\n",
    ],
)
def test_a_page_that_says_nothing_of_accelerators_leaves_the_count_unknown(tmp_path: Path, text: str) -> None:
    assert "gpu_count" not in facts(read(tmp_path, f"{TABLE}{text}", title="NX series"), "Standard_NX6")


def test_a_table_that_counts_gpus_counts_before_a_sentence_that_denies_them(tmp_path: Path) -> None:
    table = "| Size | vCPU | GPUs |\n|---|---|---|\n| Standard_NX6 | 6 | 2 |\n\n"
    reading = read(tmp_path, f"{table}No accelerators are present in this series.\n", title="NX series")
    assert facts(reading, "Standard_NX6")["gpu_count"] == 2
    assert ["says 0 for Standard_NX6, where line 9 says 2" in text for text in details(reading)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        "Local (temp) storage info for each size\n\n> [!NOTE]\n> No local storage present in this series.\n",
        "This series does not have local temporary storage.\n",
        "NX is without a local disk.\n",
        "The NX-series is without local storage.\n",
        SPECS.format(part="Local Storage", quantity="None", text=""),
    ],
)
def test_a_page_that_says_that_there_is_no_local_disk_states_zero(tmp_path: Path, text: str) -> None:
    reading = read(tmp_path, f"{TABLE}{text}", title="NX series")
    assert facts(reading, "Standard_NX6")["temp_disk_gib"] == 0
    assert details(reading) == []


@pytest.mark.parametrize("text", ["NXd is without a local disk.\n", "If NX is without a local disk, use another.\n"])
def test_what_a_page_says_of_the_disks_of_another_series_is_not_read(tmp_path: Path, text: str) -> None:
    assert "temp_disk_gib" not in facts(read(tmp_path, f"{TABLE}{text}", title="NX series"), "Standard_NX6")


ADVICE = """
## Migration guidance

Move to one of these before the end of the year:

- **NY** is best for training with much memory (NVIDIA V100 GPUs).
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (SPECS.format(part="Accelerators", quantity="1 - 4 FPGAs", text="AMD Alveo U250 FPGA (64GB)"), 14),
        (SPECS.format(part="Accelerators", quantity="10 cards/20 VPUs", text="Alveo MA35D"), 14),
        ("Attestation is needed before an FPGA of these VMs is programmed.\n\n", 11),
    ],
)
def test_accelerators_that_the_page_calls_otherwise_are_no_gpus(tmp_path: Path, text: str, line: int) -> None:
    reading = read(tmp_path, TABLE + text + CAPTION + COUNTS + ADVICE, title="NX series")
    found = facts(reading, "Standard_NX6")
    assert found["gpu_count"] == 0
    assert GPU_FIELDS.isdisjoint(found)
    assert [item.line for item in reading.facts if item.field == "gpu_count"] == [line]
    assert ["says that the accelerators are not GPUs" in report for report in details(reading)] == [True]


def test_accelerators_without_a_name_are_unknown_and_never_those_of_the_migration_advice(tmp_path: Path) -> None:
    reading = read(tmp_path, TABLE + CAPTION + COUNTS + ADVICE, title="NX series")
    assert {"gpu_count", *GPU_FIELDS}.isdisjoint(facts(reading, "Standard_NX6"))
    assert ["without saying that they are GPUs" in report for report in details(reading)] == [True]


def test_a_zero_where_a_size_must_have_some_is_reported_and_not_read(tmp_path: Path) -> None:
    page = """
        | Size | vCPUs | Memory (GiB) | GPU | GPU memory (GiB) | Temp disk (GiB) |
        |---|---|---|---|---|---|
        | NX0 | 0 | 0 | 1 A100 | 0 | 0 |
        | NX6 | 6 | 56 | 0 | 0 | 0 |
        """
    reading = read(tmp_path, page)
    assert {"vcpus", "memory_gib", "gpu_memory_gib", "gpu_memory_gib_per_gpu"}.isdisjoint(facts(reading, "NX0"))
    assert facts(reading, "NX0")["temp_disk_gib"] == 0
    assert facts(reading, "NX6")["gpu_count"] == 0
    zero = {(report.line, report.column) for report in reading.reports if report.detail == "must be above 0"}
    assert {(10, "vcpus"), (10, "memory_gib"), (10, "gpu_memory_gib")} <= zero
