"""Runs an ingest in one transaction, and makes a revision of what changed."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from sqlalchemy import Engine, inspect
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from app.catalog.fields import FIELDS
from app.catalog.models import IngestedFile
from app.catalog.readings import Progress, Reading, StatedFact, no_progress
from app.catalog.revisions import latest_revision
from app.catalog.store.ingest import IngestSummary, forget_sources, save_reading
from app.catalog.store.revisions import save_revision
from app.db.engines import analyze
from app.db.writing import waiting_text, write_session
from app.errors import BadData

JsonValue = int | float | bool | str
_DIGITS = 4


def to_json_line(fact: StatedFact) -> dict[str, JsonValue | None]:
    """Return a fact with its unit as a JSON object; a fraction is rounded to four decimals."""
    field = FIELDS[fact.kind][fact.field]
    value: Any = fact.value.isoformat() if isinstance(fact.value, date) else fact.value
    if isinstance(value, Decimal | Fraction):
        value = int(value) if value == int(value) else round(float(value), _DIGITS)
    return {
        "subject": fact.subject,
        "field": fact.field,
        "value": value,
        "unit": field.unit,
        "raw": fact.raw,
        "file": fact.file,
        "line": fact.line,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOutcome:
    """What an ingest did, or would do: the changes of each table, and the revision of the catalog after it."""

    summary: IngestSummary
    revision: dict[str, Any]
    new_revision: bool
    written: bool = True


class IngestOptions(TypedDict):
    """How a reading is written: the arguments of `ingest`, which a refresh passes on."""

    now: datetime
    strict: NotRequired[bool]
    dry_run: NotRequired[bool]
    progress: NotRequired[Progress]


def ingest(
    engine: Engine,
    reading: Reading,
    *,
    now: datetime,
    strict: bool = False,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> IngestOutcome:
    """Write a reading in one transaction: all of it or, where anything is wrong, nothing; raises BadData.

    With `strict` a report of what could not be read is an error, too. A reading that changes nothing makes no
    revision. With `dry_run` everything is done and then rolled back. Waits while another process writes;
    raises WriterBusy where that takes too long.
    """
    with _writing(engine, dry_run=dry_run, progress=progress) as session:
        summary = save_reading(session, reading, today=now.date(), progress=progress)
        if strict and summary.reports:
            first = summary.reports[0]
            raise BadData(
                f"{first.detail} ({len(summary.reports)} reports in all; nothing was written)",
                file=first.file,
                line=first.line,
                column=first.column,
            )
        return _to_outcome(session, summary, now, dry_run=dry_run, progress=progress)


def forget(
    engine: Engine, *sources: str, now: datetime, dry_run: bool = False, progress: Progress = no_progress
) -> IngestOutcome:
    """Delete sources and what only they state, in one transaction; raises NotFound for an unknown one."""
    with _writing(engine, dry_run=dry_run, progress=progress) as session:
        summary = forget_sources(session, sources, today=now.date(), progress=progress)
        return _to_outcome(session, summary, now, dry_run=dry_run, progress=progress)


def _writing(engine: Engine, *, dry_run: bool, progress: Progress) -> AbstractContextManager[Session]:
    return write_session(engine, commit=not dry_run, on_wait=lambda seconds: progress(waiting_text(seconds), None))


def _to_outcome(
    session: Session, summary: IngestSummary, now: datetime, *, dry_run: bool, progress: Progress
) -> IngestOutcome:
    """Save a revision if anything changed, and return the outcome with the newest one."""
    previous = latest_revision(session)
    if previous is not None and not summary.has_changes:
        return IngestOutcome(summary=summary, revision=previous, new_revision=False, written=not dry_run)
    if not dry_run:
        progress("statistics", None)
        analyze(session)
    progress("revision", None)
    revision = save_revision(session, summary.sources, now, summary.checksums, changes=summary.events)
    return IngestOutcome(summary=summary, revision=revision, new_revision=True, written=not dry_run)


def has_catalog(engine: Engine) -> bool:
    """Check whether the database can be reached and has a catalog; a missing SQLite file is not created."""
    file = engine.url.database
    if engine.dialect.name == "sqlite" and not (file and Path(file).is_file()):
        return False
    try:
        return inspect(engine).has_table(IngestedFile.__tablename__)
    except OperationalError:
        return False
