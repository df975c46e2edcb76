"""CSV and NDJSON round-trip, and no CSV cell is a formula or becomes a date."""

import csv
import io
import json
from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.catalog.fields import FieldKind
from app.formats.text import LIST_SEPARATOR, Columns, Csv, Ndjson, escape_cell, unescape_cell

COLUMNS: Mapping[str, FieldKind] = {
    "t": "text",
    "n": "number",
    "i": "integer",
    "b": "boolean",
    "d": "date",
    "l": "list",
}
DAYS = ("1/3", "1/16", "10-12", "3/4/2026")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1) | st.sampled_from(
    [
        "=1+1",
        "+1",
        "-1",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        "\uff1d1",
        'a"b',
        "a,b",
        "a\r\nb",
        "'=1",
        "''=1",
        "'a",
        " =1",
        *DAYS,
        "'1/3",
        "a/3",
        "2026-09-01",
        "1/3 GPU",
    ]
)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
ROW = st.tuples(
    st.none() | TEXT,
    st.none() | NUMBER,
    st.none() | st.integers(-(2**53), 2**53),
    st.none() | st.booleans(),
    st.none() | st.dates().map(str),
    st.lists(TEXT, max_size=3),
)
ROWS = st.lists(ROW, min_size=1, max_size=5)
RUN = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def columns_of(rows: list[tuple[Any, ...]]) -> Columns:
    return list(zip(*rows, strict=True))


def read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode(), newline=""), strict=True))


@given(ROWS)
def test_no_cell_begins_as_a_formula_but_a_negative_number(rows: list[tuple[Any, ...]]) -> None:
    form = Csv(COLUMNS)
    for cells in read(form.head + form.write(columns_of(rows))):
        for kind, cell in zip(COLUMNS.values(), cells, strict=True):
            if cell.startswith(RUN):
                assert kind in {"number", "integer"}
                assert cell.startswith("-")
                float(cell)


@given(ROWS)
def test_csv_gives_back_every_value(rows: list[tuple[Any, ...]]) -> None:
    form = Csv(COLUMNS)
    head, *lines = read(form.head + form.write(columns_of(rows)))
    assert head == list(COLUMNS)
    assert len(lines) == len(rows)
    for (text, number, integer, truth, day, parts), cells in zip(rows, lines, strict=True):
        assert unescape_cell(cells[0]) == (text or "")
        assert (float(cells[1]) if cells[1] else None) == number
        assert (int(cells[2]) if cells[2] else None) == integer
        assert cells[3] == {None: "", True: "true", False: "false"}[truth]
        assert cells[4] == (day or "")
        assert unescape_cell(cells[5]) == LIST_SEPARATOR.join(parts)


@given(ROWS)
def test_csv_is_quoted_as_the_csv_module_does(rows: list[tuple[Any, ...]]) -> None:
    truths = {None: None, True: "true", False: "false"}
    plain = [
        (text and escape_cell(text), number, integer, truths[truth], day, escape_cell(LIST_SEPARATOR.join(parts)))
        for text, number, integer, truth, day, parts in rows
    ]
    expected = io.StringIO(newline="")
    csv.writer(expected, lineterminator="\r\n").writerows([list(COLUMNS), *plain])
    form = Csv(COLUMNS)
    assert form.head + form.write(columns_of(rows)) == expected.getvalue().encode()


@given(st.lists(st.none() | TEXT, min_size=1))
def test_a_column_alone_is_quoted_as_the_csv_module_does(texts: list[str | None]) -> None:
    expected = io.StringIO(newline="")
    escaped = ([text and escape_cell(text)] for text in texts)
    csv.writer(expected, lineterminator="\r\n").writerows(escaped)
    assert Csv({"t": "text"}).write([texts]) == expected.getvalue().encode()


@given(ROWS)
def test_an_apostrophe_is_put_only_before_what_would_be_run_or_taken_for_a_day(rows: list[tuple[Any, ...]]) -> None:
    for (text, *_), cells in zip(rows, read(Csv(COLUMNS).write(columns_of(rows))), strict=True):
        expected: str = text or ""
        bare = expected.lstrip("'")
        assert cells[0] == (f"'{expected}" if bare.startswith(RUN) or bare in DAYS else expected)


@given(ROWS)
def test_ndjson_is_an_object_a_line(rows: list[tuple[Any, ...]]) -> None:
    lines = Ndjson(COLUMNS).write(columns_of(rows)).split(b"\n")
    assert lines.pop() == b""
    assert [json.loads(line) for line in lines] == [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def test_a_row_of_one_unknown_value_is_still_a_row() -> None:
    assert Csv({"t": "text"}).write([(None, "a")]) == b'""\r\na\r\n'
