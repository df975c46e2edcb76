import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ingest.pages import FRONT, details, facts, read, read_files
from tests.speed import slowness

OLD = """
    # NX v1-series

    | Size | vCPU | Memory: GiB | GPU | GPU Memory: GiB |
    |---|---|---|---|---|
    | Standard_NX6s_v1 | 6 | 112 | 1 | 24 |
    | Standard_NX12s_v1 | 12 | 224 | 2 | 48 |
"""
HEADER = "| Size | vCPU | Memory: GiB | GPU | GPU Memory: GiB |\n|---|---|---|---|---|\n"
TWELVE = {"vcpus": 12, "memory_gib": 224, "gpu_count": 2, "gpu_memory_gib": 48, "gpu_memory_gib_per_gpu": 24}


def has_fields(found: Mapping[str, object], expected: Mapping[str, object]) -> bool:
    return {name: found.get(name) for name in expected} == expected


def test_one_wide_table_is_read(tmp_path: Path) -> None:
    reading = read(tmp_path, OLD)
    assert has_fields(facts(reading, "Standard_NX12s_v1"), TWELVE)
    assert not reading.reports


def test_a_fact_has_cell_file_and_line(tmp_path: Path) -> None:
    reading = read(tmp_path, OLD)
    memory = next(s for s in reading.facts if s.field == "memory_gib" and s.value == 224)
    assert (memory.raw, Path(memory.file).name, memory.line) == ("224", "page.md", 13)
    assert (tmp_path / "page.md").read_text().splitlines()[memory.line - 1].startswith("| Standard_NX12s_v1")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("|---|---|---|---|---|", "| :--- | ---: | --- |---|  -----|", id="mixed delimiters"),
        pytest.param("|---|---|---|---|---|", "|---|---|---|", id="delimiter row too short"),
        pytest.param("|---|---|---|---|---|", "|---|---|---|---|---|---|", id="delimiter row too long"),
        pytest.param(
            HEADER, f"| | | | | |\n|---|---|---|---|---|\n{HEADER.splitlines()[0]}\n", id="header below the line"
        ),
        pytest.param("| 2 | 48 |\n", "| 2 | 48\n", id="last pipe missing"),
        pytest.param("| 2 | 48 |\n", "| 2 | 48 | \t\n", id="blanks after the last pipe"),
        pytest.param("| 12 | 224 | 2 |", "|12 |\t224 |  2  |", id="tabs and padding"),
        pytest.param("| 12 | 224 |", "| 12 | 224\u00a0GiB |", id="no-break space and a unit"),
        pytest.param("| 12 | 224 |", "| 12 | 224&nbsp;GB |", id="entity and the other unit"),
        pytest.param("| 12 | 224 |", "| **12** | `224` |", id="bold and code"),
        pytest.param("| 12 | 224 |", "| 12<sup>1</sup> | 224<br> |", id="footnote and break"),
        pytest.param("| Size |", "| Size<sup>2</sup> |", id="footnote in the header"),
        pytest.param("| vCPU |", "| vCPUs (Qty.)&#8203; |", id="zero width space in the header"),
        pytest.param("| Standard_NX12s_v1 |", "| Standard\\_NX12s\\_v1 |", id="escaped underscores"),
        pytest.param("| Standard_NX12s_v1 |", "| [Standard_NX12s_v1](./nx.md) |", id="linked name"),
        pytest.param("| Standard_NX12s_v1 |", "| **Standard_NX12s_v1**<sup>3</sup> |", id="bold name with a footnote"),
        pytest.param("\n| Size |", "\n> Mind the quota.\n>\n| Size |", id="after a quoted line"),
        pytest.param("\n| Size |", "\n> Mind the quota.\n| Size |", id="directly after a quotation"),
        pytest.param("\n| Size |", "\nSizes:\n| Size |", id="directly after a paragraph"),
        pytest.param("\n| Size |", "\n- A point.\n| Size |", id="directly after a list"),
        pytest.param("\n| Size |", "\n<br>\n| Size |", id="directly after a break"),
        pytest.param("| 2 | 48 |\n", "| 2 | 48 |\n#### Resources\n", id="a heading directly below"),
        pytest.param("| 2 | 48 |\n", "| 2 | 48 |\n*RDMA capable\n", id="a footnote directly below"),
        pytest.param("| 2 | 48 |\n", "| 2 | 48 |\n[!INCLUDE [x](../sizes-table-defs.md)]\n", id="an include below"),
        pytest.param("\n", "\r\n", id="line ends of Windows"),
    ],
)
def test_broken_table_layouts_are_repaired(tmp_path: Path, before: str, after: str) -> None:
    page = FRONT.format(title="NX v1-series") + OLD.replace("\n    ", "\n")
    assert before in page
    reading = read_files(tmp_path, {"page.md": page.replace(before, after)})
    assert has_fields(facts(reading, "Standard_NX12s_v1"), TWELVE)
    assert details(reading) == []


