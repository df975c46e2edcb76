"""Properties of estimates and placements on a few of the random requests of `python -m benchmarks.search`."""

from dataclasses import replace

import pytest

from app.fit.formulas.quantities import Range
from app.fit.formulas.quantities import estimate as estimated
from benchmarks.accuracy.estimates import estimate
from benchmarks.search.__main__ import search
from benchmarks.search.properties import check_ranges, check_serving

BODY = {
    "model": "llama-3.1-70b",
    "inference": {"tensor_parallel": 8, "context_tokens": 8192, "concurrency": 32},
    "gpus": {"count": 8, "usable_gib": 79.2, "bandwidth_gb_per_s": 3350, "peak_tflops": 989, "link": "nvlink"},
}


@pytest.mark.takes_seconds
def test_no_property_is_broken_by_a_hundred_random_requests() -> None:
    found = search(150, seed=7)
    assert not found.violations
    assert found.checked["ranges"] > 100
    assert found.checked["placement: fixes"] > 25


def test_a_range_that_is_inverted_and_a_step_that_is_too_fast_are_found() -> None:
    answer = estimate(BODY)
    assert answer.inference is not None
    assert answer.inference.decode is not None
    assert not [*check_ranges(answer), *check_serving(BODY, answer)]
    inverted = estimated(Range(low=3, mid=2, high=4), "ms")
    fast = estimated(Range(low=0.1, mid=0.1, high=0.1), "ms")
    for step, rule in ((inverted, "ranges contain"), (fast, "no step is below")):
        decode = replace(answer.inference.decode, expected_step=step)
        wrong = replace(answer, inference=replace(answer.inference, decode=decode))
        assert any(one.rule.startswith(rule) for one in (*check_ranges(wrong), *check_serving(BODY, wrong)))
