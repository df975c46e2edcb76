"""Refreshes exchange rates: the euro foreign exchange reference rates of the European Central Bank.

The Bank publishes one table as a zip with a CSV file: a row a day, a column a currency, units per euro, N/A where there
is no rate, and a comma at the end of each line. The file of one day has the same columns, spaces behind its commas, and
writes its day as `30 October 2026`.
"""

import asyncio
import csv
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import sha256
from io import BytesIO, StringIO
from lzma import LZMAError
from pathlib import Path
from typing import Unpack
from zipfile import BadZipFile, ZipFile, is_zipfile

import httpx
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import ExchangeRate
from app.catalog.readings import Reading, SourceRow, day_problem, no_progress
from app.db.engines import read_session
from app.errors import BadData, FetchError
from app.ingest.documents.values import MONTHS, find_date
from app.ingest.feeds.fetching import MAX_PAGE_BYTES, TIMEOUT, USER_AGENT, RetryPolicy, get, tls_context
from app.ingest.files import CsvRow, read_bounded, whole_rows
from app.ingest.run import IngestOptions, IngestOutcome, ingest
from app.ingest.sources.reference import CURRENCY, rates_of_day

SOURCE_ID = "ecb-reference-rates"
_PAGE = "https://www.ecb.europa.eu/stats/policy_and_exchange_rates/euro_reference_exchange_rates/html/index.en.html"

FIRST_DAY = date(2023, 1, 1)
"""Earlier rates are not taken: there are no earlier prices to convert."""

_FIRST_YEAR = 1999
"""Of the euro, and so of the Bank's file of all days."""

MAX_BYTES = 50_000_000
"""The Bank's file has 600 kB zipped and 1.4 MB unpacked; a longer one is not its file."""

_LONG_DAY = re.compile(rf"\d{{1,2}} (?:{'|'.join(map(str.title, MONTHS))}) \d{{4}}")


def read_reference_rates(data: bytes, name: str, *, known_days: Collection[date] = ()) -> Reading:
    """Read one of the Bank's files, zipped or not, without `known_days` and days before FIRST_DAY.

    Raises BadData naming file, line and column. A reading without a new day is empty, so that it changes nothing.
    """
    rates = tuple(
        rate
        for row, currencies in _read_rows(_text(data, name), name)
        if (day := _day(row)) >= FIRST_DAY and day not in known_days
        if row.positive("USD")  # without it nothing can be converted on that day
        for rate in rates_of_day(row, currencies, day, SOURCE_ID)
    )
    if not rates:
        return Reading()
    source = SourceRow(
        id=SOURCE_ID,
        title="Euro foreign exchange reference rates, daily",
        publisher="European Central Bank",
        kind="third_party",
        url=_PAGE,
        published_on=max(rate.day for rate in rates),
        sha256=sha256(data).hexdigest(),
    )
    return Reading(sources=(source,), exchange_rates=rates)


def _text(data: bytes, name: str) -> str:
    """Return the text of a CSV file, or of the only file of a zip."""
    try:
        if is_zipfile(BytesIO(data)):
            data = _unzip(data, name)
        return data.decode("utf-8-sig")
    # A damaged zip raises ValueError for its offsets, and RuntimeError for what zipfile cannot unpack.
    except (BadZipFile, ValueError, RuntimeError, EOFError, zlib.error, LZMAError, OSError) as error:
        raise BadData(f"is neither a CSV file in UTF-8 nor a zip of one: {error}", file=name) from error


def _unzip(data: bytes, name: str) -> bytes:
    """Return the only file of a zip; it is unpacked only as far as is allowed, whatever length the zip states."""
    with ZipFile(BytesIO(data)) as archive:
        names = archive.namelist()
        if len(names) != 1:
            raise BadData(f"has {len(names)} files; a zip of one CSV file is expected", file=name)
        with archive.open(names[0]) as packed:
            unpacked = packed.read(MAX_BYTES + 1)
    if len(unpacked) > MAX_BYTES:
        raise BadData(f"unpacks to more than {MAX_BYTES:,} bytes", file=name)
    return unpacked


