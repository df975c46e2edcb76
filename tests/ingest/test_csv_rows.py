"""Rows of a CSV file: what is read, and which line and column an error names."""

import gzip
from pathlib import Path
from time import process_time

import pytest

from app.errors import BadData
from app.ingest.files import CsvRow, read_blocks, read_rows

COLUMNS = ("name", "price")


def write(folder: Path, text: str) -> Path:
    path = folder / "some.csv"
    path.write_bytes(text.encode())
    return path


def read(folder: Path, text: str) -> list[CsvRow]:
    return list(read_rows(write(folder, text), COLUMNS, optional=("note",)))


def test_a_row_knows_its_line_and_its_cells_without_spaces(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "name,price\n NC6 , 1.5\n")
    assert (row.line, dict(row.cells)) == (2, {"name": "NC6", "price": "1.5"})


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "note,price,name\nx,1.5,NC6\n")
    assert dict(row.cells) == {"name": "NC6", "price": "1.5", "note": "x"}


def test_a_byte_order_mark_windows_line_ends_and_empty_lines_are_no_obstacle(tmp_path: Path) -> None:
    rows = read(tmp_path, "\ufeffname,price\r\nNC6,1\r\n\r\nNC12,2\r\n")
    assert [(row.line, row.cells["name"]) for row in rows] == [(2, "NC6"), (4, "NC12")]


def test_a_quoted_cell_may_hold_commas_and_quotes(tmp_path: Path) -> None:
    (row,) = read(tmp_path, 'name,price\n"NC6, ""old""",1\n')
    assert row.cells["name"] == 'NC6, "old"'


@pytest.mark.parametrize(
    ("text", "column", "detail"),
    [
        ("name\nNC6\n", "price", "is missing from the header"),
        ("", "name", "is missing from the header: the file, or its first line, is empty"),
        ("name,price,colour\nNC6,1,red\n", "colour", "is unknown; the columns are name, price, note"),
        ("name,price,name\nNC6,1,NC6\n", "name", "is in the header twice"),
    ],
)
def test_a_header_that_does_not_fit_is_refused_by_the_columns_name(
    tmp_path: Path, text: str, column: str, detail: str
) -> None:
    with pytest.raises(BadData) as caught:
        read(tmp_path, text)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert detail in str(caught.value)


def test_a_row_of_another_width_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"some\.csv:3: has 3 cells where the header names 2 columns"):
        read(tmp_path, "name,price\nNC6,1\nNC12,2,3\n")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"name,price\nNC\xff6,1\n", "2: is not UTF-8 (byte 0xff); save it as CSV in UTF-8"),
        (b"name,price\rNC12,2\rNC\xfc6,1\r", "3: is not UTF-8 (byte 0xfc); save it as CSV in UTF-8"),
        (b'name,price\n"NC6,1\nNC12,2\n', "2: a quote that is opened here is not closed"),
        (b'name,price\nNC12,2\n\n"NC6"x,1\n', "4: is not CSV: ',' expected after '\"'"),
        (
            b"name,price\nNC12,2\n%b,1\nNC6,2\n" % (b"x" * 200_000),
            "3: a cell has more than 131,072 characters, or a quote is not closed",
        ),
        (b"%b,price\n" % (b"x" * 200_000), "1: a cell has more than 131,072 characters, or a quote is not closed"),
        (b"\xff\xfen\x00,\x00p", " is not a CSV file in UTF-8 or UTF-16: truncated data"),
    ],
)
def test_bytes_that_are_no_csv_are_refused_with_their_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "some.csv"
    path.write_bytes(content)
    for read in (read_rows, read_blocks):
        with pytest.raises(BadData) as caught:
            list(read(path, COLUMNS))
        assert str(caught.value) == f"{path}:{expected}"


def test_a_path_that_is_no_file_is_refused_with_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", tmp_path):
        with pytest.raises(BadData, match="give the path of a CSV file"):
            list(read_rows(path, COLUMNS))


def row(cell: str) -> CsvRow:
    return CsvRow("some.csv", 7, {"cell": cell})


@pytest.mark.parametrize(
    "cell", ["", "0", "0.00", "-1", "1e3", "1,5", "1_000", "NaN", "Infinity", "٣", "$3", ".5", "3."]
)
def test_what_is_no_number_above_zero_is_refused(cell: str) -> None:
    with pytest.raises(BadData) as caught:
        row(cell).positive("cell")
    assert str(caught.value) == (f"some.csv:7: column 'cell': {cell!r}: must be a number above 0, written like 3.673")


