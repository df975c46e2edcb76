"""CSV files in blocks: the same rows and errors as row by row."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from app.catalog.readings import PriceRow
from app.errors import BadData
from app.ingest import files
from app.ingest.files import CsvRow, read_blocks, read_rows
from app.ingest.sources.claims import read_sources
from app.ingest.sources.prices import COLUMNS, read_prices
from tests.factories import price_rows

HEADER = ",".join(COLUMNS)
SOURCES = "id,title,publisher,kind,url,published_on\nlist,A list,Someone,third_party,,\n"


@pytest.fixture(autouse=True)
def three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK_LINES", 3)


def write(folder: Path, *lines: str) -> Path:
    (folder / "sources.csv").write_text(SOURCES)
    path = folder / "prices.csv"
    path.write_text("\n".join((HEADER, *lines)) + "\n", encoding="utf-8", newline="")
    return path


def line(number: int, **cells: str) -> str:
    row = {"size": f"X{number}", "region": "East US", "os": "linux", "purchase": "spot", "usd_per_hour": "1.50",
           "valid_from": "2026-06-18", "approximate_date": "false", "source": "list"}  # fmt: skip
    return ",".join((row | cells).values())


def prices(path: Path) -> list[PriceRow]:
    return list(price_rows(read_prices(path, read_sources(path.with_name("sources.csv"))).prices))


def one_by_one(path: Path) -> Iterator[CsvRow]:
    return read_rows(path, COLUMNS)


ODD = [
    [line(n) for n in range(8)],
    [line(1), "", line(2), "", "", line(3), line(4)],
    [line(1), line(2, region='"east\nus"'), line(3), line(4, region='"a, ""b"""')],
    [line(1), line(2, usd_per_hour=" 3.673 "), line(3, region=" west europe"), line(4, size=" X4 ")],
    [line(1), line(2, usd_per_hour="0.1234567890"), line(3, usd_per_hour="00000000001.5")],
    [],
]


@pytest.mark.parametrize("lines", ODD, ids=["plain", "gaps", "quotes", "spaces", "figures", "nothing"])
def test_blocks_have_the_rows_that_are_read_one_by_one(tmp_path: Path, lines: list[str]) -> None:
    path = write(tmp_path, *lines)
    assert [row for block in read_blocks(path, COLUMNS) for row in block.rows()] == list(one_by_one(path))
    assert [(row.size, row.line) for row in prices(path)] == [(row.cells["size"], row.line) for row in one_by_one(path)]
    assert [row.usd_per_hour for row in prices(path)] == [
        Decimal(row.cells["usd_per_hour"]) for row in one_by_one(path)
    ]


BAD = {
    "usd_per_hour": ("0", "0.0", "-1", "1e3", "1,5", "1.0000000001", "1234567890", "0.1234567891234567", "free", ""),
    "valid_from": ("2026-02-30", "June", ""),
    "os": ("Linux", ""),
    "purchase": ("reserved",),
    "approximate_date": ("yes",),
    "source": ("hearsay", ""),
    "size": ("", "  ", "=cmd()"),
    "region": ("",),
}


@pytest.mark.parametrize(("column", "cell"), [(column, cell) for column, cells in BAD.items() for cell in cells])
def test_a_bad_cell_is_reported_with_its_line_however_deep_in_the_file(tmp_path: Path, column: str, cell: str) -> None:
    quoted = {column: f'"{cell}"'}
    path = write(tmp_path, *(line(n) for n in range(4)), line(4, **quoted), line(5, os="beos"))
    with pytest.raises(BadData) as caught:
        prices(path)
    assert (caught.value.file, caught.value.line, caught.value.column) == (str(path), 6, column)


def test_a_row_of_another_width_is_refused_after_the_rows_before_it(tmp_path: Path) -> None:
    path = write(tmp_path, *(line(n) for n in range(4)), "too,short", line(5))
    seen: list[int] = []
    with pytest.raises(BadData, match=r"prices\.csv:6: has 2 cells where the header names 8 columns"):
        seen.extend(row.line for block in read_blocks(path, COLUMNS) for row in block.rows())
    assert seen == [2, 3, 4, 5]
    path = write(tmp_path, line(0), line(1, os="beos"), "too,short")
    with pytest.raises(BadData, match=r"prices\.csv:3: column 'os'"):
        prices(path)


def test_the_share_of_the_file_that_is_read_grows_to_the_whole(tmp_path: Path) -> None:
    path = write(tmp_path, *(line(n) for n in range(4_000)))
    shares = [block.share for block in read_blocks(path, COLUMNS)]
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.5
    assert shares[-1] == 1


def test_prices_can_be_read_again(tmp_path: Path) -> None:
    path = write(tmp_path, *(line(n) for n in range(5)))
    read = read_prices(path, read_sources(path.with_name("sources.csv"))).prices
    assert list(price_rows(read)) == list(price_rows(read))


def test_a_price_list_may_cite_what_is_listed_with_the_digest_of_its_own_bytes(tmp_path: Path) -> None:
    path = write(tmp_path, line(1))
    sources = read_sources(path.with_name("sources.csv"))
    (note,) = read_prices(path, sources).citable
    assert note.id == "list"
    assert note.sha256 != sources["list"].sha256
