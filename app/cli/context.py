"""What commands share: the settings, the database, the clock, questions, and the text and exit code of each error."""

import atexit
import json
import logging
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from functools import cache
from io import UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from pydantic import BaseModel, SecretStr, ValidationError

from app.catalog.revisions import current_revision
from app.cli.options import BODY_FIELDS, OPTION_OF_FIELD, name_as_typed, option_name
from app.cli.output import EXIT_BAD_DATA, EXIT_NOT_FOUND, EXIT_NOT_READY, EXIT_OK, EXIT_USAGE, print_note
from app.db.databases import Database, open_database
from app.db.errors import (
    MISSING,
    DatabaseError,
    UnsupportedUrl,
    WriterBusy,
    driver_message,
    has_no_tables,
    lacks_what_was_asked,
    outage_cause,
    to_database_error,
)
from app.db.schema import NewerSchema, OlderSchema, refuse_newer, refuse_older, schema_revision
from app.db.statements import DriverReader
from app.errors import BadData, BadQuery, BadWorkload, FetchError, NotFound, NotReady, VmsizesError
from app.settings import BadEnvFile, Settings
from app.telemetry import logs
from app.validation import explain

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlmodel import Session

    from app.catalog.queries.snapshot import Catalog
    from app.questions import Inquiry

T = TypeVar("T")

_EXIT_CODES: dict[type[VmsizesError], int] = {
    NotFound: EXIT_NOT_FOUND,
    BadQuery: EXIT_USAGE,
    BadWorkload: EXIT_USAGE,
    BadData: EXIT_BAD_DATA,
    NotReady: EXIT_NOT_READY,
    FetchError: EXIT_BAD_DATA,
}


@cache
def settings() -> Settings:
    """Return the settings, read once; raises BadQuery naming the variable that is wrong.

    Where log lines are JSON, results and errors are logged on standard error from here on.
    """
    try:
        read = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        value = None if Settings.model_fields[name].annotation is SecretStr else first["input"]
        raise BadQuery(f"VMSIZES_{name}".upper(), value, explain(first)) from None
    except BadEnvFile:
        raise BadData("is a pipe; give a file", file=".env") from None
    except UnicodeDecodeError as error:
        raise BadData(f"is not UTF-8 text (byte {error.start})", file=".env") from None
    global _logs_json  # noqa: PLW0603  # known once the settings are
    if read.log_format == "json":
        logs.configure(read.log_format, read.log_level)
        _logs_json = True
    return read


_log = logging.getLogger("vmsizes.command")
_logs_json = False
_began = time.monotonic()


def log_result(event: str, fields: Mapping[str, object], *, level: int = logging.INFO) -> bool:
    """Log what a command did where log lines are JSON, and return whether they are; as text it is printed already."""
    if _logs_json:
        took = {"duration_s": round(time.monotonic() - _began, 3)}
        _log.log(level, event, extra={"fields": took | dict(fields)})
    return _logs_json


@cache
def database() -> Database:
    """Return the database to read, made once; raises BadQuery for a URL of no supported one."""
    try:
        made = open_database(settings().database_url)
    except UnsupportedUrl as error:
        raise BadQuery("VMSIZES_DATABASE_URL", None, str(error)) from None
    # Closing its last connection removes the write-ahead log of SQLite, which an ingest makes as large as the database.
    atexit.register(made.dispose)
    return made


@cache
def engine() -> "Engine":
    """Return the engine to write with, made once; raises BadQuery for a URL of no supported database."""
    from app.db.engines import make_engine, refuse_missing

    file = database().file
    made = make_engine(settings().database_url)
    if file is not None:
        refuse_missing(made, file)
    atexit.register(made.dispose)
    return made


def create_file() -> None:
    """Create the file of an SQLite database where it is missing; without this a mistyped path would become one.

    No other user can read it, as it has the secrets of webhooks; SQLite's files beside it get the same mode.
    """
    if file := database().file:
        with suppress(OSError):  # which opening it says better
            file.touch(0o600)


def feeds_folder() -> Path:
    """Return the folder for fetched pages: that of the settings, else beside a database that is a file."""
    if chosen := settings().feeds:
        return chosen
    return Path(f"{database().path or 'vmsizes.db'}.feeds")


def use_wait(seconds: float | None) -> None:
    """Let commands wait so long for another one that writes: the option `--wait`, else the setting."""
    from app.db.writing import set_wait

    set_wait(engine(), settings().wait_seconds if seconds is None else seconds)


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Return the current date in UTC."""
    return now().date()


def past_day(day: datetime | None) -> date | None:
    """Return the day that `--day` names; raises BadQuery for one after today."""
    if day and day.date() > today():
        raise BadQuery("--day", f"{day:%Y-%m-%d}", f"must not be later than {today()}, which is today (UTC)")
    return day.date() if day else None


@contextmanager
def reader() -> Iterator[DriverReader]:
    """Open a connection to read the catalog; raises OlderSchema, or NotReady where it is empty."""
    with database().connect() as opened:
        refuse_older(schema_revision(opened))
        if not current_revision(opened):
            raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
        yield opened


@contextmanager
def session() -> "Iterator[Session]":
    """Open a session of SQLAlchemy to read with, as the catalog's writers do; raises as `reader` does."""
    from app.db.engines import read_session

    require_catalog()
    with read_session(engine()) as opened:
        yield opened


def require_catalog() -> None:
    """Raise OlderSchema or NotReady, which say what to do, where there is no catalog yet."""
    with reader():
        pass


