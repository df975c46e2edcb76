"""Logarithmic axes and the Pareto front."""

from operator import itemgetter

import pytest

from app.web.explore import log_axis, pareto_front


def front(*points: tuple[float, float]) -> list[tuple[float, float]]:
    return pareto_front(points, itemgetter(0), itemgetter(1))


def test_a_point_that_another_beats_in_both_figures_is_not_in_the_front() -> None:
    assert front((1, 1), (2, 2), (3, 1)) == [(2, 2), (3, 1)]


def test_a_point_that_is_equal_in_one_figure_and_worse_in_the_other_is_not_in_the_front() -> None:
    assert front((2, 2), (2, 1), (1, 2)) == [(2, 2)]


def test_equal_points_are_all_in_the_front() -> None:
    assert front((2, 2), (1, 1), (2, 2)) == [(2, 2), (2, 2)]


def test_the_front_is_that_of_comparing_every_pair() -> None:
    points = [(float(7 * n % 31), float(11 * n % 29)) for n in range(200)]
    beaten = {one for one in points for other in points if other != one and other[0] >= one[0] and other[1] >= one[1]}
    assert sorted(front(*points)) == sorted(one for one in points if one not in beaten)


def test_equal_factors_are_equally_far_apart_and_ends_have_room() -> None:
    axis = log_axis([1, 10, 100])
    first, middle, last = (axis.position(value) for value in (1, 10, 100))
    assert 0 < first < 10
    assert middle == pytest.approx(50)
    assert last == pytest.approx(100 - first)


def test_an_axis_of_one_value_has_it_in_the_middle() -> None:
    assert log_axis([80, 80]).position(80) == pytest.approx(50)


@pytest.mark.parametrize(
    ("values", "base", "shown"),
    [
        ([4, 40], 2, [4, 8, 16, 32]),
        ([0.2, 8], 10, [0.2, 0.5, 1, 2, 5]),
        ([1, 1e6], 10, [1, 10, 100, 1000, 10_000, 100_000, 1e6]),
    ],
)
def test_ticks_are_round_values_within_the_axis(values: list[float], base: int, shown: list[float]) -> None:
    assert [tick.value for tick in log_axis(values).ticks(base)] == pytest.approx(shown)


def test_an_axis_never_has_more_than_twelve_ticks() -> None:
    assert all(len(log_axis([1, 10.0**n]).ticks(base)) <= 12 for n in range(1, 9) for base in (2, 10))
