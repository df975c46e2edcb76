import pytest

from benchmarks.ratios import Goal, latencies, paired, percentile, schedule, spread


def test_a_spread_keeps_the_middle_and_the_ends() -> None:
    found = spread([3.0, 1.0, 10.0])
    assert (found.median, found.min, found.max, found.count) == (3.0, 1.0, 10.0, 3)


def test_each_measurement_is_compared_with_its_own_neighbour() -> None:
    slowing_down = paired([100.0, 50.0, 10.0], [50.0, 25.0, 5.0])
    assert (slowing_down.min, slowing_down.median, slowing_down.max) == (2.0, 2.0, 2.0)


def test_measurements_without_a_neighbour_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (0, 1), (0.5, 1), (50.5, 51)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, value: float) -> None:
    assert percentile([float(number) for number in range(100, 0, -1)], percent) == value


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 99) == 7.0


def test_requests_are_due_at_a_fixed_rate() -> None:
    assert schedule(4, 1) == [0.0, 0.25, 0.5, 0.75]


def test_a_request_that_waited_for_another_is_timed_from_when_it_was_due() -> None:
    assert latencies([0.0, 0.1, 0.2], [1.0, 1.01, 0.25]) == pytest.approx([1.0, 0.91, 0.05])


@pytest.mark.parametrize(
    ("how", "value", "reached"),
    [("at least", 0.8, True), ("at least", 0.79, False), ("below", 5.0, False), ("at most", 1.5, True)],
)
def test_a_goal_is_reached_or_not(how: str, value: float, reached: bool) -> None:
    bound = {"at least": 0.8, "below": 5.0, "at most": 1.5}[how]
    assert Goal(figure="ratio", how=how, bound=bound).reached(value) is reached  # type: ignore[arg-type]  # from a table


def test_without_a_bound_nothing_is_reached() -> None:
    assert Goal(figure="ratio").reached(0.1) is None