def ask(endpoint: str, params: BaseModel, name: str | None = None, receipt: Path | None = None) -> Any:
    """Return the answer of the API to a question, as JSON data, and write its receipt if there is a file for it."""
    return inquire(lambda inquiry: inquiry.ask(endpoint, params, name), receipt)


def inquire(work: "Callable[[Inquiry], T]", receipt: Path | None = None) -> T:
    """Return what a function asks the catalog, all of it from one revision; the receipt is of its first question."""
    from app.catalog.queries.snapshot import ask_catalog
    from app.questions import Inquiry

    def answer(catalog: "Catalog") -> tuple[T, str]:
        inquiry = Inquiry(catalog)
        answered = work(inquiry)
        if receipt is None:
            return answered, ""
        from app.receipts import make_receipt

        return answered, json.dumps(make_receipt(catalog, inquiry.asked[:1]), indent=1, ensure_ascii=False)

    with reader() as opened:
        answered, made = ask_catalog(opened, today(), answer)
    if receipt is not None:
        receipt.write_text(f"{made}\n", encoding="utf-8")
    return answered


def exit_with_error(error: Exception) -> NoReturn:
    """Print an error of the project or the database and exit with its code; raises any other error again."""
    if message := error_message(error):
        codes = (code for kind, code in _EXIT_CODES.items() if isinstance(error, kind))
        _exit(message, next(codes, 1) if isinstance(error, VmsizesError) else EXIT_NOT_READY)
    if isinstance(error, OSError) and error.strerror:
        # Text that could not be written stays in the buffer, and would fail again when the interpreter ends.
        with suppress(UnsupportedOperation):  # no file, where another program runs the command
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader of a pipe has stopped: `vmsizes search | head -1`
            sys.exit(EXIT_OK)
        _exit(f"{error.filename or 'the output'}: {error.strerror}", EXIT_USAGE)
    raise error


def error_message(error: Exception) -> str | None:
    """Return the text of an error of the project or the database, None for any other."""
    if isinstance(error, VmsizesError):
        return to_cli_text(error)
    if isinstance(error, WriterBusy):
        return f"{error} Try again when it has ended, or wait longer with --wait."
    if isinstance(error, NewerSchema):
        return f"{error} Install the version that migrated it or a later one, or restore a copy from before."
    if isinstance(error, OlderSchema):
        return str(error)
    failed = to_database_error(error)
    if failed is not None and (outage_cause(failed) or failed.is_a("ProgrammingError")):
        return _database_message(failed)
    return None


def _database_message(error: DatabaseError) -> str:
    """Return what is wrong with the database and what to do: each kind of failure has its own remedy."""
    message = driver_message(error)
    if lacks_what_was_asked(error) and (newer := _newer_schema()):
        return newer
    if has_no_tables(error):
        return "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
    if MISSING in message and (file := database().file):
        if not file.parent.is_dir():
            return f"There is no folder {file.parent} for a database file; correct VMSIZES_DATABASE_URL."
        return (
            f"There is no database file {file}; correct VMSIZES_DATABASE_URL, or run `vmsizes migrate`, then "
            "`vmsizes ingest seeds`."
        )
    cause, remedy = outage_cause(error) or ("", "")
    reached = "used" if remedy else "reached"
    problem = f"The database cannot be {reached}: {cause}" if cause else "The database failed"
    check = f". Check that {database().shown_url} is running and that VMSIZES_DATABASE_URL is right"
    return f"{problem} ({message}){f'; {remedy}' if remedy else check}."


def _newer_schema() -> str | None:
    """Return what to do where a newer program has migrated the database; it may have no tables at all."""
    with suppress(DatabaseError), database().connect() as opened:
        try:
            refuse_newer(schema_revision(opened))
        except NewerSchema as error:
            return error_message(error)
    return None


def to_cli_text(error: VmsizesError) -> str:
    """Return the text of an error with options in place of fields, and commands in place of URLs."""
    text = str(error)
    if isinstance(error, BadQuery | BadWorkload):
        text = f"{name_as_typed(_option_for_field(error.field))}{text.removeprefix(error.field)}"
    text = _PART.sub("", _ARCHITECTURE.sub("MODEL or --config", text))
    text = _FIELD.sub(lambda match: _option_for_field(match[0]), text)
    return _LISTED.sub(lambda match: f"`vmsizes {_COMMANDS.get(match[1], f'export {match[1]}')}`", text)


_LISTED = re.compile(r"GET /(\w+)(?= lists them| says where)")
_ARCHITECTURE = re.compile(r"(?<=without )architecture\.\w+(?:, architecture\.\w+)*")
_PART = re.compile(r"^(inference|training|serving): (?=cannot be answered)")
"""A part of a body, that no option sets."""
_FIELD = re.compile(r"(?<![-\w])(?:inference|training|serving|gpus|constraints|pricing|architecture)\.\w+")
_COMMANDS = {"models": "models", "sizes": "search"}


def _option_for_field(field: str) -> str:
    """Return the option that sets a field of a body or a parameter; a field that no option sets stays as it is."""
    if field in BODY_FIELDS:  # a part of a body, that no option sets
        return field
    if field in OPTION_OF_FIELD:
        return option_name(OPTION_OF_FIELD[field])
    if field == "architecture" or field.startswith("architecture."):
        return "--model"
    return option_name(field.removeprefix("pricing.")) if re.fullmatch(r"(pricing\.)?[a-z_]+", field) else field


def _exit(message: str, code: int) -> NoReturn:
    with suppress(VmsizesError):  # a setting that is wrong is reported as text
        settings()
    if not log_result("command failed", {"error": message, "exit_code": code}, level=logging.ERROR):
        print_note(message, "error: ")
    sys.exit(code)
