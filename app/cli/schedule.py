"""Repeats work at an interval until SIGTERM, for a service that keeps the catalog current."""

import logging
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

import typer

from app.cli import context

_log = logging.getLogger(__name__)

JITTER = 0.05
"""A wait is longer or shorter by up to this share, so that many catalogs do not ask the vendor at the same moment."""

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_INTERVAL = re.compile(r"(\d+)([smhd])")


def parse_interval(text: str) -> int:
    """Return the seconds of an interval as people write it: `90s`, `30m`, `24h`, `7d`."""
    match = _INTERVAL.fullmatch(text.strip())
    seconds = int(match[1]) * _SECONDS[match[2]] if match else 0
    if not 1 <= seconds <= 366 * 86400:
        raise typer.BadParameter(
            f"{text!r} is no interval: write a whole number with s, m, h or d, from 1s to 366d, such as 24h"
        )
    return seconds


def repeat(run: Callable[[], str], every_seconds: int) -> NoReturn:
    """Call `run` now and again at the interval, and print one line for each call: when, its text or error, how long.

    The interval is from start to start, so that the hour of the day stays about the same; calls never overlap. A call
    that fails is printed and the next one comes at its time. SIGTERM exits with code 0, also in the middle of a call:
    an ingest is one transaction, so that the catalog is then as it was before.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(context.EXIT_OK))
    while True:
        started, began_at = time.monotonic(), context.now()
        text = _outcome_of(run)
        # An idle connection would keep the write-ahead log of SQLite, or a connection of PostgreSQL, for a day.
        context.engine().dispose()
        took = time.monotonic() - started
        failed = text.startswith("failed")
        level = logging.ERROR if failed else logging.INFO
        if not context.log_result("run ended", {"result": text, "duration_s": round(took, 3)}, level=level):
            print(f"{began_at:%Y-%m-%dT%H:%M:%SZ} {text}; took {took:.1f} s", flush=True)  # noqa: T201  # the log
        # No secret depends on this chance.
        wait = every_seconds * random.uniform(1 - JITTER, 1 + JITTER) - took  # noqa: S311
        time.sleep(max(0.0, wait))


def _outcome_of(run: Callable[[], str]) -> str:
    try:
        return run()
    except Exception as error:  # noqa: BLE001  # the next run may succeed
        message = context.error_message(error)
        if message is None:  # a fault of this program, whose place the log should tell
            _log.exception("a run failed")
            message = f"{type(error).__name__}: {error}"
        return f"failed: {' '.join(message.split())}"
