"""Reads CSV files of prices, in blocks: lists with a price in each row, and wide tables.

A list has US dollars per hour by size, region, operating system and purchase model. A table has a row for each size and
region, and a column for each day on which a source was read. A folder of tables has a `manifest.csv` that names each
file, its source, its sha256 and its columns, and says whether its columns are complete lists. A table begins with the
columns `size` and `region`; the others are named `os:purchase:day`, such as `linux:on_demand:2026-06-18`. A blank cell
is a price that the list of the day does not have.
"""

import csv
import os
import pickle
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from itertools import compress, islice
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from app.catalog.money import NANO_USD, to_nano_usd
from app.catalog.names import RegionCode
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.readings import PriceBlock, PriceList, PriceRow, Reading, SourceRow
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.errors import BadData
from app.ingest.files import CsvBlock, CsvRow, columns_of, open_csv, read_blocks, read_rows, sha256_of, whole_rows
from app.ingest.sources.claims import listed_source, own_source

_COLUMN_READERS: dict[str, Callable[[CsvRow], Any]] = {
    "size": lambda row: row.size_name("size"),
    "region": lambda row: RegionCode(row.text("region")),
    "os": lambda row: row.choice("os", OPERATING_SYSTEMS),
    "purchase": lambda row: row.choice("purchase", PURCHASE_MODELS),
    "usd_per_hour": lambda row: row.usd("usd_per_hour"),
    "valid_from": lambda row: row.date("valid_from"),
    "approximate_date": lambda row: row.flag("approximate_date"),
    "source": lambda row: row.text("source"),
}
"""What reads the cell of each column; a size is kept as written, its alias is resolved when prices are saved."""
COLUMNS = tuple(_COLUMN_READERS)
_DEFAULTS = {"os": "linux", "purchase": "on_demand", "approximate_date": "true"}
"""Cells of columns that a list may lack; without a day it is dated by its file, which is only a guess."""

_USD = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_PLAIN_USD = re.compile(rf"{_USD}(?:\n{_USD})*")
_SHORT_USD_CHARACTERS = 16
"""A price of up to this many characters cannot have too many significant digits."""
_CACHE_LIMIT = 100_000
_LONG_BYTES = 4 * 2**20
"""A file of this many bytes or more, some 50,000 prices, is read in a process of its own: starting it takes as long as
reading 1,000 prices."""


