"""Prices: US dollars per hour of a size in a region, by operating system and purchase model."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.facts import PriceRow, Reading, SourceNote
from app.catalog.names import region_key
from app.ingest.csv_rows import Row
from app.ingest.sources.sources import read_cited

COLUMNS = ("size", "region", "os", "purchase", "usd_per_hour", "valid_from", "approximate_date", "source")
SYSTEMS = ("linux", "windows")
PURCHASES = ("on_demand", "spot")


def read_prices(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the prices in the order of the file; an unknown price is a row left out, never a zero."""
    rows, notes = read_cited(path, COLUMNS, sources, to_price)
    return Reading(sources=notes, prices=rows)


def to_price(row: Row) -> PriceRow:
    """Map one row; a name that is an alias stays as it is written."""
    return PriceRow(
        size=row.text("size"),
        region=region_key(row.text("region")),
        os=row.choice("os", SYSTEMS),
        purchase=row.choice("purchase", PURCHASES),
        usd_per_hour=row.positive("usd_per_hour"),
        valid_from=row.day("valid_from"),
        approximate_date=row.flag("approximate_date"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )
