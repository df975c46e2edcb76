"""Reads inventories of VMs: which sizes, where, how many; from CSV files, or as it is copied from a spreadsheet."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
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
SEPARATORS = ",;\t"
"""What separates cells, whichever the header has most of: spreadsheets copy tabs, and some save semicolons."""


def read_inventory(path: Path) -> list[InventoryItem]:
    """Read an inventory from a file; raises BadData naming file, line and column for what is not one."""
    with open_csv(path) as file:
        return [_to_item(row) for row in _rows(file, str(path))]


def parse_inventory(text: str, name: str) -> list[InventoryItem]:
    """Read an inventory from a text, which errors call by a name; raises BadData as `read_inventory`."""
    try:
        return [_to_item(row) for row in _rows(io.StringIO(text, newline=""), name)]
    except csv.Error as error:
        raise BadData(f"is not CSV: {error}", file=name) from error


def _rows(lines: Iterable[str], name: str) -> Iterator[CsvRow]:
    remaining = iter(lines)
    first = next(remaining, "")
    reader = csv.reader(chain([first], remaining), strict=True, delimiter=max(SEPARATORS, key=first.count))
    header = _read_header(next(reader, []), name)
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(header):
            raise wrong_width(name, reader.line_num, len(cells), len(header))
        yield CsvRow(name, reader.line_num, dict(zip(header, map(str.strip, cells), strict=True)))


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
