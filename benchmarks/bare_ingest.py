"""The reference of ingest: prices written by the driver alone, checked only by the table's constraints."""

import csv
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from app.catalog.money import NANO_USD
from benchmarks.catalogs import PRICE_COLUMNS, TODAY, PriceRow
from benchmarks.price_files import PriceFiles

_NAMES = ", ".join(PRICE_COLUMNS)
_MARKS = ", ".join("?" for _ in PRICE_COLUMNS)


def write_rows(engine: Engine, made: PriceFiles) -> None:
    """Write ready tuples and commit."""
    _write(engine, made.rows)


def write_csv(engine: Engine, file: Path) -> None:
    """Read a file of prices row by row and write the rows unchecked."""
    with file.open(encoding="utf-8", newline="") as opened:
        reader = csv.reader(opened)
        next(reader)
        _write(engine, _rows(reader))


def _rows(cells: Iterable[list[str]]) -> Iterator[PriceRow]:
    today = TODAY.isoformat()
    for size, region, os, purchase, since, usd, approximate, source in cells:
        key = size.lower().removeprefix("standard_")
        nano = int(Decimal(usd) * NANO_USD)
        yield key, region, os, purchase, since, source, today, since, nano, approximate == "true"


def _write(engine: Engine, rows: Iterable[PriceRow]) -> None:
    """Write by the bulk path of the driver, over a connection of the service's engine."""
    connection: Any = engine.raw_connection()
    if engine.dialect.name == "sqlite":
        connection.executemany(f"insert into price ({_NAMES}) values ({_MARKS})", rows)
    else:
        with connection.cursor() as cursor, cursor.copy(f"copy price ({_NAMES}) from stdin") as copy:
            for row in rows:
                copy.write_row(row)
    connection.commit()
    connection.close()
