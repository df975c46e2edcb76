"""What a database refuses or fails with: one kind of error for all drivers, and why a database cannot be reached."""

import re
import sys


class UnsupportedUrl(ValueError):
    """A URL is not that of a database which is supported; the message tells no more of it than its scheme."""


class WriterBusy(Exception):
    """Another process writes to the database, and has not ended in time."""


class DatabaseError(Exception):
    """An error of a database's driver, `orig`; `connection_invalidated` where the connection was lost with it."""

    def __init__(self, orig: BaseException, sql: str = "", *, connection_invalidated: bool = False) -> None:
        super().__init__(f"{orig}\n[SQL: {sql}]" if sql else str(orig))
        self.orig, self.connection_invalidated = orig, connection_invalidated

    def is_a(self, *kinds: str) -> bool:
        """Check whether the driver's error is of one of the kinds that all drivers have (PEP 249), by their names."""
        return any(kind.__name__ in kinds for kind in type(self.orig).__mro__)


def to_database_error(error: BaseException) -> DatabaseError | None:
    """Return an error of a database as DatabaseError, also one of SQLAlchemy; None for any other."""
    if isinstance(error, DatabaseError):
        return error
    alchemy = sys.modules.get("sqlalchemy.exc")  # where it is not loaded, it has raised nothing
    if alchemy is None or not isinstance(error, alchemy.DBAPIError):
        return None
    return DatabaseError(error.orig, error.statement or "", connection_invalidated=error.connection_invalidated)


_NO_TABLE = "42P01"
"""PostgreSQL's SQLSTATE for a missing table."""

MISSING = "no such database file"
_ELSEWHERE = "move the file away and run `vmsizes migrate`, then `vmsizes ingest seeds`"
IS_NO_FILE = "the path of the database is not a regular file"
_CAUSES: tuple[tuple[str, ...], ...] = (
    (MISSING, "its file is missing"),
    (IS_NO_FILE, "its path leads to no file", "give a file in VMSIZES_DATABASE_URL"),
    ("connection refused", "connection refused"),
    ("no such file or directory", "nothing listens at its socket"),
    ("name or service not known", "the name of its host is not known"),
    ("failed to resolve host", "the name of its host is not known"),
    ("authentication failed", "it refuses the user or the password"),
    ("no password supplied", "it wants a password"),
    ("too many clients", "it has no connection left"),
    ("remaining connection slots", "it has no connection left"),
    ("couldn't get a connection", "it gives no connection in time"),
    ("timeout", "it does not answer in time"),
    ("timed out", "it does not answer in time"),
    ("starting up", "it is starting"),
    ("recovery mode", "it is starting after a crash"),
    ("shutting down", "it is shutting down"),
    ("canceling statement", "it cancelled the query"),
    ("terminating connection", "it closed the connection"),
    ("server closed the connection", "it closed the connection"),
    ("connection reset|ssl error|broken pipe|pipeline aborted", "it closed the connection"),
    ("connection is closed", "it closed the connection"),
    ("connection is lost", "it closed the connection"),
    ('database ".*" does not exist', "there is no such database"),
    ("does not accept connections|not currently accepting", "it accepts no connections"),
    ("not permitted to log in", "its user may not log in"),
    ("pg_hba", "it refuses connections of this user or host"),
    ("unable to open database file: permission denied", "its folder may not be read", "let this user read it"),
    ("permission denied for table webhook", "its user may not read webhooks", "give the URL of the user who migrates"),
    (
        "permission denied",
        "its user may not read the catalog",
        "give its role as VMSIZES_READER_ROLE to `vmsizes migrate`",
    ),
    ("read-only transaction", "it can only be read", "give the URL of the user and server that may write"),
    ("readonly database", "it can only be read", "let this user write the file and its folder"),
    ("database or disk is full|no space left", "its disk is full", "make room"),
    ("unable to open database file", "its file cannot be opened", "let this user read and write it, and its folder"),
    ("database is locked", "another program has locked its file", "end that program, or wait until it has ended"),
    ("malformed", "its file is damaged", f"restore a copy, or {_ELSEWHERE}"),
    ("not a database", "its file is not a database", f"correct VMSIZES_DATABASE_URL, or {_ELSEWHERE}"),
    ("disk i/o error", "its file cannot be read, or its disk is full", "make room, or check the disk"),
    (
        "(table|relation) .* already exists",
        "it has tables of another program, or of no version that is known",
        "give another database in VMSIZES_DATABASE_URL",
    ),
)
"""Patterns for drivers' messages in lowercase, what they mean, and what to do unless that is to start or find the
database; the first match is used."""


def has_no_tables(error: DatabaseError) -> bool:
    """Check whether an error means that the database has none of our tables."""
    message = str(error.orig).lower()
    return getattr(error.orig, "sqlstate", None) == _NO_TABLE or message.startswith("no such table")


def is_damaged(error: DatabaseError) -> bool:
    """Check whether an error means that the file of SQLite is damaged, or cannot be read."""
    return re.search("malformed|not a database|disk i/o error", str(error.orig).lower()) is not None


_LACKING = re.compile(r"no such (?:column|table)|(?:column|relation|table) .* does not exist")


def lacks_what_was_asked(error: DatabaseError) -> bool:
    """Return whether the schema has no such table or column as a statement names."""
    return bool(_LACKING.search(driver_message(error)))


def outage_cause(error: DatabaseError) -> tuple[str, str] | None:
    """Return why the database cannot be reached, and the remedy of that alone; None if it rejected the statement."""
    message = str(error.orig).lower()
    causes = ((meaning, "".join(remedy)) for pattern, meaning, *remedy in _CAUSES if re.search(pattern, message))
    if cause := next(causes, None):
        return cause
    is_outage = error.connection_invalidated or error.is_a("InterfaceError", "OperationalError")
    return ("it does not answer as it should", "") if is_outage else None


def driver_message(error: DatabaseError) -> str:
    """Return the first line of the driver's message, for the log: it may name a host and a user, never a password."""
    return str(error.orig).strip().partition("\n")[0]
