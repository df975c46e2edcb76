"""Reads the list of sources, CSV files whose rows cite them, and those that state facts of sizes, series or GPUs."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

from app.catalog.fields import FIELDS, GPU_FIELDS, FactValue, FieldKind, FieldSpec, SubjectKind, parse_text, too_large
from app.catalog.names import CATEGORIES, size_key
from app.catalog.readings import AUTHORITY, Reading, SourceRow, StatedFact, day_problem, url_problem
from app.errors import BadData
from app.ingest.files import CsvRow, read_rows, sha256_of

Value = TypeVar("Value")

COLUMNS = ("id", "title", "publisher", "kind", "url", "published_on")
OPTIONAL = ("pinned", "retail", "formula")
_STEM = re.compile(r"[a-z0-9][a-z0-9._-]*")
GPU_NAME_COLUMNS = ("vendor", "model", "family", "aliases")

MAY_BE_ZERO = frozenset({"temp_disk_gib", "temp_disk_count", "nvme_disk_gib", "nvme_disk_count", "gpu_memory_gib"})
"""The amounts of which a size may have none; a zero anywhere else is taken for a mistake."""

WRITTEN: Mapping[FieldKind, str] = {
    "text": "a text",
    "list": "a list joined by `; `",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "date": "a date written as YYYY-MM-DD",
    "fraction": "a number, or a fraction such as 1/6",
}
"""How a cell of each kind of field is written."""


def read_sources(path: Path) -> dict[str, SourceRow]:
    """Read the sources by id; the digest of a source is that of this list until a file cites it."""
    digest = sha256_of(path) if path.is_file() else ""
    sources: dict[str, SourceRow] = {}
    for row in read_rows(path, COLUMNS, optional=OPTIONAL):
        source = to_source(row, digest)
        if source.id in sources:
            raise row.error("id", "is listed twice")
        sources[source.id] = source
    return sources


def to_source(row: CsvRow, digest: str) -> SourceRow:
    """Map one row; `url` is blank for a source that is not on the web, `published_on` for an undated one."""
    url = row.optional("url")
    if problem := url_problem(url):
        raise row.error("url", problem)
    published_on = row.optional_date("published_on")
    if problem := day_problem(published_on):
        raise row.error("published_on", problem)
    return SourceRow(
        id=row.text("id"),
        title=row.text("title"),
        publisher=row.text("publisher"),
        kind=row.choice("kind", AUTHORITY),
        url=url,
        published_on=published_on,
        sha256=digest,
        pinned=row.optional_flag("pinned"),
        retail=row.optional_flag("retail"),
        formula=row.cells.get("formula") or None,
    )


def own_source(path: Path, kind: str, title: str) -> SourceRow:
    """Return a file of the reader's own, which cites no sources, as a source: `prices-contoso` for `contoso.csv`.

    Raises BadData where its name makes no id.
    """
    stem = path.name.lower().partition(".csv")[0]
    if not _STEM.fullmatch(stem):
        raise BadData("the name of the file becomes an id: letters, digits, `.`, `_` and `-` only", file=str(path))
    return SourceRow(
        id=stem if stem.startswith(kind) else f"{kind}-{stem}",
        title=f"{title}: {path.name}",
        publisher="own",
        kind="third_party",
        url=None,
        published_on=None,
        sha256=sha256_of(path),
    )


def listed_source(row: CsvRow, sources: Collection[str]) -> str:
    """Return the id of the source that a row cites; raises BadData for one that is not in the list of sources."""
    source = row.text("source")
    if source not in sources:
        raise row.error("source", "is not in the list of sources; add a row there")
    return source


def read_cited(
    path: Path,
    columns: Collection[str],
    sources: Mapping[str, SourceRow],
    to_value: Callable[[CsvRow], Value],
    *,
    optional: Collection[str] = (),
    once: Sequence[str] = (),
) -> tuple[tuple[Value, ...], tuple[SourceRow, ...]]:
    """Read a file with a `source` column; return the mapped rows, and the sources that they cite.

    The digest of a cited source is that of the citing file, since those bytes are what was read of it. Raises BadData
    for a row that has the same values of `once` as an earlier one, and for rows that all state nothing.
    """
    cited: dict[str, None] = {}
    values: list[Value] = []
    first: dict[tuple[Any, ...], int] = {}
    for row in read_rows(path, columns, optional=optional):
        cited[listed_source(row, sources)] = None
        value = to_value(row)
        # A name of a size has several spellings.
        key = tuple(size_key(text) if name == "alias" else text for name in once for text in [getattr(value, name)])
        if key and first.setdefault(key, row.line) != row.line:
            raise row.error(once[0], f"is listed twice: in line {first[key]}, too")
        values.append(value)
    if values and not any(values):
        raise BadData("states nothing: all cells are blank but those that say what its rows are of", file=str(path))
    digest = sha256_of(path)
    return tuple(values), tuple(replace(sources[id_], sha256=digest) for id_ in cited)


def reader_of(
    table: str,
    columns: Collection[str],
    to_value: Callable[[CsvRow], Any],
    *,
    optional: Collection[str] = (),
    once: Sequence[str] = (),
) -> Callable[[Path, Mapping[str, SourceRow]], Reading]:
    """Return a reader of files with a row for each row of a table of the reading."""

    def read(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
        rows: Any
        rows, cited = read_cited(path, columns, sources, to_value, optional=optional, once=once)
        return Reading(sources=cited, **{table: rows})

    return read


def read_facts(path: Path, sources: Mapping[str, SourceRow], *, kind: SubjectKind) -> Reading:
    """Read a file with the columns `id`, `source` and any fields of a kind; a blank cell states nothing.

    Several rows may be of one subject, each with a source of its own. Numbers are in the field's unit.
    """
    rows, cited = read_cited(path, ("id", "source"), sources, lambda row: to_facts(row, kind), optional=FIELDS[kind])
    return Reading(sources=cited, facts=tuple(fact for facts in rows for fact in facts))


def to_facts(row: CsvRow, kind: SubjectKind) -> list[StatedFact]:
    """Map one row to the facts that it states."""
    subject = row.size_name("id") if kind == "size" else row.text("id")
    return [
        StatedFact(
            kind=kind,
            subject=subject,
            field=column,
            value=field_value(row, column, column, field),
            raw=row.cells[column],
            **row.cited(),
        )
        for column, field in FIELDS[kind].items()
        if row.cells.get(column)
    ]


def field_value(row: CsvRow, column: str, name: str, field: FieldSpec) -> FactValue:
    """Return the cell as the value of a field; raises BadData for one that the field cannot have."""
    if field.kind in ("number", "integer"):
        none = row.cells[column] == "0" and name in MAY_BE_ZERO
        number = Decimal(0) if none else row.positive(column)
        if problem := too_large(field.kind, number, field.unit):
            raise row.error(column, problem)
        if field.kind == "number":
            return number
        if number != int(number):
            raise row.error(column, "must be a whole number")
        return int(number)
    if name == "category":
        return row.choice(column, CATEGORIES)
    try:
        value = parse_text(field.kind, row.cells[column])
    except ValueError as error:
        raise row.error(column, f"must be {WRITTEN[field.kind]}") from error
    if isinstance(value, Fraction) and (problem := too_large(field.kind, value)):
        raise row.error(column, problem)
    return value


def load_gpu_rows(path: Path) -> list[dict[str, str]]:
    """Return the cells of a GPU file, with the names of a GPU's first row in all of its rows.

    The document importer recognises GPUs, and the memories that they can have, by them.
    """
    named: dict[str, dict[str, str]] = {}
    rows: list[dict[str, str]] = []
    for row in read_rows(path, ("id", "source"), optional=GPU_FIELDS):
        cells = dict(row.cells)
        names = named.setdefault(row.text("id"), {name: cells.get(name, "") for name in GPU_NAME_COLUMNS})
        rows.append(cells | {name: cells.get(name) or names[name] for name in GPU_NAME_COLUMNS})
    return rows