def read_prices(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Return a reading whose prices are read lazily, in the order of the file; raises BadData while they are.

    A price that is not known is a missing row, never a zero.
    """
    digest, is_long = sha256_of(path), path.stat().st_size >= _LONG_BYTES
    citable = tuple(replace(note, sha256=digest) for note in sources.values())
    read = partial(_read_blocks, path, frozenset(sources))
    blocks = partial(read_aside, read) if is_long and CAN_READ_ASIDE else read
    price_list = PriceList(file=str(path), blocks=blocks, sources=frozenset(sources))
    return Reading(citable=citable, prices=(price_list,))


def find_own_source(path: Path) -> SourceRow | None:
    """Return a list without a column `source` as a source itself; None for others."""
    return None if "source" in columns_of(path) else own_source(path, "prices", "Prices")


def _defaults(path: Path, sources: Collection[str]) -> Mapping[str, str]:
    columns = columns_of(path)
    defaults = dict(_DEFAULTS)
    if "valid_from" not in columns:
        defaults["valid_from"] = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    elif "approximate_date" not in columns:
        defaults["approximate_date"] = "false"
    if "source" not in columns and len(sources) == 1:
        (defaults["source"],) = sources
    return defaults


def _read_blocks(path: Path, sources: Collection[str]) -> Iterator[PriceBlock]:
    cells = _COLUMN_READERS | {"source": lambda row: listed_source(row, sources)}
    caches = {name: _CellCache(name, read) for name, read in cells.items() if name != "usd_per_hour"}
    for block in read_blocks(path, COLUMNS, _defaults(path, sources)):
        yield _to_block(block, caches) or PriceBlock.of([_to_price(row, cells) for row in block.rows()], block.share)


def _to_price(row: CsvRow, cells: Mapping[str, Callable[[CsvRow], Any]]) -> PriceRow:
    return PriceRow(**{name: read(row) for name, read in cells.items()}, file=row.file, line=row.line)


class _CellCache(dict[str, Any]):
    """The parsed values of a column by cell: each distinct text is parsed once."""

    def __init__(self, column: str, read: Callable[[CsvRow], Any]) -> None:
        super().__init__()
        self._column, self._read = column, read

    def __missing__(self, cell: str) -> Any:
        if len(self) >= _CACHE_LIMIT:
            self.clear()
        value = self[cell] = self._read(CsvRow("", 0, {self._column: cell.strip()}))
        return value


def _to_block(block: CsvBlock, caches: Mapping[str, _CellCache]) -> PriceBlock | None:
    """Map a block a column at a time; None where any cell needs the checks of `_to_price`."""
    figures = [*map(str.strip, block.cells["usd_per_hour"])]
    usd = [*map(Decimal, figures)] if _PLAIN_USD.fullmatch("\n".join(figures)) else []
    if not usd or not all(usd) or max(map(len, figures)) > _SHORT_USD_CHARACTERS:
        return None
    try:
        columns = {name: [*map(cache.__getitem__, block.cells[name])] for name, cache in caches.items()}
    except BadData:
        return None
    nano = [int(price * NANO_USD) for price in usd]  # exact: they have at most nine decimals
    return PriceBlock(**columns, nano_usd_per_hour=nano, line=block.lines, share=block.share)


# Tables

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
    path = folder / row.text("file")
    if not path.is_file():
        raise row.error("file", "there is no such file in the folder")
    source, digest = listed_source(row, sources), sha256_of(path)
    if digest != row.text("sha256"):
        raise row.error("sha256", f"is not that of {path.name}, which is {digest}")
    columns = tuple(_to_list_column(row, name.strip()) for name in row.text("columns").split(";"))
    prices = PriceList(
        file=str(path),
        blocks=partial(_read_table_blocks, path, columns, source),
        sources=frozenset([source]),
        complete=row.flag("complete"),
    )
    return Reading(citable=(replace(sources[source], sha256=digest),), prices=(prices,))


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
        names = [name.strip() for name in next(reader, [])]
        if names != header:
            detail = f"the columns are {', '.join(names)}; the manifest has {', '.join(header)}"
            raise BadData(detail, file=str(path), line=1)
        lines = whole_rows(reader, str(path), len(header))
        while rows := [*islice(lines, _LINES)]:
            yield from _to_blocks(path, rows, columns, source)


def _to_blocks(
    path: Path, rows: Sequence[tuple[int, list[str]]], columns: Sequence[_ListColumn], source: str
) -> Iterator[PriceBlock]:
    """Yield the prices of some rows, column by column."""
    lines = [line for line, _ in rows]
    sizes, regions, *prices = zip(*(cells for _, cells in rows), strict=True)
    names = _read_cells(path, lines, "size", sizes, _SIZES)
    codes = _read_cells(path, lines, "region", regions, _REGIONS)
    for column, cells in zip(columns, prices, strict=True):
        given = [bool(cell) for cell in cells]
        listed = [*compress(lines, given)]
        usd = _read_cells(path, listed, column.name, [*compress(cells, given)], _PRICES)
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


_SIZES, _REGIONS = (_CellCache(name, _COLUMN_READERS[name]) for name in KEY_COLUMNS)
_PRICES = _CellCache("usd", lambda row: row.usd("usd"))


def _read_cells(path: Path, lines: Sequence[int], column: str, cells: Sequence[str], parsed: _CellCache) -> list[Any]:
    """Read the cells of a column; raises BadData with the line and column of the first that is wrong or blank."""
    try:
        values = [*map(parsed.__getitem__, cells)]
    except BadData:
        values = []
    if all(values) and len(values) == len(cells):
        return values
    for line, cell in zip(lines, cells, strict=True):
        row = CsvRow(str(path), line, {column: cell.strip()})
        {"size": CsvRow.size_name, "region": CsvRow.text}.get(column, CsvRow.usd)(row, column)
    raise AssertionError(column)


T = TypeVar("T")

CAN_READ_ASIDE = sys.platform == "linux" and (os.cpu_count() or 1) > 1
"""Elsewhere a copy of a process cannot rely on the system's libraries, or there is no processor for it."""


def read_aside(blocks: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an iterator yields, and raise what it raises; a copy of this process iterates, a few blocks ahead.

    The copy uses nothing but the file, so it may be made while a transaction is open. It ends when this process ends,
    or wants no more. Raises ChildProcessError where it is killed.
    """
    receiver, sender = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        receiver.close()  # else it would wait for itself when this process has ended
        _send_all(blocks, sender)
    sender.close()
    try:
        while (block := _receive(receiver)) is not None:
            if isinstance(block, Exception):
                raise block
            yield block
    finally:
        receiver.close()
        os.waitpid(child, 0)


def _send_all(blocks: Callable[[], Iterator[Any]], sender: Connection) -> NoReturn:
    """Send the blocks and then None, or the error; the copy ends without running what this process would at its end."""
    try:
        try:
            for block in blocks():
                sender.send_bytes(pickle.dumps(block, pickle.HIGHEST_PROTOCOL))
            sender.send_bytes(pickle.dumps(None))
        except Exception as error:  # noqa: BLE001  # raised again by the other process
            sender.send_bytes(pickle.dumps(error))
    finally:
        os._exit(0)


def _receive(receiver: Connection) -> Any:
    try:
        return pickle.loads(receiver.recv_bytes())  # noqa: S301  # made by a copy of this process
    except (EOFError, OSError) as error:  # the latter in the middle of a block
        raise ChildProcessError("the process that reads the file was ended") from error
