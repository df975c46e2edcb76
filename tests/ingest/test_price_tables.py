"""Wide tables of prices: every cell is an observation, every wrong cell is named."""

import gzip
from datetime import date
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import pytest

from app.errors import BadData
from app.ingest.sources.prices import read_price_tables
from tests.factories import price_rows, source

SOURCES = {"list": source("list", kind="third_party")}
COLUMNS = "linux:on_demand:2026-01-01;linux:spot:2026-02-01"
ROWS = ("X1,East US,1.5,0.25", "X2,westus,,0.125", "X3,westus,2,")


def write(folder: Path, *rows: str, columns: str = COLUMNS, name: str = "a.csv.gz", **cells: str) -> Path:
    text = "\n".join([f"size,region,{columns.replace(';', ',')}", *rows]) + "\n"
    (folder / name).write_bytes(gzip.compress(text.encode()))
    digest = sha256((folder / name).read_bytes()).hexdigest()
    about = {"file": name, "source": "list", "complete": "true", "sha256": digest, "columns": columns} | cells
    (folder / "manifest.csv").write_text(f"{','.join(about)}\n{','.join(about.values())}\n")
    return folder


def test_each_cell_of_a_table_is_a_price_on_the_day_of_its_column(tmp_path: Path) -> None:
    reading = read_price_tables(write(tmp_path, *ROWS), SOURCES)
    found = [
        (one.size, one.region, one.purchase, one.usd_per_hour, one.valid_from) for one in price_rows(reading.prices)
    ]
    assert found == [
        ("X1", "eastus", "on_demand", Decimal("1.5"), date(2026, 1, 1)),
        ("X3", "westus", "on_demand", Decimal(2), date(2026, 1, 1)),
        ("X1", "eastus", "spot", Decimal("0.25"), date(2026, 2, 1)),
        ("X2", "westus", "spot", Decimal("0.125"), date(2026, 2, 1)),
    ]
    (prices,) = reading.prices
    assert prices.complete
    assert [one.line for one in price_rows(reading.prices)] == [2, 4, 2, 3]


@pytest.mark.parametrize(
    ("rows", "line", "column"),
    [
        (("X1,eastus,0,", *ROWS), 2, "linux:on_demand:2026-01-01"),
        ((*ROWS, "X1,eastus,,x"), 5, "linux:spot:2026-02-01"),
        ((*ROWS, ",eastus,1,1"), 5, "size"),
        ((*ROWS, "X1, ,1,1"), 5, "region"),
        ((*ROWS, "X1,eastus,1"), 5, None),
    ],
)
def test_a_wrong_cell_is_named(tmp_path: Path, rows: tuple[str, ...], line: int, column: str | None) -> None:
    with pytest.raises(BadData) as caught:
        list(price_rows(read_price_tables(write(tmp_path, *rows), SOURCES).prices))
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(tmp_path / "a.csv.gz"), line, column)


@pytest.mark.parametrize(
    ("cells", "detail"),
    [
        ({"sha256": "0"}, "is not that of a.csv.gz"),
        ({"source": "other"}, "is not in the list of sources"),
        ({"file": "b.csv.gz"}, "a.csv.gz is not in it"),
        ({"complete": "yes"}, "must be one of true, false"),
        ({"columns": "linux:spot:2026-01"}, "must be a date"),
        ({"columns": "linux:often:2026-01-01"}, "is not OS:PURCHASE:DAY"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, cells: dict[str, str], detail: str) -> None:
    with pytest.raises(BadData, match=detail):
        read_price_tables(write(tmp_path, *ROWS, **cells), SOURCES)


def test_a_table_with_other_columns_than_its_manifest_is_refused(tmp_path: Path) -> None:
    reading = read_price_tables(write(tmp_path, *ROWS), SOURCES)
    write(tmp_path, *ROWS, columns="linux:spot:2026-02-01;linux:on_demand:2026-01-01")
    with pytest.raises(BadData, match="the manifest has size, region, linux:on_demand"):
        list(price_rows(reading.prices))


def test_a_table_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    reading = read_price_tables(write(tmp_path, *ROWS), SOURCES)
    table = tmp_path / "a.csv.gz"
    table.write_bytes(table.read_bytes()[:-4])
    with pytest.raises(BadData, match="is not a whole gzip file"):
        list(price_rows(reading.prices))
