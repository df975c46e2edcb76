"""Standard streams and settings files that cannot be used: one line says why, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_output_that_cannot_be_written_is_told_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([PROGRAM, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "error: the output: No space left on device\n")


def test_a_closed_output_is_no_error() -> None:
    shell = ["sh", "-c", f'exec "{PROGRAM}" --version >&-']
    done = subprocess.run(shell, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_settings_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"VMSIZES_PORT=\xff")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("VMSIZES_")}
    done = subprocess.run(
        [PROGRAM, "sources"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, "error: .env: is not UTF-8 text (byte 13)\n")
