"""Pages that say a thing of some of their sizes only, or spell one size in two ways."""

from datetime import date
from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

FEATURES = """
## {series} series

- Premium Storage: Supported
- Ephemeral OS Disks: {ephemeral}

## {series} Series (NVMe)

| Size | vCPU | Max data disks |
|---|---|---|
| Standard_{size} | 2 | 4 |

## {series} Series (SCSI)

| Size | vCPU | Max data disks |
|---|---|---|
| Standard_{size} | 2 | 4 |
"""


def test_features_under_one_heading_are_not_those_of_its_sibling(tmp_path: Path) -> None:
    page = FEATURES.format(series="Qxdsv5", size="Q2xds_v5", ephemeral="Supported")
    page += FEATURES.format(series="Qxsv5", size="Q2xs_v5", ephemeral="Not supported")
    reading = read(tmp_path, page, title="Qxdsv5 and Qxsv5 series")
    first, second = facts(reading, "Standard_Q2xds_v5"), facts(reading, "Standard_Q2xs_v5")
    assert (first["ephemeral_os_disk"], first["series"]) == (True, "Qxdsv5")
    assert (second["ephemeral_os_disk"], second["series"]) == (False, "Qxsv5")
    assert details(reading) == []


NOTED = """
# NX v1 series

| Size | vCPUs |
|---|---|
| Standard_NX2_v1 | 2 |
| Standard_NX8_v1 | 8 |
| Standard_NX16_v1 | 16 |

| Feature name | Support status |
|---|---|
| Accelerated Networking | Supported |
| Live Migration | Supported |

> [!NOTE]
> {note}
"""


@pytest.mark.parametrize(
    "note",
    [
        "[Accelerated Networking](/x) is only supported for Standard_NX8_v1 and Standard_NX16_v1.",
        "Accelerated Networking is supported only on NX8_v1, NX16_v1.",
    ],
)
def test_a_note_that_restricts_a_feature_to_some_sizes_is_heeded(tmp_path: Path, note: str) -> None:
    reading = read(tmp_path, NOTED.format(note=note))
    found = {size: facts(reading, f"Standard_NX{size}_v1") for size in (2, 8, 16)}
    assert [found[size]["accelerated_networking"] for size in (2, 8, 16)] == [False, True, True]
    assert all(each["live_migration"] for each in found.values())


def test_a_restriction_that_is_not_understood_leaves_the_feature_open(tmp_path: Path) -> None:
    reading = read(
        tmp_path, NOTED.format(note="Accelerated Networking is only supported for sizes with 8 vCPUs or more.")
    )
    assert all("accelerated_networking" not in facts(reading, f"Standard_NX{size}_v1") for size in (2, 8, 16))
    (report,) = details(reading)
    assert "restricts accelerated_networking to sizes that are not read" in report


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


def test_accelerators_that_no_word_calls_gpus_are_not_counted_as_such(tmp_path: Path) -> None:
    advice = "We advise to migrate to the NDv2 series with NVIDIA V100 GPUs, an alternative to these sizes."
    reading = read(tmp_path, ACCELERATORS.format(title="NX size series", words=advice), title="NX size series")
    found = facts(reading, "Standard_NX10s")
    assert found["vcpus"] == 10
    assert not {name for name in found if name.startswith("gpu")}
    assert any("without saying that they are GPUs" in report for report in details(reading))


@pytest.mark.parametrize("words", ["Each has one AMD GPU.", "Machines for graphics."])
def test_accelerators_of_a_page_that_speaks_of_gpus_are_counted(tmp_path: Path, words: str) -> None:
    reading = read(tmp_path, ACCELERATORS.format(title="NX size series", words=words), title="NX size series")
    assert facts(reading, "Standard_NX10s")["gpu_count"] == 1


RETIRING = """
# {title}

> [!IMPORTANT]
> {notice}

| Size | vCPUs |
|---|---|
| Standard_NX10s | 10 |
"""