def _read_rows(text: str, name: str) -> Iterator[tuple[CsvRow, tuple[str, ...]]]:
    """Yield each row with the currencies of its columns; a day is there once."""
    lines = csv.reader(StringIO(text, newline=""), strict=True)
    days: set[str] = set()
    try:
        header = [cell.strip() for cell in next(lines, [])]
        currencies = _currencies(header, name)
        for line, cells in whole_rows(lines, name, len(header)):
            row = CsvRow(name, line, dict(zip(header, map(str.strip, cells), strict=True)))
            if row.cells["Date"] in days:
                raise row.error("Date", "is listed twice")
            days.add(row.cells["Date"])
            yield row, currencies
    except csv.Error as error:
        raise BadData(f"is not a CSV file: {error}", file=name, line=lines.line_num) from error


def _currencies(header: list[str], name: str) -> tuple[str, ...]:
    """Return the currencies of a header: `Date`, codes, and nothing behind a comma at the end."""
    first, *codes = header or [""]
    if codes and not codes[-1]:
        codes = codes[:-1]
    if first != "Date":
        raise BadData(f"{first!r}: the first column must be Date", file=name, line=1)
    for number, code in enumerate(codes):
        if not CURRENCY.fullmatch(code):
            raise BadData(f"{code!r}: must be the code of a currency, such as USD", file=name, line=1, column=code)
        if code in codes[:number]:
            raise BadData("is in the header twice", file=name, line=1, column=code)
    if "USD" not in codes:
        raise BadData("is missing from the header", file=name, line=1, column="USD")
    return tuple(codes)


def _day(row: CsvRow) -> date:
    """Return the day of a row: `2026-10-30`, or `30 October 2026` in the file of one day."""
    text = row.cells["Date"]
    day = find_date(text) if _LONG_DAY.fullmatch(text) else row.date("Date", _FIRST_YEAR)
    if day is None:
        raise row.error("Date", "is not a day of the calendar")
    if problem := day_problem(day):
        raise row.error("Date", problem)
    return day


# The Bank's file

HISTORY_URL = "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-hist.zip"
"""The rates of every day since 1999: one small file, so that a refresh after months misses no day."""


def fetch_history(url: str = HISTORY_URL, policy: RetryPolicy | None = None) -> bytes:
    """Return the file at a URL; raises BadData when it cannot be fetched as often as the policy allows.

    A redirect is followed within its host, by https.
    """

    async def refuse_elsewhere(request: httpx.Request) -> None:
        first = httpx.URL(url)
        if request.url != first and (request.url.scheme, request.url.host) != ("https", first.host):
            raise FetchError(f"redirects to {request.url}; only https at {first.host} is followed")

    async def fetch() -> bytes:
        async with httpx.AsyncClient(
            verify=tls_context(),
            timeout=TIMEOUT,
            headers={"User-Agent": USER_AGENT},
            follow_redirects=True,
            event_hooks={"request": [refuse_elsewhere]},
        ) as client:
            return await get(client, httpx.URL(url), policy or RetryPolicy())

    try:
        return asyncio.run(fetch())
    except (FetchError, httpx.InvalidURL) as error:
        raise BadData(str(error), file=url) from error


# The run


@dataclass(frozen=True, slots=True, kw_only=True)
class RateRefresh:
    """The days of which the catalog had no exchange rates, oldest first, and the outcome of their ingest.

    There is no outcome where there was no such day.
    """

    days: Sequence[date]
    rates: int
    outcome: IngestOutcome | None


def run_rate_refresh(
    engine: Engine,
    *,
    url: str = HISTORY_URL,
    file: Path | None = None,
    policy: RetryPolicy | None = None,
    **options: Unpack[IngestOptions],
) -> RateRefresh:
    """Write the exchange rates of the days of which the catalog has none, from `url` or from a saved file.

    Raises BadData for what cannot be fetched, or is none of the European Central Bank's files.
    """
    options.get("progress", no_progress)("exchange rates", None)
    data = read_bounded(file, MAX_PAGE_BYTES) if file else fetch_history(url, policy)
    with read_session(engine) as session:
        known_days = frozenset(session.execute(select(table_of(ExchangeRate).c.day).distinct()).scalars())
    reading = read_reference_rates(data, str(file or url), known_days=known_days)
    days = sorted({rate.day for rate in reading.exchange_rates})
    outcome = ingest(engine, reading, **options) if days else None
    return RateRefresh(days=days, rates=len(reading.exchange_rates), outcome=outcome)
