"""Counters that processes share: sums over those that live and those that ended."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.telemetry.counters import SharedCounters, counters_folder

OTHER_PROCESS = """
import sys
from pathlib import Path
from app.telemetry.counters import SharedCounters
shared = SharedCounters("x", 2, 1, Path(sys.argv[1]))
shared.values[0] += 5
shared.values[2] = 7
print("counted", flush=True)
sys.stdin.read()
"""


def other_process(folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", OTHER_PROCESS, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "counted\n"
    return process


def test_counters_of_the_dead_are_kept_and_their_gauges_are_not(tmp_path: Path) -> None:
    own = SharedCounters("x", 2, 1, tmp_path)
    own.values[0], own.values[1], own.values[2] = 1, 2, 3
    with other_process(tmp_path) as process:
        assert own.totals() == ([6, 2], [10], 2)
        process.kill()
        process.wait()
        assert own.totals() == ([6, 2], [3], 1)
    own.close()


def test_files_of_the_dead_are_merged_so_that_restarts_leave_none(tmp_path: Path) -> None:
    for _ in range(3):
        with other_process(tmp_path) as process:
            process.kill()
    last = SharedCounters("x", 2, 1, tmp_path)
    assert last.totals() == ([15, 0], [0], 1)
    assert len(list(tmp_path.glob("*.counters"))) == 2, "its own, and what the dead have counted"
    last.close()


def test_another_layout_is_neither_read_nor_removed(tmp_path: Path) -> None:
    old = SharedCounters("old", 2, 1, tmp_path)
    old.values[0] = 9
    old.close()
    new = SharedCounters("new", 2, 1, tmp_path)
    assert new.totals() == ([0, 0], [0], 1)
    assert len(list(tmp_path.glob("*.counters"))) == 2
    new.close()


HOLDING = """
import sys
from app.telemetry.counters import counters_folder
with counters_folder() as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def test_the_folder_of_a_process_that_was_killed_is_removed_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    command = [sys.executable, "-c", HOLDING]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        killed = Path(process.stdout.readline().strip())
        with counters_folder() as own:
            assert killed.is_dir(), "its process lives"
        assert not own.exists()
        process.kill()
    assert killed.is_dir()
    with counters_folder() as own:
        assert not killed.exists()
        assert own.is_dir()
