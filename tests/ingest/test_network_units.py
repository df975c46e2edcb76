"""Network bandwidths in columns whose header names no unit."""

from pathlib import Path

import pytest

from tests.ingest.pages import details, facts, read

TABLE = "| Size | vCPU | Network bandwidth |\n|---|---|---|\n| NX6_v1 | 6 | 12500 |\n| NX12_v1 | 12 | 25000 |\n\n"
SECTIONS = """
## {first}-series

| Size | vCPU | Max NICs / Network bandwidth |
|---|---|---|
| {first}6_v1 | 6 | 2/1000 |

## {second}-series

| Size | vCPU | Max NICs/ Expected network bandwidth{unit} |
|---|---|---|
| {second}6_v1 | 6 | 4/2000 |
"""


@pytest.mark.parametrize(
    "sentence",
    [
        "Network bandwidth is shown in Mbps.",
        "- **Expected network bandwidth** is the sum over all NICs, in units of Mb/s.",
    ],
)
def test_a_sentence_of_the_page_gives_the_unit(tmp_path: Path, sentence: str) -> None:
    reading = read(tmp_path, f"{TABLE}{sentence}\n")
    assert facts(reading, "NX12_v1")["network_mbps"] == 25000
    (note,) = {item.note for item in reading.facts if item.field == "network_mbps"}
    assert note == "in Mbps, as line 12 says"
    assert details(reading) == []


def test_the_header_of_another_table_of_the_page_gives_the_unit(tmp_path: Path) -> None:
    page = SECTIONS.format(first="NX", second="NXs", unit=" (Mbps)")
    reading = read(tmp_path, page, title="NX and NXs-series")
    assert facts(reading, "NX6_v1")["network_mbps"] == 1000
    assert facts(reading, "NXs6_v1")["network_mbps"] == 2000


def test_the_host_specifications_give_the_unit(tmp_path: Path) -> None:
    specs = "| Part | Quantity | Specs |\n|---|---|---|\n| Network | 2 - 8 NICs | 12500 - 40000 Mbps |\n\n"
    assert facts(read(tmp_path, specs + TABLE), "NX12_v1")["network_mbps"] == 25000


@pytest.mark.parametrize("text", ["", "Disks have a throughput in MBps, networks have none.\n"])
def test_a_column_whose_unit_nothing_states_is_reported_once(tmp_path: Path, text: str) -> None:
    reading = read(tmp_path, TABLE + text)
    assert "network_mbps" not in facts(reading, "NX6_v1")
    (report,) = details(reading)
    assert "has no unit, neither in the header nor in the cell; no cell of the column is read" in report


def test_two_tables_that_differ_are_one_report_for_each_field(tmp_path: Path) -> None:
    first = (
        "| Size | vCPU | Max data disks |\n|---|---|---|\n| NX6 | 6 | 4 |\n| NX12 | 12 | 8 |\n| NX24 | 24 | 16 |\n\n"
    )
    second = "| Size | Max data disks |\n|---|---|\n| NX6 | 5 |\n| NX12 | 9 |\n| NX24 | 17 |\n"
    reading = read(tmp_path, first + second)
    assert [facts(reading, name)["max_data_disks"] for name in ("NX6", "NX12", "NX24")] == [4, 8, 16]
    (report,) = details(reading)
    assert "says 5 for NX6, where line 9 says 4; that is kept, and so it is for lines 16, 17" in report
