"""What tests ask of each fault of a database; those that are not quick are left to `make faults`."""

from collections.abc import Iterable
from typing import TypeVar

import pytest

from tests.faults.observe import Fault, Outcome

W = TypeVar("W")

HEALTH_SECONDS, REFUSAL_SECONDS, RECOVERED_SECONDS = 2.0, 4.0, 6.0
"""Bounds for a machine that does much else: docs/faults.md has what is measured, and the goals are a fraction."""


def each_of(faults: Iterable[Fault[W]]) -> pytest.MarkDecorator:
    """Run a test for each fault, as its parameter `fault`."""
    marked = [pytest.param(each, marks=[] if each.quick else pytest.mark.slow, id=each.name) for each in faults]
    return pytest.mark.parametrize("fault", marked)


def assert_outlived(outcome: Outcome) -> None:
    """Assert that nothing was wrong, and that no client waited for long."""
    assert outcome.problems == ()
    assert outcome.slowest_health_seconds < HEALTH_SECONDS
    assert outcome.slowest_refusal_seconds < REFUSAL_SECONDS
    assert outcome.recovered_seconds < RECOVERED_SECONDS
