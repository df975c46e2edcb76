"""Reads wide tables of prices: a row for each size and region, a column for each day on which a source was read.

A folder of tables has a `manifest.csv` that names each file, its source, its sha256 and its columns, and says whether
its columns are complete lists. A table begins with the columns `size` and `region`; the others are named
`os:purchase:day`, such as `linux:on_demand:2026-06-18`. A blank cell is a price that the list of the day does not have.
"""

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

from app.catalog.column_types import to_nano_usd
from app.catalog.names import region_key
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.readings import PriceBlock, PriceList, Prices, Reading, SourceRow
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.errors import BadData
from app.ingest.csv_files import CsvRow, open_csv, read_rows, sha256_of, wrong_width

MANIFEST = "manifest.csv"
MANIFEST_COLUMNS = ("file", "source", "complete", "sha256", "columns")
KEY_COLUMNS = ("size", "region")
_LINES = 5_000
"""Lines that are read at a time; each column of them becomes a block."""


@dataclass(frozen=True, slots=True)
class _ListColumn:
    """A column of a table: a list of one day."""

    name: str
    os: str
    purchase: str
    day: date


def read_price_tables(folder: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Return a reading of the tables that the manifest of a folder names; their prices are read lazily.

    Raises BadData for a file that is not there, is another one than the manifest has, or is in the folder without
    being named.
    """
    rows = list(read_rows(folder / MANIFEST, MANIFEST_COLUMNS))
    named = {row.cells["file"] for row in rows}
    for path in sorted(folder.glob("*.csv.gz")):
        if path.name not in {*named, MANIFEST}:
            raise BadData(f"{path.name} is not in it; add a row", file=str(folder / MANIFEST), column="file")
    reading = Reading()
    for row in rows:
        reading += _read_table(folder, row, sources)
    return reading


def _read_table(folder: Path, row: CsvRow, sources: Mapping[str, SourceRow]) -> Reading:
    path, source = folder / row.text("file"), row.text("source")
    if not path.is_file():
        raise row.error("file", "there is no such file in the folder")
    if source not in sources:
        raise row.error("source", "is not in the list of sources; add a row there")
    digest = sha256_of(path)
    if digest != row.text("sha256"):
        raise row.error("sha256", f"is not that of {path.name}, which is {digest}")
    columns = tuple(_to_list_column(row, name.strip()) for name in row.text("columns").split(";"))
    prices = PriceList(
        file=str(path),
        blocks=partial(_read_table_blocks, path, columns, source),
        sources=frozenset([source]),
        complete=row.flag("complete"),
    )
    return Reading(citable=(replace(sources[source], sha256=digest),), prices=Prices((prices,)))


def _to_list_column(row: CsvRow, name: str) -> _ListColumn:
    os, _, rest = name.partition(":")
    purchase, _, day = rest.partition(":")
    if os not in OPERATING_SYSTEMS or purchase not in PURCHASE_MODELS:
        allowed = f"OS is one of {', '.join(OPERATING_SYSTEMS)}, purchase one of {', '.join(PURCHASE_MODELS)}"
        raise row.error("columns", f"{name} is not OS:PURCHASE:DAY; {allowed}")
    return _ListColumn(name, os, purchase, CsvRow(row.file, row.line, {"columns": day}).date("columns"))


def _read_table_blocks(path: Path, columns: Sequence[_ListColumn], source: str) -> Iterator[PriceBlock]:
    header = [*KEY_COLUMNS, *(column.name for column in columns)]
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        found = [name.strip() for name in next(reader, [])]
        if found != header:
            detail = f"the columns are {', '.join(found)}; the manifest has {', '.join(header)}"
            raise BadData(detail, file=str(path), line=1)
        while numbered := [(reader.line_num, cells) for cells in islice(reader, _LINES)]:
            rows = [(line, cells) for line, cells in numbered if cells]
            for line, cells in rows:
                if len(cells) != len(header):
                    raise wrong_width(str(path), line, len(cells), len(header))
            if not rows:
                continue
            yield from _to_blocks(path, rows, columns, source)


def _to_blocks(
    path: Path, rows: Sequence[tuple[int, list[str]]], columns: Sequence[_ListColumn], source: str
) -> Iterator[PriceBlock]:
    """Yield the prices of some rows, column by column."""
    lines = [line for line, _ in rows]
    sizes, regions, *prices = zip(*(cells for _, cells in rows), strict=True)
    names = _read_cells(path, lines, "size", sizes, _to_size)
    codes = _read_cells(path, lines, "region", regions, _to_region)
    for column, cells in zip(columns, prices, strict=True):
        given = [bool(cell) for cell in cells]
        listed = [*compress(lines, given)]
        usd = _read_cells(path, listed, column.name, [*compress(cells, given)], _to_usd)
        if number := len(usd):
            yield PriceBlock(
                size=[*compress(names, given)],
                region=[*compress(codes, given)],
                os=[column.os] * number,
                purchase=[column.purchase] * number,
                nano_usd_per_hour=[*map(to_nano_usd, usd)],
                valid_from=[column.day] * number,
                approximate_date=[False] * number,
                source=[source] * number,
                line=listed,
            )


@lru_cache(maxsize=10_000)
def _to_size(cell: str) -> str:
    return CsvRow("", 0, {"": cell.strip()}).size_name("")


@lru_cache(maxsize=1_000)
def _to_region(cell: str) -> str:
    return region_key(cell.strip())


@lru_cache(maxsize=100_000)
def _to_usd(cell: str) -> Decimal:
    return CsvRow("", 0, {"": cell.strip()}).usd("")


CellT = TypeVar("CellT")

_CELL_READERS: Mapping[str, Callable[[CsvRow, str], object]] = {"size": CsvRow.size_name, "region": CsvRow.text}


def _read_cells(
    path: Path, lines: Sequence[int], column: str, cells: Sequence[str], read: Callable[[str], CellT]
) -> list[CellT]:
    """Read the cells of a column; raises BadData with the line and column of the first that is wrong or blank."""
    try:
        values = [*map(read, cells)]
    except BadData:
        values = []
    if all(values) and len(values) == len(cells):
        return values
    for line, cell in zip(lines, cells, strict=True):
        row = CsvRow(str(path), line, {column: cell.strip()})
        _CELL_READERS.get(column, CsvRow.usd)(row, column)
    raise AssertionError(column)