def test_a_number_keeps_its_digits() -> None:
    assert str(row("0.02563").positive("cell")) == "0.02563"


@pytest.mark.parametrize("cell", ["2026-02-30", "20260201", "2026-2-1", "01/02/2026", "2026-W06-1", "today"])
def test_what_is_no_iso_date_is_refused(cell: str) -> None:
    with pytest.raises(BadData, match="must be a date written as YYYY-MM-DD"):
        row(cell).date("cell")


def test_a_blank_date_is_none_only_where_it_may_be() -> None:
    assert row("").optional_date("cell") is None
    with pytest.raises(BadData, match="must be a date"):
        row("").date("cell")


def test_a_value_that_is_not_allowed_is_refused_with_those_that_are() -> None:
    with pytest.raises(BadData, match="'Linux': must be one of linux, windows"):
        row("Linux").choice("cell", ("linux", "windows"))


def test_a_flag_is_true_or_false_in_lower_case() -> None:
    assert (row("true").flag("cell"), row("false").flag("cell")) == (True, False)
    with pytest.raises(BadData, match="must be one of true, false"):
        row("yes").flag("cell")


def test_a_blank_cell_is_refused_where_a_text_is_needed() -> None:
    with pytest.raises(BadData, match="must not be blank"):
        row("").text("cell")
    assert row("").optional("cell") is None


@pytest.mark.parametrize(
    "name", ["=cmd()", "Standard_", "NC6 v3", "N" * 101, "\u202eNC6", "NC6\x00", "-NC6", "@SUM(1)", "NC\n6"]
)
def test_a_text_that_can_be_no_name_of_a_size_is_refused(name: str) -> None:
    with pytest.raises(BadData, match="must be the name of a size") as refused:
        CsvRow("some.csv", 7, {"size": name}).size_name("size")
    assert (refused.value.line, refused.value.column) == (7, "size")
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("name", ["Standard_NC6s_v3", "m5.large", "n1-standard-1", "u-6tb1.112xlarge", "A1+"])
def test_names_of_sizes_of_every_provider_are_taken(name: str) -> None:
    assert CsvRow("some.csv", 7, {"size": name}).size_name("size") == name


@pytest.mark.parametrize("day", ["0001-01-01", "1999-12-31", "9999-01-01"])
def test_a_year_without_virtual_machines_is_refused(day: str) -> None:
    with pytest.raises(BadData, match="must be a date from 2006 to 2099"):
        CsvRow("some.csv", 7, {"valid_from": day}).date("valid_from")


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "some.csv"
    with path.open("wb") as sparse:
        sparse.write(b"name,price\nNC6,1\n")
        sparse.truncate(2**36)
    with pytest.raises(BadData, match=r"some\.csv:3: has a line of more than 4,194,304 bytes"):
        list(read_rows(path, COLUMNS))
    with pytest.raises(BadData, match=r"some\.csv:3: has a line of more than 4,194,304 bytes"):
        list(read_blocks(path, COLUMNS))


@pytest.mark.takes_seconds
def test_a_file_that_unpacks_to_far_more_than_it_has_is_refused_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "some.csv.gz"
    with gzip.open(path, "wb") as packed:
        packed.write(b"name,price\n")
        for _ in range(100):
            packed.write((b"NC6,1" + b" " * 1000 + b"\n") * 1_000)
    read_rows_of = iter(read_rows(path, COLUMNS))
    assert next(read_rows_of).line == 2
    with pytest.raises(BadData, match=r"some\.csv\.gz:\d+: unpacks to more than 200 times its length"):
        for _ in read_rows_of:
            pass


def test_a_header_of_very_many_columns_is_refused_at_once(tmp_path: Path) -> None:
    begun = process_time()
    for header in ([*COLUMNS, *["x"] * 100_000], [*COLUMNS, *map(str, range(100_000))], ["name"] * 100_000 + ["price"]):
        with pytest.raises(BadData, match=r"is unknown; the columns are|is in the header twice"):
            read(tmp_path, f"{','.join(header)}\n")
    assert process_time() - begun < 2
