"""Commands refuse pipes and devices: nobody may ever write to a pipe, and a device has no end."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import CommandResult, run_command

PATIENCE_SECONDS = 120


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    """End a command that waits for a pipe with an error."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def command(folder: Path, *arguments: str) -> CommandResult:
    return run_command(f"sqlite:///{folder / 'x.db'}", *arguments, folder=folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ingest", "prices", "pipe"),
        ("ingest", "documents", "pipe"),
        ("ingest", "prices", "prices.csv", "--sources", "pipe"),
        ("ingest", "regions", "/dev/zero"),
        ("ingest", "prices", "/dev/zero"),
        ("ingest", "prices", "prices.csv", "--sources", "/dev/zero"),
        ("ingest", "documents", "/dev/zero"),
        ("ingest", "adjustments", "/dev/zero"),
        ("ingest", "models", "pipe"),
        ("retirements", "/dev/zero"),
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
        made = command(tmp_path, *arguments)
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
