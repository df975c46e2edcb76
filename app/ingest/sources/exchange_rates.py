"""Reads CSV files of exchange rates: a row a day, a column a currency, in units of the currency per euro."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from app.catalog.column_types import SIGNIFICANT_DIGITS, USD_DECIMALS, is_exact
from app.catalog.readings import ExchangeRateRow, Reading, SourceRow
from app.ingest.csv_files import CsvRow, open_csv
from app.ingest.sources.claims import read_cited

COLUMNS = ("day", "source")
"""The columns besides those of the currencies."""

CURRENCY = re.compile(r"[A-Z]{3}")
"""A currency by its code of ISO 4217."""

NO_RATE = frozenset(("", "N/A"))
"""What a cell says where there is no rate for the currency on the day."""


def read_exchange_rates(path: Path, sources: Mapping[str, SourceRow]) -> Reading:
    """Read a table of rates, and the sources that publish them; raises BadData for a day that a source has twice."""
    days: set[tuple[str, date]] = set()

    def to_rates(row: CsvRow) -> tuple[ExchangeRateRow, ...]:
        day, source = row.date("day"), row.text("source")
        if (source, day) in days:
            raise row.error("day", "is listed twice")
        days.add((source, day))
        return tuple(rates_of_day(row, currencies, day, source))

    currencies = _currencies_of(path)
    rows, cited = read_cited(path, COLUMNS, sources, to_rates, optional=currencies)
    return Reading(sources=cited, exchange_rates=tuple(rate for rates in rows for rate in rates))


def rates_of_day(row: CsvRow, currencies: Iterable[str], day: date, source: str) -> Iterator[ExchangeRateRow]:
    """Yield the rates of a row, units per euro; raises BadData for one that is not above zero or too long to store."""
    for currency in currencies:
        if row.cells[currency] in NO_RATE:
            continue
        units = row.positive(currency)
        if not is_exact(units):
            limits = f"at most {USD_DECIMALS} decimals and {SIGNIFICANT_DIGITS} significant digits"
            raise row.error(currency, f"must be below a billion, with {limits}")
        yield ExchangeRateRow(
            currency=currency, day=day, units_per_euro=units, source=source, file=row.file, line=row.line
        )


def _currencies_of(path: Path) -> tuple[str, ...]:
    """Return the columns of a file that are currencies; what else is unknown is refused when its rows are read."""
    with open_csv(path) as file:
        header = next(csv.reader(file, strict=True), [])
    return tuple(dict.fromkeys(name for name in map(str.strip, header) if CURRENCY.fullmatch(name)))
