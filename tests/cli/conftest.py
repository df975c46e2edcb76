"""The command line, run in this process."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from app.cli import context, main
from tests.conftest import TODAY


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The output and the exit code of a command."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., CommandResult]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process, on the database at a URL."""

    def run(url: str, *arguments: str) -> CommandResult:
        monkeypatch.setenv("VMSIZES_DATABASE_URL", url)
        monkeypatch.setattr(
            context, "today", lambda: TODAY
        )  # the date of the service under test, so that price ages agree
        monkeypatch.setattr(sys, "argv", ["vmsizes", *arguments])
        context.settings.cache_clear()
        context.engine.cache_clear()
        with pytest.raises(SystemExit) as ended:
            main()
        context.engine().dispose()
        printed = capsys.readouterr()
        return CommandResult(returncode=int(ended.value.code or 0), stdout=printed.out, stderr=printed.err)

    return run
