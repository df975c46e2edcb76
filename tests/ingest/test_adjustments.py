"""The reader of rules by which prices differ from list prices."""

from datetime import date
from pathlib import Path

import pytest

from app.catalog.purchases import AdjustmentRule
from app.errors import BadData
from app.ingest.registry import read_csv_source

HEADER = "name,size,region,os,purchase,discount_percent,usd_per_hour,valid_from,valid_until"


def write(folder: Path, *rows: str, name: str = "contoso.csv", header: str = HEADER) -> Path:
    path = folder / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_rule_has_what_its_row_says_and_a_blank_cell_means_any(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "EA discount,,West Europe,,,12.5,,,",
        "ND at a fixed price,Standard_ND*,,linux,on_demand,,40,2026-01-01,2026-12-31",
        "Support,,,,,-3,,,",
    )
    reading = read_csv_source("adjustments", path)
    assert [one.rule for one in reading.adjustments] == [
        AdjustmentRule(name="EA discount", region="westeurope", discount_basis_points=1250),
        AdjustmentRule(
            name="ND at a fixed price",
            size="nd*",
            os="linux",
            purchase="on_demand",
            nano_usd_per_hour=40_000_000_000,
            valid_from=date(2026, 1, 1),
            valid_until=date(2026, 12, 31),
        ),
        AdjustmentRule(name="Support", discount_basis_points=-300),
    ]
    assert [one.position for one in reading.adjustments] == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("contoso.csv", "adjustments-contoso"),
        ("Contoso-EA.csv", "adjustments-contoso-ea"),
        ("adjustments.csv", "adjustments"),
    ],
)
def test_the_file_is_the_source_and_its_name_the_id(tmp_path: Path, name: str, source: str) -> None:
    reading = read_csv_source("adjustments", write(tmp_path, "All,,,,,12,,,", name=name))
    assert [one.id for one in reading.sources] == [source]
    assert [file.sources for file in reading.files] == [frozenset((source,))]


def test_columns_that_no_rule_needs_may_be_missing(tmp_path: Path) -> None:
    reading = read_csv_source("adjustments", write(tmp_path, "All,12", header="name,discount_percent"))
    assert [one.rule for one in reading.adjustments] == [AdjustmentRule(name="All", discount_basis_points=1200)]


@pytest.mark.parametrize(
    ("row", "detail"),
    [
        ("All,,,,,,,,", "column 'discount_percent': '': a rule needs either a discount_percent or a usd_per_hour"),
        ("All,,,,,12,40,,", "'12': the rule has a usd_per_hour, too, 40; leave one of the two blank"),
        ("All,,,,,0,,,", "column 'discount_percent': '0': must be a percentage from -100 to below 100, not 0"),
        ("All,,,,,100,,,", "column 'discount_percent': '100': must be a percentage"),
        ("All,,,,,12%,,,", "column 'discount_percent': '12%': must be a percentage"),
        ("All,,,,,1.234,,,", "column 'discount_percent': '1.234': must be a percentage"),
        ("All,,,,,-100.5,,,", "column 'discount_percent': '-100.5': must be a percentage"),
        ("All,,,,,,0,,", "column 'usd_per_hour': '0': must be a number above 0"),
        (",,,,,12,,,", "column 'name': '': must not be blank"),
        ("All,,,bsd,,12,,,", "column 'os': 'bsd': must be one of linux, windows"),
        ("All,,,,hourly,12,,,", "column 'purchase': 'hourly': must be one of on_demand, spot, "),
        ("All,,,,,12,,1.1.2026,", "column 'valid_from': '1.1.2026': must be a date written as YYYY-MM-DD"),
        (
            "All,,,,,12,,2026-02-01,2026-01-01",
            "column 'valid_until': '2026-01-01': must not be before valid_from, 2026-02-01",
        ),
        (f"{'x' * 101},,,,,12,,,", "must have at most 100 characters"),
    ],
)
def test_bad_data_is_named_with_file_line_and_column(tmp_path: Path, row: str, detail: str) -> None:
    with pytest.raises(BadData) as caught:
        read_csv_source("adjustments", write(tmp_path, row))
    assert "contoso.csv:2: column " in str(caught.value)
    assert detail in str(caught.value)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"contoso\.csv:3: column 'name': 'All': is the name of an earlier rule"):
        read_csv_source("adjustments", write(tmp_path, "All,,,,,12,,,", "All,,,,,5,,,"))


def test_markups_together_make_a_price_at_most_ten_times_higher(tmp_path: Path) -> None:
    rows = [f"Markup {number},,,,,-100,,," for number in range(4)]
    with pytest.raises(BadData, match=r"contoso\.csv:5: column 'discount_percent': '-100': with it all markups make"):
        read_csv_source("adjustments", write(tmp_path, *rows))


def test_a_name_of_a_file_that_makes_no_id_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="becomes an id: letters, digits"):
        read_csv_source("adjustments", write(tmp_path, "All,,,,,12,,,", name="unsere Rabatte.csv"))
