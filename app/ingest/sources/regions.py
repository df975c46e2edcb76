"""Regions: codes, display names and geographies."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.facts import Reading, RegionRow, SourceNote
from app.catalog.names import region_key
from app.ingest.csv_rows import Row
from app.ingest.sources.sources import read_cited

COLUMNS = ("code", "name", "geography", "source")


def read_regions(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the regions and the sources that name them."""
    rows, notes = read_cited(path, COLUMNS, sources, to_region)
    return Reading(sources=notes, regions=rows)


def to_region(row: Row) -> RegionRow:
    """Map one row; the code is normalised, so `West Europe` is taken, too."""
    return RegionRow(
        code=region_key(row.text("code")),
        name=row.text("name"),
        geography=row.optional("geography"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )
