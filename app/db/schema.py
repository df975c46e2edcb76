"""The schema of a database by its revision, and whether this program can read it or write to it."""

from functools import cache

from app import shipped_folder
from app.db.statements import BoundStatement, Reader, Statement, fetch

MIGRATIONS = shipped_folder("migrations")


class NewerSchema(Exception):
    """A newer version of the program has migrated the database further than this one knows."""


class OlderSchema(Exception):
    """The database is not migrated to the schema of this program yet; says what to do."""


_REVISION = Statement("select version_num from alembic_version")


def schema_revision(reader: Reader) -> str:
    """Return the database's revision, `0000` after `alembic downgrade base`; does not load Alembic."""
    rows = fetch(reader, BoundStatement(_REVISION))
    return str(rows[0][0]) if rows else "0000"


def newer_schema_text(revision: str) -> str:
    """Return what a schema that this program does not know means."""
    return f"The database has schema {revision}; this version knows up to {newest_revision()}."


@cache
def newest_revision() -> str:
    """Return the newest revision of this program; file names start with the revision."""
    return max(file.name.partition("_")[0] for file in (MIGRATIONS / "versions").glob("[0-9]*.py"))


def refuse_newer(revision: str | None) -> None:
    """Raise NewerSchema for a revision that this program does not know: what that added would not be written."""
    if revision is not None and revision > newest_revision():
        raise NewerSchema(newer_schema_text(revision))


def refuse_older(revision: str) -> None:
    """Raise OlderSchema for a revision before that of this program, which would not find what it asks for."""
    if revision < newest_revision():
        needed = f"and this program needs {newest_revision()}; run `vmsizes migrate`."
        raise OlderSchema(f"The database has the schema {revision}, {needed}")
