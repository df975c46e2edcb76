"""The command line `vmsizes`, run in this process: to start the program takes longer than what most commands do."""

import gc
import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from app.cli import context, main


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The output and the exit code of a command."""

    returncode: int
    stdout: str
    stderr: str


def run_command(
    url: str, *arguments: str, folder: Path | None = None, today: Callable[[], date] | None = None, merged: bool = False
) -> CommandResult:
    """Run a command on the database at a URL, in a folder; `merged` puts its errors among its output, as 2>&1 does."""
    stdout, stderr = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VMSIZES_DATABASE_URL", url)
        patch.setattr(sys, "argv", ["vmsizes", *arguments])
        if today is not None:
            patch.setattr(context, "today", today)
        if folder is not None:
            patch.chdir(folder)
        patch.setattr(gc, "freeze", lambda: None)  # done once a command, garbage of a thousand commands would be kept
        context.settings.cache_clear()
        context.engine.cache_clear()
        with (
            redirect_stdout(stdout),
            redirect_stderr(stdout if merged else stderr),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        if context.engine.cache_info().currsize:
            context.engine().dispose()
    shown, errors = (stream.buffer.getvalue().decode() for stream in (stdout, stderr))
    return CommandResult(returncode=int(ended.value.code or 0), stdout=shown, stderr=errors)
