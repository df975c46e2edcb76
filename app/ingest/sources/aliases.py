"""Aliases: other names under which a source knows a size."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.names import size_key
from app.catalog.readings import AliasRow, Reading, SourceNote
from app.ingest.csv_files import Row
from app.ingest.sources.claims import read_cited

ALIAS_COLUMNS = ("alias", "size", "source", "reason")


def read_aliases(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the aliases and the sources that use them."""
    rows, notes = read_cited(path, ALIAS_COLUMNS, sources, to_alias)
    return Reading(sources=notes, aliases=rows)


def to_alias(row: Row) -> AliasRow:
    """Map one row; a name cannot be an alias of itself."""
    alias, size = row.text("alias"), row.text("size")
    if size_key(alias) == size_key(size):
        raise row.bad("alias", "is the same name as its size")
    return AliasRow(
        alias=alias, size=size, source=row.text("source"), reason=row.text("reason"), file=row.file, line=row.line
    )
