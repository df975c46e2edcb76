"""While the file of SQLite is away or damaged stored answers are sent with their age, and others are refused."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.observe import Fault, observe
from tests.faults.outlived import assert_outlived, each_of
from tests.faults.sqlite_files import FAULTS, NEEDS_MOUNT, NEEDS_PERMISSIONS, File
from tests.faults.worlds import bound_by_permissions, restore, sqlite_file, sqlite_service


@pytest.fixture(scope="module")
def world() -> Iterator[File]:
    with sqlite_file() as file:
        yield file


@pytest.mark.takes_seconds
@each_of(FAULTS)
def test_a_fault_of_an_sqlite_file_is_told_and_outlived(fault: Fault[File], world: File, tmp_path: Path) -> None:
    if fault.name in NEEDS_MOUNT and not world.path.parent.is_mount():
        pytest.skip("a file system of its own cannot be mounted here")
    if fault.name in NEEDS_PERMISSIONS and os.geteuid() == 0 and not bound_by_permissions():
        pytest.skip("root is bound by no permissions here")
    restore(world)
    with sqlite_service(world, tmp_path / "log") as service:
        assert_outlived(observe(fault, world, service, tmp_path / "log"))