def test_a_page_without_front_matter_and_final_newline_is_read(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"page.md": OLD.replace("\n    ", "\n").rstrip()})
    assert has_fields(facts(reading, "Standard_NX12s_v1"), TWELVE)


def test_tables_of_several_tabs_are_joined_by_the_size(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """
        ### [Basics](#tab/sizebasic)

        | Size Name | vCPUs (Qty.) | Memory (GB) |
        | --- | --- | --- |
        | Standard_NX12s_v1 | 12 | 224 |

        ### [Accelerators](#tab/sizeaccelerators)

        | Size Name | Accelerators (Qty.) | Accelerator-Memory (GB) |
        | --- | --- | --- |
        | Standard_NX6s_v1 | 1 | 24 |
        | Standard_NX12s_v1 | 2 | 48 |

        ---
        """,
    )
    assert has_fields(facts(reading, "Standard_NX12s_v1"), TWELVE)


def test_a_table_inside_a_list_is_no_table_of_sizes(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """
        - The names have changed:

            | Size name | Memory (GiB) |
            |---|---|
            | Standard_NX6s_v1 | 112 |
        """,
    )
    assert facts(reading, "Standard_NX6s_v1") == {}
    assert details(reading) == []


def test_other_tables_are_ignored_without_a_report(tmp_path: Path) -> None:
    reading = read(
        tmp_path,
        """
        | Application | Video Card | OS | Driver |
        | --- | --- | --- | --- |
        | Paint 2025 | Radeon PRO V710 | Windows 11 | 24.Q2 |

        | Region | Name |
        |---|---|
        | eastus | East US |
        """,
    )
    assert (reading.facts, reading.reports) == ((), ())


@pytest.mark.parametrize(
    ("table", "detail"),
    [
        ("| | Standard_NX6 | Standard_NX12 |\n|---|---|---|\n| vCPUs | 6 | 12 |\n", "has sizes as columns"),
        (
            "| Spec | NX6 | NX12 |\n|---|---|---|\n| vCPUs | 6 | 12 |\n| Memory (GiB) | 1 | 2 |\n",
            "has sizes as columns",
        ),
        ("| Machine of ours | vCPUs |\n|---|---|\n| Standard_NX6 | 6 |\n", "no column with their names"),
        ("| Size | Colour |\n|---|---|\n| Standard_NX6 | blue |\n", "no other known column"),
        ("<table><tr><td>Standard_NX6</td></tr></table>\n", "a table in HTML"),
    ],
)
def test_a_table_of_sizes_in_an_unknown_layout_is_reported(tmp_path: Path, table: str, detail: str) -> None:
    reading = read(tmp_path, f"# NX\n\n{table}")
    assert not any(item.kind == "size" for item in reading.facts)
    assert [detail in text for text in details(reading)] == [True]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ("| Standard_NX6 | 6 | 112 | 7 |", "more cells than the table has columns"),
        ("| Standard_NX6 - Standard_NX9 | 6 | 112 |", "names more than one size"),
        ("| | 6 | 112 |", "is not the name of a size"),
        ("| The big one | 6 | 112 |", "is not the name of a size"),
    ],
)
def test_a_row_with_extra_cells_or_no_size_name_is_skipped_and_reported(tmp_path: Path, row: str, detail: str) -> None:
    reading = read(tmp_path, f"# NX\n\n| Size | vCPU | Memory: GiB |\n|---|---|---|\n| Standard_NX1 | 1 | 2 |\n{row}\n")
    assert {item.subject for item in reading.facts if item.kind == "size"} == {"Standard_NX1"}
    assert [detail in text for text in details(reading)] == [True]


