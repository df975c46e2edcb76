"""While PostgreSQL is away stored answers are sent with their age, others are refused soon, and it heals by itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.observe import Fault, observe
from tests.faults.outlived import assert_outlived, each_of
from tests.faults.postgresql import FAULTS, Server
from tests.faults.worlds import postgresql_server, postgresql_service


@pytest.fixture(scope="module")
def world() -> Iterator[Server]:
    with postgresql_server() as server:
        yield server


@pytest.mark.takes_seconds
@each_of(FAULTS)
def test_a_fault_of_postgresql_is_told_and_outlived(fault: Fault[Server], world: Server, tmp_path: Path) -> None:
    with postgresql_service(world, tmp_path / "log") as service:
        assert_outlived(observe(fault, world, service, tmp_path / "log"))
