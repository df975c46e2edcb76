"""CSV files of managed disks and of their prices."""

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from sqlalchemy import Engine

from app.errors import BadData
from app.ingest.registry import read_csv_source
from app.ingest.run import ingest
from app.ingest.sources.reference import DISK_COLUMNS, DISK_PRICE_COLUMNS
from tests.factories import NOW, reading, size

P30 = "P30-LRS,premium_ssd,lrs,P30,Premium_LRS,,1024,5000,200,0,0,,,,,5,list"
ULTRA = "ultra,ultra_disk,lrs,,UltraSSD_LRS,4,65536,400000,10000,,,0,0,1000,0.25,,list"
PRICE = "p30-lrs,eastus,month,148.68,2026-08-01,list"


def write(folder: Path, kind: str, *rows: str) -> Path:
    (folder / "sources.csv").write_text("id,title,publisher,kind,url,published_on\nlist,List,Someone,third_party,,\n")
    path = folder / f"{kind}.csv"
    path.write_text("\n".join([",".join(DISK_COLUMNS if kind == "disks" else DISK_PRICE_COLUMNS), *rows]) + "\n")
    return path


def test_a_disk_is_of_one_size_or_of_any(tmp_path: Path) -> None:
    p30, ultra = read_csv_source("disks", write(tmp_path, "disks", P30, ULTRA)).disks
    assert (p30.id, p30.size, p30.max_gib, p30.burst_iops, p30.included_iops) == ("p30-lrs", "P30", 1024, 0, None)
    assert (ultra.size, ultra.min_gib, ultra.included_iops, ultra.mbps_per_iops) == (None, 4, 0, Decimal("0.25"))


def test_a_price_is_exact_and_has_a_unit(tmp_path: Path) -> None:
    (price,) = read_csv_source("disk_prices", write(tmp_path, "disk_prices", PRICE)).disk_prices
    assert (price.disk, price.region, price.per, price.usd) == ("p30-lrs", "eastus", "month", Decimal("148.68"))
    assert price.valid_from == date(2026, 8, 1)


@pytest.mark.parametrize(
    ("kind", "row", "column"),
    [
        ("disks", P30.replace("premium_ssd", "floppy"), "type"),
        ("disks", P30.replace("lrs,P30", "grs,P30"), "redundancy"),
        ("disks", P30.replace("1024", "big"), "max_gib"),
        ("disks", P30.replace("5000", "2147483648"), "max_iops"),
        ("disks", P30.replace("LRS,,1024", "LRS,1,1024"), "min_gib"),
        ("disks", ULTRA.replace("0.25", ""), "mbps_per_iops"),
        ("disks", P30.replace(",list", ",nobody"), "source"),
        ("disk_prices", PRICE.replace("month", "year"), "per"),
        ("disk_prices", PRICE.replace("148.68", "0"), "usd"),
        ("disk_prices", PRICE.replace("148.68", "0.0000000001"), "usd"),
        ("disk_prices", PRICE.replace("2026-08-01", ""), "valid_from"),
    ],
)
def test_a_bad_cell_is_refused_with_its_place(tmp_path: Path, kind: str, row: str, column: str) -> None:
    with pytest.raises(BadData) as caught:
        read_csv_source(kind, write(tmp_path, kind, row))
    assert (caught.value.line, caught.value.column) == (2, column)


@pytest.mark.parametrize(("kind", "row", "column"), [("disks", P30, "id"), ("disk_prices", PRICE, "disk")])
def test_a_row_that_is_listed_twice_is_refused(tmp_path: Path, kind: str, row: str, column: str) -> None:
    with pytest.raises(BadData, match="is listed twice: in line 2, too") as caught:
        read_csv_source(kind, write(tmp_path, kind, row, row))
    assert (caught.value.line, caught.value.column) == (3, column)


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("row", "column", "detail"),
    [
        (PRICE.replace("p30", "p31"), "disk", "unknown disk 'p31-lrs'"),
        (PRICE.replace("eastus", "us-east"), "region", "unknown region 'useast'; did you mean eastus"),
        (PRICE.replace("month", "gib_hour"), "per", "p30-lrs is of one size, and priced per month"),
        (PRICE.replace("p30-lrs", "ultra"), "per", "ultra is of any size, and priced by GiB"),
    ],
)
def test_a_price_must_be_for_a_disk_and_region_that_are_known(
    engine: Engine, tmp_path: Path, row: str, column: str, detail: str
) -> None:
    ingest(engine, reading(size("X1", vcpus=1), regions=["eastus"]), now=NOW)
    ingest(engine, read_csv_source("disks", write(tmp_path, "disks", P30, ULTRA)), now=NOW)
    with pytest.raises(BadData, match=detail) as caught:
        ingest(engine, read_csv_source("disk_prices", write(tmp_path, "disk_prices", row)), now=NOW)
    assert (caught.value.line, caught.value.column) == (2, column)
