"""Reads CSV files of managed disks, and of their prices."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from app.catalog.disks import DISK_TYPES, PRICED_PER, REDUNDANCIES
from app.catalog.names import region_key
from app.catalog.readings import DiskPriceRow, DiskRow, Reading, SourceRow
from app.ingest.csv_files import CsvRow
from app.ingest.sources.claims import Value, read_cited

COLUMNS = (
    *("id", "type", "redundancy", "size", "sku", "min_gib", "max_gib", "max_iops", "max_mbps"),
    *("burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops"),
    *("max_shares", "source"),
)
PRICE_COLUMNS = ("disk", "region", "per", "usd", "valid_from", "source")

_BILLED_BY_GIB = ("min_gib", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops")
"""What a disk of any size must have, and one of a size must not."""
_INTEGERS = ("max_iops", "max_mbps", "burst_iops", "burst_mbps", "max_shares")


def read_disks(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read the disks, and the sources that describe them; raises BadData for a disk that is listed twice."""
    rows, cited = read_cited(path, COLUMNS, sources, _once(to_disk, ("id",)))
    return Reading(sources=cited, disks=rows)


def to_disk(row: CsvRow) -> DiskRow:
    """Map one row; a disk has a `size`, or else the figures by which capacity and performance are billed."""
    size = row.optional("size")
    for column in _BILLED_BY_GIB:
        if bool(row.cells[column]) == bool(size):
            detail = "must be blank for a disk with a size" if size else "a disk without a size needs it"
            raise row.error(column, detail)
    return DiskRow(
        id=row.text("id").lower(),
        type=row.choice("type", DISK_TYPES),
        redundancy=row.choice("redundancy", REDUNDANCIES),
        size=size,
        sku=row.text("sku"),
        max_gib=row.integer("max_gib"),
        **{name: _optional_integer(row, name) for name in (*_INTEGERS, *_BILLED_BY_GIB[:-1])},
        mbps_per_iops=row.positive("mbps_per_iops") if not size else None,
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )


def read_disk_prices(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read the prices of disks, and the sources that list them; raises BadData for a price that is listed twice."""
    rows, cited = read_cited(
        path, PRICE_COLUMNS, sources, _once(to_disk_price, ("disk", "region", "per", "valid_from", "source"))
    )
    return Reading(sources=cited, disk_prices=rows)


def to_disk_price(row: CsvRow) -> DiskPriceRow:
    """Map one row; a price that is not known is a missing row, never a zero."""
    return DiskPriceRow(
        disk=row.text("disk").lower(),
        region=region_key(row.text("region")),
        per=row.choice("per", PRICED_PER),
        usd=row.usd("usd"),
        valid_from=row.date("valid_from"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )


def _optional_integer(row: CsvRow, column: str) -> int | None:
    return row.integer(column) if row.cells[column] else None


def _once(to_value: Callable[[CsvRow], Value], key: tuple[str, ...]) -> Callable[[CsvRow], Value]:
    """Return the same mapping of rows; it raises BadData for a row with the key of an earlier one."""
    seen: set[tuple[Any, ...]] = set()

    def mapped(row: CsvRow) -> Value:
        value = to_value(row)
        of_row = tuple(getattr(value, name) for name in key)
        if of_row in seen:
            raise row.error(key[0], "is listed twice")
        seen.add(of_row)
        return value

    return mapped
