"""The list of sources that CSV files cite, and the check that what a row cites is on it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from app.catalog.fields import FIELDS, GPU_FIELDS, FactValue, FieldSpec, SubjectKind, parse_text
from app.catalog.readings import AUTHORITY, Reading, SourceRow, StatedFact
from app.ingest.csv_files import CsvRow, read_rows, sha256_of

Value = TypeVar("Value")

COLUMNS = ("id", "title", "publisher", "kind", "url", "published_on")
OPTIONAL = ("pinned",)


def read_sources(path: Path) -> dict[str, SourceRow]:
    """Read the sources by id; a source's digest is that of this list until a file cites it."""
    digest = sha256_of(path) if path.is_file() else ""
    sources: dict[str, SourceRow] = {}
    for row in read_rows(path, COLUMNS, optional=OPTIONAL):
        source = to_source(row, digest)
        if source.id in sources:
            raise row.error("id", "is listed twice")
        sources[source.id] = source
    return sources


def to_source(row: CsvRow, digest: str) -> SourceRow:
    """Map one row; only a source without a web address may leave `url` blank, an undated one `published_on`."""
    url = row.optional("url")
    if url is not None and not url.startswith("https://"):
        raise row.error("url", "must start with https://")
    return SourceRow(
        id=row.text("id"),
        title=row.text("title"),
        publisher=row.text("publisher"),
        kind=row.choice("kind", AUTHORITY),
        url=url,
        published_on=row.optional_date("published_on"),
        sha256=digest,
        pinned=bool(row.cells.get("pinned")) and row.flag("pinned"),
    )


def read_cited(
    path: Path,
    columns: Collection[str],
    sources: Mapping[str, SourceRow],
    to_value: Callable[[CsvRow], Value],
    *,
    optional: Collection[str] = (),
) -> tuple[tuple[Value, ...], tuple[SourceRow, ...]]:
    """Read a file whose rows have a `source` column: the mapped rows, and the sources they cite.

    The digest of a cited source is that of the citing file, since its bytes are what was read of that source.
    """
    cited: dict[str, None] = {}
    values: list[Value] = []
    for row in read_rows(path, columns, optional=optional):
        source = row.text("source")
        if source not in sources:
            raise row.error("source", "is not in the list of sources; add a row there")
        cited[source] = None
        values.append(to_value(row))
    digest = sha256_of(path)
    return tuple(values), tuple(replace(sources[id_], sha256=digest) for id_ in cited)


def read_subjects(path: Path, kind: SubjectKind, sources: Mapping[str, SourceRow]) -> Reading:
    """Read a file whose columns are `id`, `source` and any fields of the kind; a blank cell states nothing."""
    statements, notes = read_cited(
        path, ("id", "source"), sources, lambda row: to_statements(row, kind), optional=FIELDS[kind]
    )
    return Reading(sources=notes, facts=tuple(found for row in statements for found in row))


def to_statements(row: CsvRow, kind: SubjectKind) -> list[StatedFact]:
    """Map one row to what it states of its subject."""
    subject, source = row.text("id"), row.text("source")
    return [
        StatedFact(
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


def _to_value(row: CsvRow, column: str, field: FieldSpec) -> FactValue:
    if field.kind in ("number", "integer"):
        number = row.positive(column)
        return number if field.kind == "number" else _to_integer(row, column, number)
    try:
        return parse_text(field.kind, row.cells[column])
    except ValueError as error:
        raise row.error(column, f"must be a {field.kind}") from error


def _to_integer(row: CsvRow, column: str, number: Decimal) -> int:
    if number != int(number):
        raise row.error(column, "must be a whole number")
    return int(number)


GPU_NAME_COLUMNS = ("vendor", "model", "family", "aliases")


def read_gpus(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read what each source says of each GPU; several rows may speak of one GPU, each with a source of its own."""
    return read_subjects(path, "gpu", sources)


def load_gpu_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows with the GPU's names in each: the document importer recognises GPUs and their memories by them.

    Only a GPU's first row needs to give its names; the rows of other sources go without.
    """
    named: dict[str, dict[str, str]] = {}
    rows: list[dict[str, str]] = []
    for row in read_rows(path, ("id", "source"), optional=GPU_FIELDS):
        cells = dict(row.cells)
        names = named.setdefault(row.text("id"), {name: cells.get(name, "") for name in GPU_NAME_COLUMNS})
        rows.append(cells | {name: cells.get(name) or names[name] for name in GPU_NAME_COLUMNS})
    return rows


def read_series(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read what each source says of each series."""
    return read_subjects(path, "series", sources)


def read_sizes(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read what each source says of each size; a column is a field as the table of fields has it, in its unit."""
    return read_subjects(path, "size", sources)
