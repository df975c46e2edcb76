"""What tests ask of each fault of a database; those that are not quick are left to `make faults`."""

from collections.abc import Iterable
from typing import TypeVar

import pytest

from tests.faults.observe import Fault, Outcome

W = TypeVar("W")

MAX_SECONDS = 30.0
"""A bound for a machine that does much else: docs/faults.md has what is measured. That no client waits for the end of a
fault does not depend on it: the fault lasts until each has had answers (`tests.faults.observe`)."""


def each_of(faults: Iterable[Fault[W]]) -> pytest.MarkDecorator:
    """Run a test for each fault, as its parameter `fault`."""
    marked = [pytest.param(each, marks=[] if each.quick else pytest.mark.slow, id=each.name) for each in faults]
    return pytest.mark.parametrize("fault", marked)


def assert_outlived(outcome: Outcome) -> None:
    """Assert that nothing was wrong, and that no client waited for long."""
    assert outcome.problems == ()
    assert outcome.slowest_health_seconds < MAX_SECONDS
    assert outcome.slowest_refusal_seconds < MAX_SECONDS
    assert outcome.recovered_seconds < MAX_SECONDS
