"""Regions: codes, display names and geographies."""

import re
from collections.abc import Mapping
from pathlib import Path

from app.catalog.names import region_key
from app.catalog.readings import Reading, RegionRow, SourceNote
from app.ingest.csv_files import Row
from app.ingest.sources.claims import read_cited

_CODE = re.compile(r"[a-z0-9]+")
REGION_COLUMNS = ("code", "name", "geography", "source")


def read_regions(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the regions and the sources that name them."""
    rows, notes = read_cited(path, REGION_COLUMNS, sources, to_region)
    return Reading(sources=notes, regions=rows)


def to_region(row: Row) -> RegionRow:
    """Map one row; the code is normalised, so `West Europe` is taken, too."""
    code = region_key(row.text("code"))
    if not _CODE.fullmatch(code):
        raise row.bad("code", "must be letters and digits, written like westeurope")
    return RegionRow(
        code=code,
        name=row.text("name"),
        geography=row.optional("geography"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )
