"""Reads the CSV files of regions, aliases, corrections, benchmarks and availability."""

import csv
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path

from app.catalog.fields import FIELDS, parse_text
from app.catalog.names import region_key, size_key
from app.catalog.providers import provider_of_region
from app.catalog.readings import (
    AliasRow,
    AvailabilityRow,
    BenchmarkRow,
    CorrectionRow,
    Reading,
    RegionRow,
    SourceRow,
)
from app.catalog.regions import CONTINENTS
from app.ingest.csv_files import CsvRow, open_csv, read_rows
from app.ingest.sources.claims import read_cited

REGION_COLUMNS = ("code", "name", "geography", "source")
PLACE_COLUMNS = ("place", "country", "continent", "latitude", "longitude")
"""The columns that a file of regions may have: where they are."""
_COUNTRY, _DEGREES = re.compile(r"[A-Z]{2}"), re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,6})?")


def read_regions(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read the regions, and the sources that list them."""
    rows, notes = read_cited(path, REGION_COLUMNS, sources, to_region, optional=PLACE_COLUMNS)
    return Reading(sources=notes, regions=rows)


def to_region(row: CsvRow) -> RegionRow:
    """Map one row; the code is normalised, so that `West Europe` is read as `westeurope`."""
    code, provider = region_key(row.text("code")), provider_of_region(row.text("code"))
    if not provider.region_code.fullmatch(code):
        raise row.error("code", f"must be {provider.region_code_hint}")
    country, continent = row.cells.get("country"), row.cells.get("continent")
    if country and not _COUNTRY.fullmatch(country):
        raise row.error("country", "must be two capital letters (ISO 3166-1), such as DE")
    return RegionRow(
        code=code,
        name=row.text("name"),
        geography=row.optional("geography"),
        provider=provider.id,
        place=row.cells.get("place") or None,
        country=country or None,
        continent=row.choice("continent", CONTINENTS) if continent else None,
        latitude=_degrees(row, "latitude", 90),
        longitude=_degrees(row, "longitude", 180),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )


def _degrees(row: CsvRow, column: str, most: int) -> float | None:
    """Return the cell as degrees, north and east above zero; None where it is blank or there is no such column."""
    cell = row.cells.get(column)
    if not cell:
        return None
    if not _DEGREES.fullmatch(cell) or abs(Decimal(cell)) > most:
        raise row.error(column, f"must be degrees from -{most} to {most}, written like -33.87")
    return float(cell)


ALIAS_COLUMNS = ("alias", "size", "source", "reason")


def read_aliases(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read the aliases, and the sources that use them."""
    rows, notes = read_cited(path, ALIAS_COLUMNS, sources, to_alias)
    return Reading(sources=notes, aliases=rows)


def to_alias(row: CsvRow) -> AliasRow:
    """Map one row; a name cannot be an alias of itself."""
    alias, size = row.text("alias"), row.size_name("size")
    if size_key(alias) == size_key(size):
        raise row.error("alias", "is the same name as its size")
    return AliasRow(
        alias=alias, size=size, source=row.text("source"), reason=row.text("reason"), file=row.file, line=row.line
    )


BENCHMARK_COLUMNS = ("id", "series", "scope", "workload", "metric", "value", "unit", "comparison", "source")
SCOPES = ("gpu", "vm", "rack")


def read_benchmarks(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read the published results, and the sources that publish them."""
    rows, notes = read_cited(path, BENCHMARK_COLUMNS, sources, to_benchmark)
    return Reading(sources=notes, benchmarks=rows)


def to_benchmark(row: CsvRow) -> BenchmarkRow:
    """Map one row; `comparison` is what the result is measured against, if anything."""
    return BenchmarkRow(
        id=row.text("id"),
        series=row.text("series"),
        scope=row.choice("scope", SCOPES),
        workload=row.text("workload"),
        metric=row.text("metric"),
        value=row.positive("value"),
        unit=row.text("unit"),
        comparison=row.optional("comparison"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )


CORRECTION_COLUMNS = ("kind", "subject", "field", "source", "value", "reason")


def read_corrections(path: Path, _sources: Mapping[str, SourceRow]) -> Reading:
    """Read the corrections; `source` is the id of the corrected source, which need not be in the list of sources."""
    return Reading(corrections=tuple(to_correction(row) for row in read_rows(path, CORRECTION_COLUMNS)))


def to_correction(row: CsvRow) -> CorrectionRow:
    """Map one row; the value must be valid for the field."""
    kind = row.choice("kind", tuple(FIELDS))
    name, value = row.choice("field", tuple(FIELDS[kind])), row.text("value")
    try:
        parse_text(FIELDS[kind][name].kind, value)
    except ValueError as error:
        raise row.error("value", f"must be a {FIELDS[kind][name].kind}") from error
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


# Availability: a row for each size, a column for each region, the zones in the cell

AVAILABILITY_COLUMNS = ("size", "source")
_ZONE = re.compile(r"[0-9]{1,3}|[a-z0-9]{1,20}(?:-[a-z0-9]{1,20}){1,4}")
NO_ZONES = "-"
"""What a cell holds where a size is offered without a choice of zone; it is blank where the region lacks the size."""


def read_availability(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read in which regions and zones sizes are offered; all columns but AVAILABILITY_COLUMNS are regions."""
    with open_csv(path) as file:
        regions = [
            column.strip() for column in next(csv.reader(file), []) if column.strip() not in AVAILABILITY_COLUMNS
        ]
    rows, cited = read_cited(
        path, AVAILABILITY_COLUMNS, sources, partial(to_availability, regions=regions), optional=regions
    )
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
