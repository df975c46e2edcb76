"""The list of sources that CSV files cite, and the check that what a row cites is on it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from app.catalog.readings import AUTHORITY, SourceNote
from app.ingest.csv_files import Row, read_rows, sha256_of

Value = TypeVar("Value")

COLUMNS = ("id", "title", "publisher", "kind", "url", "published_on")
OPTIONAL = ("pinned",)


def read_sources(path: Path) -> dict[str, SourceNote]:
    """Read the sources by id; a source's digest is that of this list until a file cites it."""
    digest = sha256_of(path) if path.is_file() else ""
    sources: dict[str, SourceNote] = {}
    for row in read_rows(path, COLUMNS, optional=OPTIONAL):
        source = to_source(row, digest)
        if source.id in sources:
            raise row.bad("id", "is listed twice")
        sources[source.id] = source
    return sources


def to_source(row: Row, digest: str) -> SourceNote:
    """Map one row; only a source without a web address may leave `url` blank, an undated one `published_on`."""
    url = row.optional("url")
    if url is not None and not url.startswith("https://"):
        raise row.bad("url", "must start with https://")
    return SourceNote(
        id=row.text("id"),
        title=row.text("title"),
        publisher=row.text("publisher"),
        kind=row.choice("kind", AUTHORITY),
        url=url,
        published_on=row.optional_day("published_on"),
        sha256=digest,
        pinned=bool(row.cells.get("pinned")) and row.flag("pinned"),
    )


def read_cited(
    path: Path,
    columns: Collection[str],
    sources: Mapping[str, SourceNote],
    to_value: Callable[[Row], Value],
    *,
    optional: Collection[str] = (),
) -> tuple[tuple[Value, ...], tuple[SourceNote, ...]]:
    """Read a file whose rows have a `source` column: the mapped rows, and the sources they cite.

    The digest of a cited source is that of the citing file, since its bytes are what was read of that source.
    """
    cited: dict[str, None] = {}
    values: list[Value] = []
    for row in read_rows(path, columns, optional=optional):
        source = row.text("source")
        if source not in sources:
            raise row.bad("source", "is not in the list of sources; add a row there")
        cited[source] = None
        values.append(to_value(row))
    digest = sha256_of(path)
    return tuple(values), tuple(replace(sources[id_], sha256=digest) for id_ in cited)
