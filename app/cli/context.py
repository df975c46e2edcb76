"""What every command shares: the settings, the engine, the day, and which error ends with which exit code."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from rich.markup import escape
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, ProgrammingError
from sqlmodel import Session

from app.cli.output import err
from app.db import make_engine, reading
from app.errors import BadData, BadQuestion, NotFound, NotReady, VmsizesError
from app.settings import Settings

FOUND, NOTHING, USAGE, BAD_DATA, NOT_READY = 0, 1, 2, 3, 4
"""Exit codes: 0 done or found; 1 nothing found; 2 a question that cannot be answered; 3 bad data; 4 no catalog."""

_CODES: dict[type[VmsizesError], int] = {
    NotFound: NOTHING,
    BadQuestion: USAGE,
    BadData: BAD_DATA,
    NotReady: NOT_READY,
}


@cache
def settings() -> Settings:
    """Read the settings once."""
    return Settings()


@cache
def engine() -> Engine:
    """Make the engine once."""
    return make_engine(settings().database_url)


def now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


def today() -> date:
    """Read the calendar."""
    return now().date()


@contextmanager
def session() -> Iterator[Session]:
    """A session to read with; a database without a catalog is said so."""
    with reading(engine()) as opened:
        try:
            yield opened
        except (OperationalError, ProgrammingError) as error:
            told = "The database has no catalog; run `vmsizes migrate`, then `vmsizes ingest seeds`."
            raise NotReady(told) from error


def run(app: Callable[[], Any]) -> None:
    """Run the command line; an error of ours becomes one line on stderr and an exit code."""
    try:
        app()
    except VmsizesError as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(_CODES.get(type(error), 1))
