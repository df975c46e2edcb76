"""The comparison of estimates with measurements: its statistics, its gate, and its page."""

from dataclasses import replace
from datetime import date

import pytest

from app.fit.results import COLUMNS, evidence_of, read_accuracy
from app.settings import PROJECT
from benchmarks.accuracy.__main__ import regressions
from benchmarks.accuracy.families import FAMILIES
from benchmarks.accuracy.page import table
from benchmarks.accuracy.points import Family, LeftOut, Point, breakdown, summarize

DAY = date(2026, 11, 27)


def family(*points: Point) -> Family:
    return Family(
        id="speed", title="Speed", figure="inference.decode.expected_step", unit="ms", source="us", license="MIT",
        points=lambda: points,
    )  # fmt: skip


POINTS = (
    Point(measured=10, low=8, mid=9, high=12, labels={"gpu": "a"}),
    Point(measured=10, low=4, mid=5, high=6, labels={"gpu": "b"}),
    Point(measured=10, low=10, mid=11, high=14, labels={"gpu": "a"}),
)


def test_statistics_are_of_the_middle_and_of_the_range() -> None:
    found = summarize(family(*POINTS), POINTS, LeftOut(0.2, "model", 40, 0.75, 1.8), DAY)
    assert (found.n, found.in_range_share, found.range_width) == (3, 0.6667, 1.5)
    assert (found.median_error, found.median_ratio, found.worst_ratio) == (0.1, 0.9, 0.5)
    assert (found.leave_one_out_error, found.left_out, found.left_out_n) == (0.2, "model", 40)
    assert (found.left_out_in_range_share, found.left_out_range_width, found.compared_on) == (0.75, 1.8, DAY)


def test_evidence_counts_the_runs_that_depart_in_the_same() -> None:
    points = [replace(POINTS[0], outside=outside) for outside in ((), ("gpu",), ("gpu", "link"), ("gpu",))]
    assert summarize(family(*points), points, None, DAY).departures == "gpu:2 gpu+link:1"
    all_runs = evidence_of("decode_step")
    assert all_runs.n == read_accuracy()[0].n > 2000
    for family_id, outside in (
        ("decode_step_amd", ("vendor",)),
        ("decode_step_reported", ("gpu",)),
        ("ttft", ("gpu",)),
    ):
        assert 0 < evidence_of(family_id, outside).n < all_runs.n / 20
    assert evidence_of("decode_step", ("speculative",)).n == evidence_of("nothing").n == 0


def test_a_rounded_figure_is_met_by_what_rounds_to_it() -> None:
    params = Point(measured=2.8e12, low=2.77e12, mid=2.77e12, high=2.77e12)
    assert not params.in_range
    assert replace(params, rounded_by=0.05e12).in_range
    assert not replace(params, low=2.74e12, high=2.74e12, rounded_by=0.05e12).in_range


def test_points_are_broken_down_by_a_label() -> None:
    assert {value: len(group) for value, group in breakdown(POINTS, "gpu").items()} == {"a": 2, "b": 1}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"in_range_share": 0.70}, "speed: 66.7% in range, 70.0% are recorded"),
        ({"median_error": 0.07}, "speed: median error 10.0%, 7.0% is recorded"),
        ({"n": 4}, "speed: 3 points, 4 are recorded"),
        ({"in_range_share": 0.68, "median_error": 0.09}, None),
    ],
)
def test_the_gate_fails_where_a_family_is_worse_by_more_than_two_points(
    change: dict[str, float], says: str | None
) -> None:
    found = summarize(family(*POINTS), POINTS, None, DAY)
    recorded = replace(found, **change)  # type: ignore[arg-type]  # fields by name
    assert regressions([found], {"speed": recorded}) == ([says] if says else [])


def test_a_family_that_is_not_recorded_fails() -> None:
    assert "not recorded" in regressions([summarize(family(*POINTS), POINTS, None, DAY)], {})[0]


def test_every_family_is_recorded_and_on_the_page() -> None:
    recorded = read_accuracy()
    assert [one.family for one in recorded] == [one.id for one in FAMILIES]
    assert table(recorded) in (PROJECT / "docs" / "accuracy.md").read_text(encoding="utf-8")
    assert len(COLUMNS) == 19
