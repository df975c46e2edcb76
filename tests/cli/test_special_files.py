"""Commands refuse pipes and devices: nobody may ever write to a pipe, and a device has no end."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import run_command

PROGRAM = str(Path(sys.executable).with_name("vmsizes"))
PATIENCE_SECONDS = 120.0


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": f"sqlite:///{folder / 'x.db'}"}
    return subprocess.run(
        [PROGRAM, *arguments],
        env=environment, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS,
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [
        ("ingest", "prices", "pipe"),
        ("ingest", "documents", "pipe"),
        ("ingest", "prices", "prices.csv", "--sources", "pipe"),
        ("ingest", "regions", "/dev/zero"),
    ],
)
def test_a_file_that_is_a_pipe_or_a_device_is_refused(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "prices.csv").write_text("size,region,os,purchase,usd_per_hour,valid_from,approximate_date,source\n")
    done = command(tmp_path, *arguments)
    assert done.returncode == 3
    assert f"{arguments[-1]}: is a pipe, a socket or a device; give a file" in done.stderr


def test_saved_answers_of_feeds_that_are_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    seeds = tmp_path / "seeds"
    seeds.mkdir()
    (seeds / "sources.csv").write_text(
        "id,title,publisher,kind,url,published_on\npage,Page,someone,vendor_page,,2025-01-01\n"
    )
    (seeds / "sizes.csv").write_text("id,source,vcpus\nStandard_X1,page,8\n")
    for arguments in (("migrate",), ("ingest", "seeds", "seeds")):
        made = run_command(f"sqlite:///{tmp_path / 'x.db'}", *arguments, folder=tmp_path)
        assert made.returncode == 0, made.stderr
    for feed in ("exchange-rates", "azure-skus", "azure-prices"):
        done = command(tmp_path, "refresh", feed, "--file", "pipe")
        assert "is a pipe, a socket or a device; give a file" in done.stdout + done.stderr
        assert done.returncode == 3


def test_settings_that_are_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")
    done = command(tmp_path, "search")
    assert done.returncode == 3
    assert done.stderr == "error: .env: is a pipe; give a file\n"
