"""What every command shares: the settings, the engine, the day, and which error ends with which exit code."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from pydantic import ValidationError
from rich.markup import escape
from sqlalchemy import Engine
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    InterfaceError,
    NoSuchModuleError,
    OperationalError,
    ProgrammingError,
)
from sqlmodel import Session

from app.catalog.keep.revisions import latest_revision
from app.cli.output import err
from app.db.engines import make_engine, reading
from app.db.outages import cause_of, first_line, has_no_tables
from app.errors import BadData, BadQuestion, BadWorkload, NotFound, NotReady, VmsizesError
from app.settings import Settings
from app.validation import explain

FOUND, NOTHING, USAGE, BAD_DATA, NOT_READY = 0, 1, 2, 3, 4
"""Exit codes: 0 done or found; 1 nothing found; 2 a question that cannot be answered; 3 bad data; 4 no catalog."""

_CODES: dict[type[VmsizesError], int] = {
    NotFound: NOTHING,
    BadQuestion: USAGE,
    BadWorkload: USAGE,
    BadData: BAD_DATA,
    NotReady: NOT_READY,
}


@cache
def settings() -> Settings:
    """Read the settings once; raises BadQuestion naming the one that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        raise BadQuestion(f"VMSIZES_{first['loc'][0]}".upper(), first["input"], explain(first)) from None


@cache
def engine() -> Engine:
    """Make the engine once; raises BadQuestion for a URL that means no database of ours."""
    url = settings().database_url
    try:
        return make_engine(url)
    except (ArgumentError, NoSuchModuleError):
        allowed = "allowed are sqlite:///FILE and postgresql://USER:PASSWORD@HOST/NAME"
        raise BadQuestion("VMSIZES_DATABASE_URL", url.partition("@")[2] or url, allowed) from None


def now() -> datetime:
    """Read the clock."""
    return datetime.now(UTC)


def today() -> date:
    """Read the calendar."""
    return now().date()


@contextmanager
def session() -> Iterator[Session]:
    """A session to read with; an empty catalog is said so."""
    with reading(engine()) as opened:
        if latest_revision(opened) is None:
            raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
        yield opened


def run(app: Callable[[], Any]) -> None:
    """Run the command line; an error of ours becomes one line on stderr and an exit code."""
    try:
        app()
    except VmsizesError as error:
        _fail(str(error), _CODES.get(type(error), 1))
    except (OperationalError, ProgrammingError, InterfaceError) as error:
        _fail(_trouble(error), NOT_READY)


def _trouble(error: DBAPIError) -> str:
    if has_no_tables(error):
        return "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
    cause = cause_of(error)
    told = f"The database cannot be reached: {cause}" if cause else "The database does not answer as it should"
    return f"{told} ({first_line(error)})."


def _fail(told: str, code: int) -> None:
    err.print(f"[bold red]error:[/] {escape(told)}", highlight=False, soft_wrap=True)
    sys.exit(code)