@pytest.mark.parametrize(
    "notice",
    [
        "Example NX-series virtual machines (Standard_NX10s) are scheduled for retirement on **May 31, 2027**.",
        "As part of a yearly review, NX-series VMs are retiring on May 31, 2027.",
        "The NX-series and NY-series are at the end of their life and retire on **May 31, 2027**. They stop then.",
        "This series is planned for retirement on 31 May 2027.",
    ],
)
def test_a_retirement_is_read_in_other_words_and_after_another_opening(tmp_path: Path, notice: str) -> None:
    page = RETIRING.format(title="NX size series", notice=notice.replace("Example", "Azure"))
    assert facts(read(tmp_path, page, title="NX size series"), "Standard_NX10s")["retirement_date"] == date(2027, 5, 31)


def test_a_retirement_of_other_series_is_not_that_of_the_page(tmp_path: Path) -> None:
    page = RETIRING.format(title="NX size series", notice="The NZ-series and NY-series retire on **May 31, 2027**.")
    assert "retirement_date" not in facts(read(tmp_path, page, title="NX size series"), "Standard_NX10s")


def test_a_notice_above_two_series_retires_those_that_it_names(tmp_path: Path) -> None:
    page = "# Qv3 and Qsv3-series\n\nThe Qv3-series and Qsv3-series are old and retire on May 31, 2027.\n"
    for series, size in (("Qv3", "Q2_v3"), ("Qsv3", "Q2s_v3"), ("Qtv3", "Q2t_v3")):
        page += f"\n## {series}-series\n\n| Size | vCPUs |\n|---|---|\n| Standard_{size} | 2 |\n"
    reading = read(tmp_path, page, title="Qv3-series and Qsv3-series")
    dates = [facts(reading, f"Standard_{size}").get("retirement_date") for size in ("Q2_v3", "Q2s_v3", "Q2t_v3")]
    assert dates == [date(2027, 5, 31), date(2027, 5, 31), None]


def test_several_series_in_one_cell_of_a_list_are_several(tmp_path: Path) -> None:
    names = "Qsv3-Type1, Qsv3-Type2, and Qsv3-Type3"
    table = f"| Series name | Planned retirement date |\n|---|---|\n| {names} | May 31, 2027 |\n"
    reading = read(tmp_path, table, title="Retired sizes")
    for number in (1, 2, 3):
        assert facts(reading, f"Qsv3-Type{number}")["retirement_date"] == date(2027, 5, 31)


MARKED = """
# NX series

| Size Name | vCPUs | Memory (GB){mark} |
|---|---|---|
| Standard_{name} | 1 | 0.5 |
| Standard_NX2s | 2 | 4 |

| Size Name | {column} |
|---|---|
| Standard_NX1ls | 5 |
| Standard_{other} | 20 |
"""


def test_the_digit_of_a_footnote_behind_a_name_is_no_part_of_it(tmp_path: Path) -> None:
    page = MARKED.format(mark="<sup>1</sup>", name="NX1ls2", column="Max data disks", other="NX2s")
    reading = read(tmp_path, page, title="NX series")
    assert facts(reading, "Standard_NX1ls")["memory_gib"] == pytest.approx(0.5)
    assert facts(reading, "Standard_NX1ls2") == {}
    assert details(reading)[0].endswith(
        "is read as Standard_NX1ls, its spelling in other tables of the page (cell 'Standard_NX1ls2')"
    )


@pytest.mark.parametrize(
    ("mark", "other"), [("", "NX2s"), ("<sup>1</sup>", "NX1ls2")], ids=["no footnotes", "both in one table"]
)
def test_a_name_that_ends_with_a_digit_keeps_it(tmp_path: Path, mark: str, other: str) -> None:
    page = MARKED.format(mark=mark, name="NX1ls2", column="Max data disks", other=other)
    assert facts(read(tmp_path, page, title="NX series"), "Standard_NX1ls2")["vcpus"] == 1


def test_a_size_that_two_tables_spell_with_other_dashes_is_one(tmp_path: Path) -> None:
    page = """
    # NX v5 series

    | Size | vCPUs |
    |---|---|
    | Standard_NX36-24rs_v5 | 24 |
    | Standard_NX36-12rs_v5 | 12 |

    | Size | Max data disks |
    |---|---|
    | Standard_NX36_24rsv5 | 32 |
    | Standard_NX36-12rs_v5 | 32 |
    """
    reading = read(tmp_path, page, title="NX v5 series")
    assert facts(reading, "Standard_NX36-24rs_v5")["max_data_disks"] == 32
    assert facts(reading, "Standard_NX36_24rsv5") == {}
