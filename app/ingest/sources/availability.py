"""Reads CSV files of availability: a row for each size, a column for each region, the zones in the cell."""

import csv
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from app.catalog.names import region_key
from app.catalog.readings import AvailabilityRow, Reading, SourceRow
from app.ingest.csv_files import CsvRow, open_csv
from app.ingest.sources.claims import read_cited

COLUMNS = ("size", "source")
_ZONE = re.compile(r"[0-9]{1,3}|[a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,4}")
NO_ZONES = "-"
"""What a cell holds where a size is offered without a choice of zone; it is blank where the region lacks the size."""


def read_availability(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read in which regions and zones sizes are offered; all columns but COLUMNS are regions."""
    with open_csv(path) as file:
        regions = [column.strip() for column in next(csv.reader(file), []) if column.strip() not in COLUMNS]
    rows, cited = read_cited(path, COLUMNS, sources, partial(to_availability, regions=regions), optional=regions)
    return Reading(sources=cited, availability=tuple(entry for entries in rows for entry in entries))


def to_availability(row: CsvRow, regions: list[str]) -> list[AvailabilityRow]:
    """Map one row to an entry for each region that has the size; zones are numbers or ids with spaces between."""
    size, source = row.text("size"), row.text("source")
    return [
        AvailabilityRow(
            size=size,
            region=region_key(region),
            zones=_to_zones(row, region, cell),
            source=source,
            file=row.file,
            line=row.line,
        )
        for region in regions
        if (cell := row.cells[region])
    ]


def _to_zones(row: CsvRow, region: str, cell: str) -> str:
    zones = [] if cell == NO_ZONES else cell.split()
    if not all(map(_ZONE.fullmatch, zones)):
        raise row.error(region, f"must be zones such as 1 2 3 or use1-az1, or {NO_ZONES} for none")
    return " ".join(zones)