def test_a_group_heading_inside_a_table_is_no_size(tmp_path: Path) -> None:
    reading = read(tmp_path, "| Size | vCPU |\n|---|---|\n| **Small ones** | |\n| Standard_NX1 | 1 |\n")
    assert details(reading) == []
    assert facts(reading, "Standard_NX1")["vcpus"] == 1


def test_an_unknown_column_is_reported_once_and_the_rest_is_read(tmp_path: Path) -> None:
    reading = read(tmp_path, "| Colour | vCPUs | Size |\n|---|---|---|\n| red | 6 | NX6 |\n| blue | 12 | NX12 |\n")
    assert facts(reading, "NX12")["vcpus"] == 12
    assert len(reading.reports) == 1
    assert (reading.reports[0].column, reading.reports[0].cell) == ("Colour", "red")


def test_a_size_may_be_in_preview_by_its_name(tmp_path: Path) -> None:
    reading = read(tmp_path, "| Size | vCPU |\n|---|---|\n| Standard_NX6 | 6 |\n| Standard_NX12 (preview) | 12 |\n")
    assert facts(reading, "Standard_NX12") == {"series": "NX v1", "vcpus": 12, "preview": True}
    assert "preview" not in facts(reading, "Standard_NX6")


def test_a_table_inside_a_quotation_is_read(tmp_path: Path) -> None:
    reading = read(tmp_path, "> | Size | vCPU |\n> |---|---|\n> | Standard_NX6 | 6 |\n")
    assert facts(reading, "Standard_NX6")["vcpus"] == 6


def test_code_and_comments_are_not_read(tmp_path: Path) -> None:
    table = "| Size | vCPU |\n|---|---|\n| Standard_NX6 | 6 |\n"
    reading = read(tmp_path, f"```\n{table}```\n\n<!--\n{table}-->\n")
    assert reading.facts == ()


def test_a_contradiction_keeps_the_first_value_and_is_reported(tmp_path: Path) -> None:
    reading = read(tmp_path, "| Size | vCPU |\n|---|---|\n| NX6 | 6 |\n| NX6 | 7 |\n")
    assert facts(reading, "NX6")["vcpus"] == 6
    assert ["says 7 for NX6, where line 9 says 6" in text for text in details(reading)] == [True]


@pytest.mark.parametrize(
    ("headers", "cells", "detail"),
    [
        (
            ("Uncached Premium SSD IOPS", "Uncached Premium SSD Burst IOPS"),
            ("240,000", "205,000"),
            "is above uncached_disk_burst_iops, 240000 and 205000 of NX6: one of them is wrong",
        ),
        (
            ("Temp Disk Random Read IOPS", "Temp Disk Random Write IOPS"),
            ("3000000", "12000000"),
            "is above temp_disk_read_iops, 12000000 and 3000000 of NX6: one of them is wrong",
        ),
    ],
)
def test_rates_that_contradict_each_other_are_kept_and_reported(
    tmp_path: Path, headers: tuple[str, str], cells: tuple[str, str], detail: str
) -> None:
    page = f"| Size | {' | '.join(headers)} |\n|---|---|---|\n| NX6 | {' | '.join(cells)} |\n"
    reading = read(tmp_path, page, title="NX series")
    assert len(facts(reading, "NX6")) == 3
    assert [detail in text for text in details(reading)] == [True]
    agreeing = read(tmp_path, page.replace(cells[0], "12000000").replace(cells[1], "12000000"), title="NX series")
    assert details(agreeing) == []


