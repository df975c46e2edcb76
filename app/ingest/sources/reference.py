"""Corrections: a source's word that is known to be wrong, the value to take instead, and why."""

from pathlib import Path

from app.catalog.fields import FIELDS, from_text
from app.catalog.readings import CorrectionRow, Reading
from app.ingest.csv_files import Row, read_rows

CORRECTION_COLUMNS = ("kind", "subject", "field", "source", "value", "reason")


def read_corrections(path: Path) -> Reading:
    """Read the corrections; `source` is the id of the source that is corrected, whichever file brings it."""
    return Reading(corrections=tuple(to_correction(row) for row in read_rows(path, CORRECTION_COLUMNS)))


def to_correction(row: Row) -> CorrectionRow:
    """Map one row; the value must be one that the field can hold."""
    kind = row.choice("kind", tuple(FIELDS))
    name, value = row.choice("field", tuple(FIELDS[kind])), row.text("value")
    try:
        from_text(FIELDS[kind][name].kind, value)
    except ValueError as error:
        raise row.bad("value", f"must be a {FIELDS[kind][name].kind}") from error
    return CorrectionRow(
        kind=kind,
        subject=row.text("subject"),
        field=name,
        source=row.text("source"),
        value=value,
        reason=row.text("reason"),
        file=row.file,
        line=row.line,
    )
