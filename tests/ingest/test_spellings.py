"""Sizes that a page spells in two ways."""

from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

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


def test_the_digit_of_a_footnote_is_not_part_of_a_name(tmp_path: Path) -> None:
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


def test_names_that_differ_in_dashes_are_one_size(tmp_path: Path) -> None:
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


MISPRINTED = """
# NXv4-series

| Size Name | vCPUs |
|---|---|
| Standard_NX8s_v4 | 8 |
| Standard_NX16s_v4 | 16 |
| Standard_NX32s_v4 | 32 |

| Size Name | Max data disks |
|---|---|
| Standard_NX8s_v4 | 16 |
| {name} | 24 |
| Standard_NX32s_v4 | 32 |
"""


@pytest.mark.parametrize("name", ["Standard_NX16s_v3", "Standard_16s_v4", "Standard_NX16s_v41"])
def test_a_name_of_another_series_is_the_one_at_its_place_in_a_table_of_the_same_sizes(
    tmp_path: Path, name: str
) -> None:
    reading = read(tmp_path, MISPRINTED.format(name=name), title="NXv4-series")
    assert facts(reading, "Standard_NX16s_v4")["max_data_disks"] == 24
    assert facts(reading, name) == {}
    assert details(reading)[0].endswith(
        f"is read as Standard_NX16s_v4, its spelling in other tables of the page (cell '{name}')"
    )


def test_a_footnote_that_has_grown_into_a_name_in_all_tables_is_no_part_of_it(tmp_path: Path) -> None:
    page = MISPRINTED.replace("NX8s_v4", "NX8s_v41").format(name="Standard_NX16s_v4")
    reading = read(tmp_path, page, title="NXv4-series")
    assert facts(reading, "Standard_NX8s_v4") == {"series": "NXv4", "vcpus": 8, "max_data_disks": 16}
    assert "Standard_NX8s_v41" not in {item.subject for item in reading.facts}
    assert "is read as Standard_NX8s_v4, like its other sizes" in details(reading)[0]


VERSIONED = """
# NX v2 series

| Size Name | vCPUs |
|---|---|
| Standard_NX8s_v2 | 8 |
| Standard_{name} | 80 |

| Size Name | Max data disks |
|---|---|
| Standard_NX8s_v2 | 16 |
| Standard_{other} | 32 |
"""


def test_a_digit_behind_the_version_of_all_other_sizes_is_no_part_of_a_name(tmp_path: Path) -> None:
    reading = read(tmp_path, VERSIONED.format(name="NX80s_v26", other="NX80s_v2"), title="NX v2 series")
    found = facts(reading, "Standard_NX80s_v2")
    assert (found["vcpus"], found["max_data_disks"]) == (80, 32)
    assert facts(reading, "Standard_NX80s_v26") == {}
    assert ["is read as Standard_NX80s_v2" in text for text in details(reading)] == [True]


def test_a_size_of_another_version_keeps_its_name(tmp_path: Path) -> None:
    page = VERSIONED.format(name="NX80s_v12", other="NX80s_v1")
    assert facts(read(tmp_path, page, title="NX series"), "Standard_NX80s_v12")["vcpus"] == 80