def test_rates_in_columns_that_are_mixed_up_are_not_read(tmp_path: Path) -> None:
    page = (
        "| Size | vCPU | Uncached Premium SSD IOPS | Uncached Premium SSD Throughput (MB/s) |\n|---|---|---|---|\n"
        "| NX6 | 6 | 20,000 | 20,000 |\n| NX12 | 12 | 40,000 | 400 |\n"
    )
    reading = read(tmp_path, page, title="NX series")
    for size in ("NX6", "NX12"):
        assert set(facts(reading, size)) == {"vcpus", "series"}
    assert [
        "is not below the IOPS, 20000 and 20000 of NX6: the columns are mixed up, and neither is read" in text
        for text in details(reading)
    ] == [True]


@given(
    st.lists(
        st.sampled_from(
            [
                "| Size | GPU | GPU memory: GiB |\n",
                "|---|---|---|\n",
                "| NX6 | ",
                "1/0",
                "²",
                "9" * 40,
                "|",
                "\n",
                "<sup>",
                "`",
                "Supported",
                ": ",
                "4x800",
                "retire on 99/99/99",
                "\x00",
                "---\n",
                "- ",
            ]
        )
    )
)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reading_never_fails_on_a_broken_page(tmp_path: Path, parts: list[str]) -> None:
    read_files(tmp_path, {"page.md": "".join(parts)})


def test_a_table_of_more_columns_than_any_is_reported_and_the_others_are_read(tmp_path: Path) -> None:
    wide = "|Size" + "|a" * 900 + "|\n" + "|-" * 901 + "|\n" + "|Standard_NX9_v1" + "|1" * 900 + "|\n"
    page = f"# NX\n\n| Size | vCPU |\n|---|---|\n| Standard_NX8_v1 | 8 |\n\n{wide}"
    reading = read_files(tmp_path, {"nx.md": page})
    assert facts(reading, "Standard_NX8_v1")["vcpus"] == 8
    assert {fact.subject for fact in reading.facts if fact.kind == "size"} == {"Standard_NX8_v1"}
    assert [detail for detail in details(reading) if "columns" in detail] == [
        f"{tmp_path}/nx.md:7: has a table of more than 200 columns, which is not read"
    ]


def test_a_line_of_pipes_is_reported_without_being_parsed(tmp_path: Path) -> None:
    page = f"# NX\n\n| Size | vCPU |\n|---|---|\n| Standard_NX8_v1 | 8 |\n\n{'|' * 1_000_000}\n{'|-' * 1_000_000}\n"
    reading = read_files(tmp_path, {"nx.md": page})
    assert facts(reading, "Standard_NX8_v1")["vcpus"] == 8
    assert f"{tmp_path}/nx.md:7: has a table of more than 200 columns, which is not read" in details(reading)


@pytest.mark.parametrize(
    "part", ["[", "![", "<a ", "[!INCLUDE [a](", "a b c d ", " ", "_", "series ", "```", "{", ":::"]
)
def test_the_time_of_reading_grows_with_the_length_of_a_page_alone(tmp_path: Path, part: str) -> None:
    text = part * (200_000 // len(part))
    page = (
        f"---\ntitle: {text}x\nms.date: x{text}y\n---\n# NX\n\n| Size | vCPU |\n|---|---|\n| Standard_NX8_v1 | 8 |\n\n"
        f"| Size | x{text}y |\n|---|---|\n| Standard_NX9_v1 | x{text}y |\n\n|\n{text}x\n\nx{text}y\n"
    )
    begun = time.process_time()
    reading = read_files(tmp_path, {"nx.md": page})
    assert time.process_time() - begun < 4 * slowness()
    assert facts(reading, "Standard_NX8_v1")["vcpus"] == 8


def test_a_text_too_long_to_be_read_is_reported(tmp_path: Path) -> None:
    long = "word " * 1_001
    page = f"---\ntitle: {long}\n---\n# NX\n\n{long}\n\n| Size | vCPU |\n|---|---|\n| Standard_NX8_v1 | {long} |\n"
    reading = read_files(tmp_path, {"nx.md": page})
    assert reading.sources[0].title == "NX"
    assert [text.partition("/nx.md:")[2] for text in details(reading) if "5,000" in text] == [
        "2: column 'title': has more than 5,000 characters and is not read",
        "6: has a text of more than 5,000 characters, which is not read",
        "10: has a text of more than 5,000 characters, which is not read",
    ]
