"""Synthetic prices in each form that the ingest benchmark needs: tuples for a driver, blocks of a reader, files."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from app.catalog.money import NANO_USD, to_usd_text
from app.catalog.readings import PriceBlock, PriceList
from benchmarks import catalogs
from benchmarks.catalogs import PriceRow, Scale

COLUMNS = ("size", "region", "os", "purchase", "valid_from", "usd_per_hour", "approximate_date", "source")
BLOCK_ROWS = 1_000
CHANGED_ONE_IN = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFiles:
    """The same prices as table rows, as the reader returns them, and as files; `changed_file` differs in some."""

    rows: list[PriceRow]
    prices: tuple[PriceList, ...]
    file: Path
    changed_file: Path


def make_prices(folder: Path, scale: Scale) -> PriceFiles:
    """Build the prices of a scale, sorted by key, and write the files with the list of sources beside them."""
    each = scale.prices // scale.sizes
    names = {size["key"]: size["name"] for size in catalogs.sizes(scale)}
    rows = [price for size in catalogs.sizes(scale) for price in catalogs.prices_of(size, each)]
    blocks = [_block(rows[at : at + BLOCK_ROWS], names, at) for at in range(0, len(rows), BLOCK_ROWS)]
    file, changed_file = folder / "prices.csv", folder / "changed.csv"
    _write(file, COLUMNS, (_cells(row, names) for row in rows))
    dearer = ((*row[:8], row[8] + NANO_USD * (number % CHANGED_ONE_IN == 0), row[9]) for number, row in enumerate(rows))
    _write(changed_file, COLUMNS, (_cells(row, names) for row in dearer))
    source = {name: cell for name, cell in catalogs.small_tables(scale)["source"][0].items() if name != "sha256"}
    _write(folder / "sources.csv", tuple(source), [tuple(source.values())])
    prices = (PriceList(file=str(file), blocks=lambda: iter(blocks)),)
    return PriceFiles(rows=rows, prices=prices, file=file, changed_file=changed_file)


def _cells(row: PriceRow, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a row of the table as one of a file."""
    return names[row[0]], *row[1:5], to_usd_text(row[8]), "false", row[5]


def _block(rows: Sequence[PriceRow], names: Mapping[str, str], at: int) -> PriceBlock:
    keys, regions, systems, purchases, days, sources, _, _, nano, approximate = zip(*rows, strict=True)
    return PriceBlock(
        size=[names[key] for key in keys],
        region=regions,
        os=systems,
        purchase=purchases,
        nano_usd_per_hour=nano,
        valid_from=[date.fromisoformat(day) for day in days],
        approximate_date=approximate,
        source=sources,
        line=range(at + 2, at + 2 + len(rows)),
    )


def _write(file: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with file.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(columns)
        writer.writerows(rows)
