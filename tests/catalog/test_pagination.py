from datetime import date
from decimal import Decimal

import pytest

from app.catalog.queries.pagination import CursorPosition, read_cursor, write_cursor
from app.errors import BadQuery


def test_a_cursor_round_trips_every_kind_of_value() -> None:
    values = [None, 1 / 6, float("inf"), Decimal("127.816"), date(2026, 9, 30), "Standard_ND40rs_v2", 3]
    assert read_cursor(write_cursor("q", "3-ab", values), "q", len(values)) == CursorPosition("3-ab", values)


@pytest.mark.parametrize(
    "cursor", ["", "abc", "!!!", "WzFd", "bnVsbA", "W10", "eyJhIjoxfQ", "WyJ4Iiwge31d", "WyJ4IiwgMSwgMV0", "é"]
)
def test_a_damaged_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadQuery, match="use next_cursor as it was returned"):
        read_cursor(cursor, "q", 1)


def test_a_cursor_of_another_query_is_refused() -> None:
    with pytest.raises(BadQuery):
        read_cursor(write_cursor("min_gpu_mem=80", "1", ["x"]), "min_gpu_mem=40", 1)
