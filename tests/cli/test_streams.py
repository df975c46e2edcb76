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


@pytest.mark.takes_seconds
@pytest.mark.one_database
@pytest.mark.parametrize("form", ["csv", "ndjson", "parquet"])
def test_an_export_that_fails_leaves_the_file_that_was_there(seeded_url: str, tmp_path: Path, form: str) -> None:
    export = ["export", "sizes", "--format", form, "-o", "sizes"]
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    limited = ["sh", "-c", 'ulimit -f 100 && exec "$@"', "sh", PROGRAM, *export]
    (tmp_path / "sizes").write_text("as it was")
    failed = subprocess.run(limited, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (failed.returncode, "File too large" in failed.stderr) == (2, True), failed.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["sizes"]
    assert (tmp_path / "sizes").read_text() == "as it was"
    (tmp_path / "sizes").chmod(0o600)
    (tmp_path / "link").symlink_to("sizes")
    subprocess.run([PROGRAM, *export[:-1], "link"], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "sizes").stat().st_size > 50 * 1024
    assert (tmp_path / "sizes").stat().st_mode & 0o777 == 0o600


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_an_export_to_what_is_no_file_is_written_there(seeded_url: str, tmp_path: Path) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    for place in ("/dev/stdout", "/dev/fd/1"):
        with (tmp_path / "out.csv").open("wb") as output:
            command = [PROGRAM, "export", "gpus", "-o", place]
            subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, env=environment, check=True)
        assert (tmp_path / "out.csv").read_text().startswith("id,")


@pytest.mark.takes_seconds
@pytest.mark.one_database
@pytest.mark.parametrize(("written_as", "start"), [("csv", b"id,"), ("parquet", b"PAR1")])
def test_an_export_to_a_pipe_leaves_the_pipe_where_it_is(
    seeded_url: str, tmp_path: Path, written_as: str, start: bytes
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [PROGRAM, "export", "gpus", "--format", written_as, "-o", str(pipe)]
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # what is written waits in the pipe
    try:
        subprocess.run(command, stderr=subprocess.DEVNULL, env=environment, check=True)
        assert os.read(reading, 4).startswith(start)
    finally:
        os.close(reading)
    assert pipe.is_fifo()
