"""Why a database does not answer, in words that tell no host, no user and no password."""

import re

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

_NO_TABLE = "42P01"
"""What PostgreSQL says of a table that is not there (SQLSTATE)."""

_CAUSES = (
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
    ("shutting down", "it is shutting down"),
    ("terminating connection", "it closed the connection"),
    ("server closed the connection", "it closed the connection"),
    ("connection is closed", "it closed the connection"),
    ("connection is lost", "it closed the connection"),
    ('database ".*" does not exist', "there is no such database"),
    ("permission denied", "its user may not read the catalog"),
    ("unable to open database file", "its file cannot be opened"),
    ("database is locked", "another program has locked its file"),
    ("malformed", "its file is damaged"),
    ("not a database", "its file is no database"),
    ("disk i/o error", "its file cannot be read"),
)
"""What drivers say, in small letters (a pattern), and what that means; the first that is found counts."""


def has_no_tables(error: DBAPIError) -> bool:
    """Whether the database answers, but has no tables of ours."""
    said = str(error.orig).lower()
    return getattr(error.orig, "sqlstate", None) == _NO_TABLE or said.startswith("no such table")


def cause_of(error: DBAPIError) -> str | None:
    """Why the database cannot be asked; None where it can, and the question is what it does not take."""
    said = str(error.orig).lower()
    cause = next((meaning for words, meaning in _CAUSES if re.search(words, said)), None)
    if cause is None and (error.connection_invalidated or isinstance(error, InterfaceError | OperationalError)):
        return "it does not answer as it should"
    return cause


def first_line(error: DBAPIError) -> str:
    """What the driver says, for who runs the service: it may name a host and a user, never a password."""
    return str(error.orig).strip().partition("\n")[0]
