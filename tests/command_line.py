"""The command line `vmsizes`, run in this process: to start the program takes longer than what most commands do."""

import gc
import io
import os
import pty
import struct
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import TextIO

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
        if today is not None:
            patch.setattr(context, "today", today)
        if folder is not None:
            patch.chdir(folder)
        code = _run(patch, url, arguments, stdout, stdout if merged else stderr)
    shown, errors = (stream.buffer.getvalue().decode() for stream in (stdout, stderr))
    return CommandResult(returncode=code, stdout=shown, stderr=errors)


def run_on_terminal(url: str, *arguments: str, columns: int) -> str:
    """Run a command on the database at a URL with its output on a terminal; returns what it shows, with escapes."""
    here, other = pty.openpty()
    ioctl(other, TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with ThreadPoolExecutor(max_workers=1) as reader, pytest.MonkeyPatch.context() as patch:
        shown = reader.submit(_read_to_end, here)
        with open(other, "w", encoding="utf-8") as screen:  # noqa: PTH123  # a descriptor
            patch.setattr(sys, "__stdout__", screen)  # asked for its width
            patch.setenv("TERM", "xterm")
            for name in ("COLUMNS", "LINES"):
                patch.delenv(name, raising=False)
            code = _run(patch, url, arguments, screen, screen)
        text = shown.result()
    os.close(here)
    assert code in (0, 1), text
    return text


def _read_to_end(terminal: int) -> str:
    read = b""
    while True:
        try:
            read += os.read(terminal, 65536)
        except OSError:  # nobody writes to it any more
            return read.decode()


def _run(patch: pytest.MonkeyPatch, url: str, arguments: tuple[str, ...], stdout: TextIO, stderr: TextIO) -> int:
    """Run a command with these streams and return its exit code."""
    patch.setenv("VMSIZES_DATABASE_URL", url)
    patch.setattr(sys, "argv", ["vmsizes", *arguments])
    patch.setattr(gc, "freeze", lambda: None)  # done once a command, garbage of a thousand commands would be kept
    context.settings.cache_clear()
    context.engine.cache_clear()
    context.database.cache_clear()
    with redirect_stdout(stdout), redirect_stderr(stderr), pytest.raises(SystemExit) as ended:
        main()
    for opened in (context.engine, context.database):
        if opened.cache_info().currsize:
            opened().dispose()
    return int(ended.value.code or 0)
