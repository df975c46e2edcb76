from datetime import date
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


def test_a_later_page_does_not_take_a_size_away(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("sentence", "day"),
    [
        ("NXv1 and NX_Promo series virtual machines (VMs) will be retired on August 31st, 2023.", date(2023, 8, 31)),
        ("NXv3, NXv1 series VMs are planned to retire on September 30, 2026.", date(2026, 9, 30)),
        ("The NX v1-series has retired as of 6 September 2023, and is gone.", date(2023, 9, 6)),
        ("These sizes will be retired on 2027-03-31.", date(2027, 3, 31)),
        ("> [!NOTE]\n> The NXv1-series will be retired on September 30, 2026.", date(2026, 9, 30)),
        ("NXv3 and NXv4 series VMs are planned to retire on September 30, 2026.", None),
        ("This retirement on September 30, 2026 doesn't apply to NXv1 series VMs.", None),
        ("The NXv1-series will be retired soon.", None),
    ],
)
def test_a_sentence_retires_only_the_series_that_it_names(tmp_path: Path, sentence: str, day: date | None) -> None:
    assert facts(read(tmp_path, f"{sentence}\n\n{TABLE}", title="NX v1-series"), "NX6_v1").get("retirement_date") == day


def test_a_list_of_retired_series_is_read_with_days_of_two_kinds(tmp_path: Path) -> None:
    reading = read_files(
        tmp_path,
        {
            "retired.md": "# Retired series\n\n|Series name | Status | Planned Retirement Date |\n|---|---|---|\n"
            "| NXv1-series | **Announced** | 09/30/26 |\n| NXv2 Series | Retired | 30/9/25 |\n"
            "| Standard_NX6is_v2 | Announced | 03/31/27 |\n| NXv3/NYv3-series | Announced | - |\n"
        },
    )
    found = {item.subject: (item.kind, item.value) for item in reading.facts}
    assert found == {
        "NXv1": ("series", date(2026, 9, 30)),
        "NXv2": ("series", date(2025, 9, 30)),
        "Standard_NX6is_v2": ("size", date(2027, 3, 31)),
    }


@pytest.mark.parametrize(
    ("other", "day"), [("30/09/26", date(2025, 6, 5)), ("09/30/26", date(2025, 5, 6)), ("01/02/26", None)]
)
def test_a_day_that_can_be_read_in_two_ways_follows_its_column(tmp_path: Path, other: str, day: date | None) -> None:
    table = "# Retired\n\n|Series | Planned Retirement Date |\n|---|---|\n| NX | 05/06/25 |\n| NY | {} |\n"
    reading = read_files(tmp_path, {"retired.md": table.format(other)})
    assert facts(reading, "NX").get("retirement_date") == day
    assert bool(reading.reports) == (day is None)


@pytest.mark.parametrize("title", ["NX v1-series (preview)", "NXv1 Series (Preview)"])
def test_a_title_may_say_preview(tmp_path: Path, title: str) -> None:
    assert facts(read(tmp_path, TABLE, title=title), "NX6_v1")["preview"] is True
