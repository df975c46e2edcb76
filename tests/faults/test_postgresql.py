"""While PostgreSQL is away stored answers are sent with their age, others are refused soon, and it heals by itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.observe import Fault, observe
from tests.faults.postgresql import FAULTS, Server
from tests.faults.worlds import postgresql_server, postgresql_service

HEALTH_SECONDS, REFUSAL_SECONDS, RECOVERED_SECONDS = 2.0, 4.0, 6.0
"""Bounds for a machine that does much else: docs/faults.md has what is measured, and the goals are a fraction."""


@pytest.fixture(scope="module")
def world() -> Iterator[Server]:
    with postgresql_server() as server:
        yield server


@pytest.mark.parametrize(
    "fault", [pytest.param(each, marks=[] if each.quick else pytest.mark.slow, id=each.name) for each in FAULTS]
)
def test_a_fault_of_postgresql_is_told_and_outlived(fault: Fault[Server], world: Server, tmp_path: Path) -> None:
    with postgresql_service(world, tmp_path / "log") as service:
        outcome = observe(fault, world, service, tmp_path / "log")
    assert outcome.problems == ()
    assert outcome.slowest_health_seconds < HEALTH_SECONDS
    assert outcome.slowest_refusal_seconds < REFUSAL_SECONDS
    assert outcome.recovered_seconds < RECOVERED_SECONDS
