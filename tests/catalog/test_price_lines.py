"""Lines of a price history have every run once, each change once, and tell nothing that no list has."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import combinations, pairwise, permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.catalog.queries.prices import PriceLine, merge_runs

Run = Mapping[str, Any]


def run(price: float, first: int, last: int, source: str, *, known: int = 90, undated: bool = False) -> Run:
    day = date(2026, 1, 1)
    return {
        "usd_per_hour": price,
        "valid_from": (day + timedelta(days=first)).isoformat(),
        "seen_until": (day + timedelta(days=last)).isoformat(),
        "source_id": source,
        "known_from": (day + timedelta(days=known)).isoformat(),
        "approximate_date": undated,
    }


def told(lines: Sequence[PriceLine]) -> list[tuple[float, int, int, str]]:
    """Return the lines: price, first and last day, sources."""
    first = date(2026, 1, 1)

    def number(day: str) -> int:
        return (date.fromisoformat(day) - first).days

    return [(line.usd_per_hour, number(line.since), number(line.last_seen), " ".join(line.sources)) for line in lines]


CASES: Mapping[str, tuple[Sequence[Run], Sequence[tuple[float, int, int, str]]]] = {
    "no run": ([], []),
    "one that never changed, in three lists": (
        [run(3, 0, 60, "k"), run(3, 5, 5, "s", undated=True), run(3, 70, 70, "a")],
        [(3, 0, 70, "a k s")],
    ),
    "there and back": (
        [run(3, 0, 1, "k"), run(4, 2, 3, "k"), run(3, 4, 5, "k")],
        [(3, 0, 1, "k"), (4, 2, 3, "k"), (3, 4, 5, "k")],
    ),
    "a list that disagrees within another": (
        [run(3, 0, 9, "k"), run(4, 5, 5, "s"), run(3, 20, 20, "a")],
        [(4, 5, 5, "s"), (3, 0, 20, "a k")],
    ),
    "two lists that agree on another price than a third": (
        [run(4, 0, 30, "k"), run(3, 5, 5, "s"), run(3, 10, 10, "a")],
        [(3, 5, 10, "a s"), (4, 0, 30, "k")],
    ),
    "a price that only another list has seen meanwhile": (
        [run(3, 0, 6, "k"), run(4, 4, 8, "s"), run(3, 7, 9, "a")],
        [(3, 0, 6, "k"), (4, 4, 8, "s"), (3, 7, 9, "a")],
    ),
    "a list that is corrected": (
        [run(9, 5, 5, "k", known=90), run(3, 5, 5, "k", known=91)],
        [(9, 5, 5, "k"), (3, 5, 5, "k")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_lists_that_agree_are_one_line(case: str) -> None:
    runs, lines = CASES[case]
    assert told(merge_runs(runs)) == lines
    assert told(merge_runs(reversed(runs))) == lines


def test_a_line_has_the_price_before_it_unless_it_is_beside_one() -> None:
    lines = merge_runs([run(3, 0, 9, "k"), run(4, 5, 5, "s"), run(5, 20, 20, "a")])
    assert [(line.usd_per_hour, line.previous) for line in lines] == [(4, None), (3, None), (5, 3)]


def test_the_first_day_is_approximate_where_no_dated_list_has_it() -> None:
    undated = run(3, 0, 0, "s", undated=True)
    assert [line.approximate_date for line in merge_runs([undated, run(3, 4, 9, "k")])] == [True]
    assert [line.approximate_date for line in merge_runs([undated, run(3, 0, 9, "k")])] == [False]


def test_the_line_with_the_run_in_force_is_marked() -> None:
    runs = [run(3, 0, 1, "k"), run(4, 2, 3, "k"), run(4, 3, 3, "s")]
    assert [line.in_force for line in merge_runs(runs, in_force=runs[1])] == [False, True]
    assert [line.in_force for line in merge_runs(runs)] == [False, False]


@st.composite
def any_runs(draw: st.DrawFn) -> list[Run]:
    first = st.integers(0, 12)
    each = st.tuples(st.integers(1, 3), first, st.integers(0, 6), st.sampled_from("ksa"), first, st.booleans())
    drawn = draw(st.lists(each, max_size=9, unique_by=lambda one: (one[1], one[3], one[4])))
    return [
        run(price, first, first + days, source, known=90 + known, undated=undated)
        for price, first, days, source, known, undated in drawn
    ]


@given(runs=any_runs(), data=st.data())
def test_lines_have_every_run_once_and_never_the_price_of_the_line_before(runs: list[Run], data: st.DataObject) -> None:
    lines = merge_runs(runs)
    assert sorted(map(repr, runs)) == sorted(repr(one) for line in lines for one in line.runs)
    assert all(one["usd_per_hour"] == line.usd_per_hour for line in lines for one in line.runs)
    assert all(before.usd_per_hour != line.usd_per_hour for before, line in pairwise(lines))
    assert all(line.previous != line.usd_per_hour for line in lines)
    assert [line.last_seen for line in lines] == sorted(line.last_seen for line in lines)
    assert merge_runs(data.draw(st.permutations(runs))) == lines


@given(runs=any_runs())
def test_lines_of_one_price_are_apart_and_no_other_line_is_within_their_gaps(runs: list[Run]) -> None:
    lines = merge_runs(runs)
    for one, other in combinations(lines, 2):
        if one.usd_per_hour == other.usd_per_hour:
            assert one.last_seen < other.since
    for line, other in permutations(lines, 2):
        meanwhile = [
            one for one in line.runs if one["valid_from"] <= other.last_seen and one["seen_until"] >= other.since
        ]
        assert meanwhile or not line.since < other.since <= other.last_seen < line.last_seen


def test_a_line_says_what_is_odd_about_the_price_that_was_last_seen() -> None:
    odd = {"unusual": True, "median_usd_per_hour": 6.925, "disputed": False}
    (line,) = merge_runs([run(0.719, 1, 5, "a"), {**run(0.719, 6, 7, "b"), **odd}])
    assert line.note() == "unusual: median 6.925"
    (line,) = merge_runs([{**run(0.719, 1, 5, "a"), **odd}, run(0.719, 6, 7, "b")])
    assert line.note() is None
