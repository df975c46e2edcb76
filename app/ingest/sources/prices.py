"""Reads CSV files of prices: US dollars per hour by size, region, operating system and purchase model, in blocks."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from app.catalog.column_types import NANO_USD
from app.catalog.names import region_key
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.readings import PriceBlock, PriceList, PriceRow, Prices, Reading, SourceRow
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.errors import BadData
from app.ingest.aside import CAN_READ_ASIDE, read_aside
from app.ingest.csv_files import CsvBlock, CsvRow, columns_of, read_blocks, sha256_of
from app.ingest.sources.claims import own_source

_COLUMN_READERS: dict[str, Callable[[CsvRow], Any]] = {
    "size": lambda row: row.size_name("size"),
    "region": lambda row: region_key(row.text("region")),
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
    return Reading(
        citable=citable,
        prices=Prices(
            (
                PriceList(
                    file=str(path),
                    blocks=partial(_blocks, path, frozenset(sources), aside=is_long and CAN_READ_ASIDE),
                    sources=frozenset(sources),
                ),
            )
        ),
    )


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


def _blocks(path: Path, sources: Collection[str], *, aside: bool) -> Iterator[PriceBlock]:
    read = partial(_read_price_blocks, path, sources)
    return read_aside(read) if aside else read()


def _read_price_blocks(path: Path, sources: Collection[str]) -> Iterator[PriceBlock]:
    cells = _COLUMN_READERS | {"source": lambda row: _listed_source(row, sources)}
    caches = {name: _CellCache(name, read) for name, read in cells.items() if name != "usd_per_hour"}
    for block in read_blocks(path, COLUMNS, _defaults(path, sources)):
        yield _to_block(block, caches) or PriceBlock.of([_to_price(row, cells) for row in block.rows()], block.share)


def _listed_source(row: CsvRow, sources: Collection[str]) -> str:
    source = row.text("source")
    if source not in sources:
        raise row.error("source", "is not in the list of sources; add a row there")
    return source


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
        columns = {name: [*map(known.__getitem__, block.cells[name])] for name, known in caches.items()}
    except BadData:
        return None
    nano = [int(price * NANO_USD) for price in usd]  # exact: they have at most nine decimals
    return PriceBlock(**columns, nano_usd_per_hour=nano, line=block.lines, share=block.share)
