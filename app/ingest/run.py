"""One ingest: take in a reading as one transaction, and say what changed."""

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, inspect
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.catalog.fields import FIELDS
from app.catalog.models import IngestedFile
from app.catalog.readings import Progress, Reading, StatedFact, no_progress
from app.catalog.store.ingest import IngestSummary, forget_source, save_reading
from app.catalog.store.revisions import latest_revision, save_revision
from app.db.engines import analyze, write_session
from app.errors import BadData

JsonValue = int | float | bool | str
_DIGITS = 4


def to_json_line(statement: StatedFact) -> dict[str, JsonValue | None]:
    """Write a statement with its unit; a fraction is a number of four digits, a whole number has none."""
    field = FIELDS[statement.kind][statement.field]
    return {
        "subject": statement.subject,
        "field": statement.field,
        "value": _json_value(statement.value),
        "unit": field.unit,
        "raw": statement.raw,
        "file": statement.file,
        "line": statement.line,
    }


def _json_value(value: int | Decimal | Fraction | str | bool | date) -> JsonValue:  # a value, not a switch
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal | Fraction):
        return int(value) if value == int(value) else round(float(value), _DIGITS)
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """What an ingest did, or would do: the tally of each table, and the revision that holds then."""

    summary: IngestSummary
    revision: dict[str, Any]
    new_revision: bool
    written: bool = True


def ingest(
    engine: Engine,
    reading: Reading,
    *,
    now: datetime,
    strict: bool = False,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> IngestOutcome:
    """Write a reading as one transaction: all of it, or, where anything is wrong, nothing; raises BadData.

    With `strict` anything that could not be read is wrong, too. What changes nothing makes no new revision. With
    `dry_run` the same is done and said, and then rolled back.
    """
    with write_session(engine, commit=not dry_run) as session:
        tally = save_reading(session, reading, today=now.date(), progress=progress)
        if strict and tally.reports:
            first = tally.reports[0]
            raise BadData(
                f"{first.detail} ({len(tally.reports)} reports in all; nothing was written)",
                file=first.file,
                line=first.line,
                column=first.column,
            )
        return _finish(session, tally, now, dry_run=dry_run, progress=progress)


def forget(
    engine: Engine, source: str, *, now: datetime, dry_run: bool = False, progress: Progress = no_progress
) -> IngestOutcome:
    """Take away a source and what only it said, as one transaction; raises NotFound for a source that is not there."""
    with write_session(engine, commit=not dry_run) as session:
        tally = forget_source(session, source, today=now.date(), progress=progress)
        return _finish(session, tally, now, dry_run=dry_run, progress=progress)


def _finish(
    session: Session, summary: IngestSummary, now: datetime, *, dry_run: bool, progress: Progress
) -> IngestOutcome:
    """Make the revision, if anything is different now."""
    before = latest_revision(session)
    if before is not None and not summary.has_changes:
        return IngestOutcome(summary=summary, revision=before, new_revision=False, written=not dry_run)
    if not dry_run:
        progress("statistics", None)
        analyze(session)
    progress("revision", None)
    revision = save_revision(session, summary.sources, now, summary.checksums)
    return IngestOutcome(summary=summary, revision=revision, new_revision=True, written=not dry_run)


def has_catalog(engine: Engine) -> bool:
    """Whether the database can be asked and has the tables of a catalog; a file that is not there is not made."""
    file = engine.url.database
    if engine.dialect.name == "sqlite" and not (file and Path(file).is_file()):
        return False
    try:
        return inspect(engine).has_table(IngestedFile.__tablename__)
    except OperationalError:
        return False
