"""Reads inventories of VMs: which sizes, where, how many; from the CSV and JSON that consoles and scripts write.

What lists VMs also has columns about disks, addresses and states: those that an inventory has no use for are ignored.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from app.catalog.names import RegionCode
from app.converters import load_json, lower_keys
from app.errors import BadData
from app.ingest.files import CsvRow, describe_json, not_csv, open_csv, separator_of, wrong_width
from app.nearest import closest_spellings, did_you_mean
from app.services.retirements import InventoryItem
from app.validation import check_encodable

HEADERS: Mapping[str, tuple[str, ...]] = {
    "size": ("vm size", "virtual machine size", "hardware profile vm size", "size", "instance type", "vm sku", "sku"),
    "region": ("region", "location", "vm region", "vm location", "resource location"),
    "count": ("count", "quantity", "vms", "vm count", "instances"),
    "purchase": ("purchase", "priority", "capacity type", "market type"),
    "id": ("id", "vm name", "virtual machine name", "name", "vm", "virtual machine", "resource name", "resource id"),
}
"""What each column may be called, in any case, with or without blanks, `_` and `-`, and after `Az` or `Azure`.

Of several in one file the first of these counts: `Size` beside `VMSize` is that of something else.
"""
REQUIRED = ("size", "region")
_PREAMBLE = re.compile(r"#type\b|sep=", re.IGNORECASE)
"""Lines before the header: the type that PowerShell's Export-Csv writes, and the separator for Excel."""
_LISTS = ("value", "data")
"""Where the answers of Azure's API and of Resource Graph have their list."""


def read_inventory(path: Path) -> list[InventoryItem]:
    """Read an inventory from a file; raises BadData naming file, line and column for what is not one."""
    with open_csv(path) as file:
        return [_to_item(row) for row in _rows(file, str(path))]


def parse_inventory(text: str, name: str) -> Iterator[InventoryItem]:
    """Yield the items of a text, which errors call by a name; raises BadData as `read_inventory`."""
    return (_to_item(row) for row in _rows(io.StringIO(text, newline=""), name))


def _rows(lines: Iterable[str], name: str) -> Iterator[CsvRow]:
    remaining = iter(lines)
    first, skipped = next(remaining, ""), 0
    if first.lstrip()[:1] in ("[", "{"):
        yield from _json_rows("".join(chain([first], remaining)), name)
        return
    while _PREAMBLE.match(first.lstrip('"')):
        first, skipped = next(remaining, ""), skipped + 1
    reader = csv.reader(chain([first], remaining), strict=True, delimiter=separator_of(first))
    line = skipped
    try:
        header = next(reader, [])
        columns = _find_columns(header, name, skipped + 1)
        line += reader.line_num
        for cells in reader:
            line = skipped + reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise wrong_width(name, line, len(cells), len(header))
            yield CsvRow(name, line, {column: cells[at].strip() for column, at in columns.items()})
    except csv.Error as error:
        raise not_csv(error, name, line + 1) from error


MAX_COLUMNS = 1000
"""Of an inventory: exports of tools have some hundred."""


def _find_columns(header: list[str], file: str, line: int) -> Mapping[str, int]:
    """Return where each column of an inventory is in a header; raises BadData for one that is twice or missing."""
    if len(header) > MAX_COLUMNS:
        raise BadData(f"the header has {len(header):,} columns; {MAX_COLUMNS:,} are allowed", file=file, line=line)
    keys = [re.sub(r"[^a-z0-9]", "", cell.lower()) for cell in header]
    keys = [re.sub(r"^(azure|az)(?=.)", "", key) for key in keys]
    columns: dict[str, int] = {}
    for column, names in HEADERS.items():
        key = next((key for key in (name.replace(" ", "") for name in names) if key in keys), None)
        if key is not None:
            columns[column] = at = keys.index(key)
            if key in keys[at + 1 :]:
                again = header[keys.index(key, at + 1)]
                raise BadData(f"is the {column}, as {header[at]!r} is", file=file, line=line, column=again)
        elif column in REQUIRED:
            detail = f"is missing from the header; it may be called {', '.join(names)}"
            raise BadData(detail, file=file, line=line, column=column)
    if "count" not in columns:
        _refuse_typos(header, file, line)
    return columns


def _refuse_typos(names: Iterable[str], file: str, line: int) -> None:
    """Raise BadData for a typo in the name of the count, without which a line is a single VM."""
    for name in names:
        if near := closest_spellings(name, HEADERS["count"]):
            raise BadData(f"is unknown; {did_you_mean(near)}", file=file, line=line, column=name)


def _json_rows(text: str, name: str) -> Iterator[CsvRow]:
    """Yield a row for each VM in what `az vm list`, Get-AzVM, the API or Resource Graph print as JSON."""
    listed = load_json(text, name, check_encodable)
    if isinstance(listed, dict):
        listed = next((listed[key] for key in _LISTS if key in listed), [listed])
    if not isinstance(listed, list):
        raise BadData("is JSON without a list of VMs", file=name)
    checked: set[str] = set()
    for number, vm in enumerate(listed, start=1):
        cells = _vm_cells(vm) if isinstance(vm, dict) else {}
        incomplete = not all(map(cells.get, REQUIRED)) and isinstance(vm, dict)
        if incomplete and (other := describe_json(vm.keys() - {"hardwareProfile"})):
            raise BadData(other, file=name)
        for column in REQUIRED:
            if not cells.get(column):
                where = "hardwareProfile.vmSize" if column == "size" else "location"
                raise BadData(f"VM {number} has no {column}, which is {where} in `az vm list`", file=name)
        if "count" not in cells and (names := vm.keys() - checked):
            _refuse_typos(names, name, number)
            checked |= names
        yield CsvRow(name, number, cells)


def _vm_cells(vm: Mapping[str, Any]) -> Mapping[str, str]:
    fields = lower_keys(vm)
    fields |= lower_keys(fields.get("properties"))
    fields |= {f"hardwareprofile{key}": value for key, value in lower_keys(fields.get("hardwareprofile")).items()}
    if "name" in fields:
        fields.pop("id", None)  # a path of 150 characters, where people know their VMs by name
    cells = {
        column: fields[keys[0]]
        for column, names in HEADERS.items()
        if (keys := [key for name in names if (key := name.replace(" ", "")) in fields])
    }
    # A count that is no whole number is an error as in a CSV file; elsewhere what is neither text nor number is absent.
    return {
        column: _to_cell(value) for column, value in cells.items() if isinstance(value, str | int) or column == "count"
    }


def _to_cell(value: Any) -> str:
    """Return a value of JSON as a cell; 4.0 is the whole number 4."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value.strip() if isinstance(value, str) else json.dumps(value)


def _to_item(row: CsvRow) -> InventoryItem:
    count = row.integer("count", least=1) if row.cells.get("count") else 1
    return InventoryItem(
        size=row.text("size"),
        region=RegionCode(row.text("region")),
        count=count,
        id=row.cells.get("id") or None,
        purchase=row.cells.get("purchase") or None,
    )
