"""Reads inventories of VMs from CSV files: which sizes, where, how many."""

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from app.catalog.names import RegionCode
from app.errors import BadData
from app.ingest.csv_files import CsvRow, open_csv, wrong_width
from app.services.retirement_plan import InventoryItem

HEADERS: Mapping[str, tuple[str, ...]] = {
    "size": ("size", "vm_size", "vmsize", "sku", "instance_type"),
    "region": ("region", "location"),
    "count": ("count", "quantity", "vms", "instances"),
    "id": ("id", "name", "vm", "vm_name", "resource_id"),
}
"""What each column may be called, in any case and with spaces or hyphens: cloud consoles and bills differ."""
REQUIRED = ("size", "region")


def read_inventory(path: Path) -> list[InventoryItem]:
    """Read an inventory; raises BadData naming file, line and column for what is not one."""
    return [_to_item(row) for row in _read_rows(path)]


def _read_rows(path: Path) -> Iterator[CsvRow]:
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        header = _read_header(next(reader, []), str(path))
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise wrong_width(str(path), reader.line_num, len(cells), len(header))
            yield CsvRow(str(path), reader.line_num, dict(zip(header, map(str.strip, cells), strict=True)))


def _read_header(cells: list[str], file: str) -> list[str]:
    """Return the columns of a header by their own names; raises BadData for one that is unknown, twice or missing."""
    columns: dict[str, str] = {}
    for cell in cells:
        key = re.sub(r"[^a-z0-9]+", "_", cell.lower()).strip("_")
        column = next((name for name, others in HEADERS.items() if key in others), None)
        if column is None:
            known = "; ".join(f"{name} ({', '.join(others[1:])})" for name, others in HEADERS.items())
            raise BadData(f"is unknown; the columns are {known}", file=file, line=1, column=cell)
        if column in columns:
            raise BadData(f"is the {column}, as {columns[column]!r} is", file=file, line=1, column=cell)
        columns[column] = cell
    for name in REQUIRED:
        if name not in columns:
            raise BadData(
                f"is missing from the header; it may be called {', '.join(HEADERS[name])}",
                file=file,
                line=1,
                column=name,
            )
    return list(columns)


def _to_item(row: CsvRow) -> InventoryItem:
    count = row.integer("count") if row.cells.get("count") else 1
    if count == 0:
        raise row.error("count", "must be at least 1")
    return InventoryItem(
        size=row.text("size"), region=RegionCode(row.text("region")), count=count, id=row.cells.get("id") or None
    )
