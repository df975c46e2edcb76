"""CSV files with one subject a row and one field a column: every filled cell is a statement."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from app.catalog.fields import FIELDS, FactValue, Field, SubjectKind, from_text
from app.catalog.readings import Reading, SourceNote, Statement
from app.ingest.csv_files import Row
from app.ingest.sources.claims import read_cited


def read_subjects(path: Path, kind: SubjectKind, sources: Mapping[str, SourceNote]) -> Reading:
    """Read a file whose columns are `id`, `source` and any fields of the kind; a blank cell states nothing."""
    statements, notes = read_cited(
        path, ("id", "source"), sources, lambda row: to_statements(row, kind), optional=FIELDS[kind]
    )
    return Reading(sources=notes, statements=tuple(found for row in statements for found in row))


def to_statements(row: Row, kind: SubjectKind) -> list[Statement]:
    """Map one row to what it states of its subject."""
    subject, source = row.text("id"), row.text("source")
    return [
        Statement(
            kind=kind,
            subject=subject,
            field=column,
            value=_to_value(row, column, field),
            raw=row.cells[column],
            file=row.file,
            line=row.line,
            source=source,
        )
        for column, field in FIELDS[kind].items()
        if row.cells.get(column)
    ]


def _to_value(row: Row, column: str, field: Field) -> FactValue:
    if field.kind in ("number", "integer"):
        number = row.positive(column)
        return number if field.kind == "number" else _to_whole(row, column, number)
    try:
        return from_text(field.kind, row.cells[column])
    except ValueError as error:
        raise row.bad(column, f"must be a {field.kind}") from error


def _to_whole(row: Row, column: str, number: Decimal) -> int:
    if number != int(number):
        raise row.bad(column, "must be a whole number")
    return int(number)
