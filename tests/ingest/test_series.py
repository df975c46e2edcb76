from pathlib import Path

import pytest

from app.ingest.documents.series import to_series_name
from tests.ingest.pages import details, facts, read, read_files

TABLE = "| Size | vCPU |\n|---|---|\n| NX6_v1 | 6 |\n| NX12_v1 | 12 |\n\n"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("NX A100 v4-series ", "NX A100 v4"),
        ("NXasrA100_v4 size series", "NXasrA100_v4"),
        ("'NX-H200-v5 size series '", "NX-H200-v5"),
        ("NX-series - Azure Virtual Machines", "NX"),
        ("Overview of NXads V620 Series (preview)", "NXads V620"),
        ("Azure NX-Series: GPU Virtual Machines of the Next Generation", "NX"),
        ("Azure NX GB300 v6 Virtual Machines: General Availability", "NX GB300 v6"),
        ("Updated NXv2-series", "NXv2"),
        ("NXv2-series 11-15", "NXv2"),
        ("NX RTX PRO 6000 Blackwell Server Edition v6 sizes series", "NX RTX PRO 6000 Blackwell Server Edition v6"),
        ("GPU accelerated sizes", None),
        ("Retired Azure VM size series", None),
        ("What everybody should know about sizes", None),
    ],
)
def test_a_title_is_reduced_to_the_name_of_the_series(title: str, name: str | None) -> None:
    assert to_series_name(title) == name


def test_every_size_is_of_the_pages_series(tmp_path: Path) -> None:
    reading = read(tmp_path, TABLE, title="NX v1-series")
    assert [facts(reading, size)["series"] for size in ("NX6_v1", "NX12_v1")] == ["NX v1", "NX v1"]
    assert facts(reading, "NX v1") == {"name": "NX v1"}


def test_the_front_matter_may_name_the_series(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": f"---\ntitle: Some sizes\nseries: NX v1\n---\n{TABLE}"})
    assert facts(reading, "NX6_v1")["series"] == "NX v1"


def test_the_first_heading_names_the_series_where_the_title_does_not(tmp_path: Path) -> None:
    reading = read_files(tmp_path, {"nx.md": f"---\ntitle: All about it\n---\n# NX_v1 sizes series\n{TABLE}"})
    assert facts(reading, "NX6_v1")["series"] == "NX_v1"


def test_a_later_page_does_not_reassign_a_size(tmp_path: Path) -> None:
    page = "---\ntitle: {title}\nms.date: {day}\n---\n" + TABLE.replace("_v1", "_V1")
    reading = read_files(
        tmp_path,
        {
            "a-bogus.md": page.format(title="NXcadb_M5+ size series", day="16/03/2026"),
            "b-own.md": page.format(title="NX v1-series", day="01/31/2020"),
            "c-again.md": page.format(title="NX_v1 size series", day="01/31/2024"),
        },
    )
    assert {item.value for item in reading.facts if item.field == "series"} == {"NX v1", "NX_v1"}
    assert ["already assigned to NX v1" in text for text in details(reading)] == [True, True]
    assert {item.subject for item in reading.facts if item.field == "name"} == {"NX v1", "NX_v1"}
    assert any(Path(item.file).name == "a-bogus.md" and item.field == "vcpus" for item in reading.facts)


@pytest.mark.parametrize("title", ["NX v1-series (preview)", "NXv1 Series (Preview)"])
def test_a_title_may_say_preview(tmp_path: Path, title: str) -> None:
    assert facts(read(tmp_path, TABLE, title=title), "NX6_v1")["preview"] is True
