"""Retirement dates in sentences and in tables of series."""

from datetime import date
from pathlib import Path

import pytest

from tests.ingest.pages import facts, read, read_files

TABLE = "| Size | vCPU |\n|---|---|\n| NX6_v1 | 6 |\n| NX12_v1 | 12 |\n\n"


@pytest.mark.parametrize(
    ("sentence", "day"),
    [
        ("NXv1 and NX_Promo series virtual machines (VMs) will be retired on August 31st, 2023.", date(2023, 8, 31)),
        ("NXv3, NXv1 series VMs are planned to retire on September 30, 2026.", date(2026, 9, 30)),
        ("The NX v1-series has retired as of 6 September 2023, and is gone.", date(2023, 9, 6)),
        ("These sizes will be retired on 2027-03-31.", date(2027, 3, 31)),
        ("> [!NOTE]\n> The NXv1-series will be retired on September 30, 2026.", date(2026, 9, 30)),
        ("On March 31, 2027, all sizes in this series are being retired.", date(2027, 3, 31)),
        ("On March 31, 2027, all isolated sizes in this series are being retired.\n- NX6_v1\n", date(2027, 3, 31)),
        ("On March 31, 2027, all isolated sizes in this series are being retired.\nNX12_v1\n", None),
        ("NXv3 and NXv4 series VMs are planned to retire on September 30, 2026.", None),
        ("This retirement on September 30, 2026 doesn't apply to NXv1 series VMs.", None),
        ("The NXv1-series will be retired soon.", None),
    ],
)
def test_a_sentence_retires_only_the_series_that_it_names(tmp_path: Path, sentence: str, day: date | None) -> None:
    assert facts(read(tmp_path, f"{sentence}\n\n{TABLE}", title="NX v1-series"), "NX6_v1").get("retirement_date") == day


def test_a_list_of_retired_series_is_read_with_two_formats_of_dates(tmp_path: Path) -> None:
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
    "header", ["VM Series", "VM size series", "Virtual machine series", "Size series name", "VM size"]
)
def test_a_table_of_series_with_other_dates_has_their_retirement(tmp_path: Path, header: str) -> None:
    table = (
        f"# Migration\n\n| {header} | 1 YR RI expiration date | Retirement Date|\n|---|---|---|\n"
        "| NXv1 | 04/02/2026 | 05/01/2028 |\n| NY-series | 04/02/2026 | 05/31/2027 |\n"
        "| NZv3 | 07/01/2026 | Product active |\n"
    )
    reading = read_files(tmp_path, {"migration.md": table})
    dates = {fact.subject: fact.value for fact in reading.facts if fact.field == "retirement_date"}
    assert dates == {"NXv1": date(2028, 5, 1), "NY": date(2027, 5, 31)}
    assert [report.cell for report in reading.reports] == ["Product active"]


@pytest.mark.parametrize("header", ["VM-Serie", "Region"])
def test_a_table_that_names_no_series_has_no_retirement(tmp_path: Path, header: str) -> None:
    table = f"# Ablauf\n\n| {header} | Retirement Date |\n|---|---|\n| NXv1 | 05/31/2027 |\n"
    assert read_files(tmp_path, {"ablauf.md": table}).facts == ()


@pytest.mark.parametrize(
    ("other", "day"), [("30/09/26", date(2025, 6, 5)), ("09/30/26", date(2025, 5, 6)), ("01/02/26", None)]
)
def test_an_ambiguous_date_follows_the_order_of_its_column(tmp_path: Path, other: str, day: date | None) -> None:
    table = "# Retired\n\n|Series | Planned Retirement Date |\n|---|---|\n| NX | 05/06/25 |\n| NY | {} |\n"
    reading = read_files(tmp_path, {"retired.md": table.format(other)})
    assert facts(reading, "NX").get("retirement_date") == day
    assert bool(reading.reports) == (day is None)


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
def test_retirement_is_read_in_different_words(tmp_path: Path, notice: str) -> None:
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


def test_one_cell_of_a_list_may_name_several_series(tmp_path: Path) -> None:
    names = "Qsv3-Type1, Qsv3-Type2, and Qsv3-Type3"
    table = f"| Series name | Planned retirement date |\n|---|---|\n| {names} | May 31, 2027 |\n"
    reading = read(tmp_path, table, title="Retired sizes")
    for number in (1, 2, 3):
        assert facts(reading, f"Qsv3-Type{number}")["retirement_date"] == date(2027, 5, 31)


def test_a_sentence_of_an_alert_has_its_own_line(tmp_path: Path) -> None:
    page = f"> [!IMPORTANT]\n> These sizes will be retired on 2027-03-31.\n\n{TABLE}"
    reading = read(tmp_path, page, title="NX v1-series")
    lines = {item.line for item in reading.facts if item.field == "retirement_date"}
    text = (tmp_path / "page.md").read_text().splitlines()
    assert [text[line - 1] for line in lines] == ["> These sizes will be retired on 2027-03-31."]
