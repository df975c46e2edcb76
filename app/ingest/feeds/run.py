"""Runs a refresh of prices or exchange rates from the first request to the last row: fetch, map, compare, write."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from sqlalchemy import Engine

from app.catalog.names import region_key
from app.catalog.readings import Progress, Reading, no_progress
from app.catalog.regions import closest_regions
from app.catalog.store.exchange_rates import load_rate_days
from app.catalog.store.facts import load_subject_keys
from app.catalog.store.newest_lists import load_newest_lists, load_region_codes, load_size_keys
from app.db.engines import read_session
from app.errors import BadQuery
from app.ingest.feeds.exchange_rates import read_reference_rates
from app.ingest.feeds.exchange_rates_client import HISTORY_URL, fetch_history, read_saved_file
from app.ingest.feeds.fetched_pages import FetchedPages
from app.ingest.feeds.fetching import RetryPolicy
from app.ingest.feeds.held_prices import load_held, save_held
from app.ingest.feeds.price_refresh import (
    SOURCE_ID,
    KnownNames,
    PriceRefresh,
    read_fetched,
    read_files,
    refresh_prices,
    to_reading,
)
from app.ingest.feeds.retail_prices import RegionPrices
from app.ingest.feeds.retail_prices_client import API_URL, fetch_regions
from app.ingest.run import IngestOutcome, ingest
from app.nearest import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceFeed:
    """Where prices come from: the API at `url`, whose pages are kept in `cache`, or the saved pages in `file`.

    Of both, `cache` keeps the prices that are held back.
    `regions` are codes or names of those wanted; none are all of the catalog. With `accept` lists are taken without a
    comparison with the last ones, also those that were refused on this day. With `new_sizes` names that the catalog
    does not have become sizes; otherwise their prices are not taken.
    """

    url: str = API_URL
    cache: Path = Path("vmsizes.db.feeds")
    file: Path | None = None
    regions: Sequence[str] = ()
    concurrency: int = 4
    policy: RetryPolicy | None = None
    accept: bool = False
    new_sizes: bool = False

    @property
    def held(self) -> Path:
        """The file of the prices that are held back."""
        return self.cache / f"{SOURCE_ID}-held.csv"


def run_price_refresh(
    engine: Engine,
    feed: PriceFeed,
    *,
    day: date,
    now: datetime,
    strict: bool = False,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> tuple[PriceRefresh, IngestOutcome | None]:
    """Fetch the prices of a day and write those of every region that is not refused, in one transaction.

    Returns what was found, and the outcome of the ingest; None where no list was left to write or, with `strict`, any
    was refused. Raises BadQuery for an unknown region, BadData for saved pages that cannot be read.
    """
    with read_session(engine) as session:
        codes, identify = load_region_codes(session), load_subject_keys(session, Reading()).size_key
        sizes = None if feed.new_sizes else load_size_keys(session)
    known, regions = KnownNames(regions=codes, sizes=sizes, identify=identify), _find_regions(feed.regions, codes)
    if feed.file:
        found = read_files(feed.file, day, regions, identify=identify, progress=progress)
        refresh = _decide(engine, feed, found, {}, day=day, known=known)
        return refresh, _write(engine, feed, refresh, now, strict=strict, dry_run=dry_run, progress=progress)
    store = FetchedPages(root=feed.cache / SOURCE_ID, day=day)
    store.open_day()
    wanted = regions or codes
    if feed.accept:
        store.restore_refused(wanted)
    failures = asyncio.run(
        fetch_regions(wanted, store, url=feed.url, concurrency=feed.concurrency, policy=feed.policy, progress=progress)
    )
    found = read_fetched(store, wanted, identify=identify, progress=progress)
    refresh = _decide(engine, feed, found, failures, day=day, known=known)
    for refused in refresh.refused:
        store.refuse(refused.region)
    outcome = _write(engine, feed, refresh, now, strict=strict, dry_run=dry_run, progress=progress)
    if outcome and outcome.written:
        store.accept(each.region for each in refresh.lists)
    return refresh, outcome


def _find_regions(names: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    codes = tuple(map(region_key, names))
    for name, code in zip(names, codes, strict=True):
        if code not in known:
            hint = did_you_mean(closest_regions(code, known), " ")
            raise BadQuery("region", name, f"no such region; {hint}GET /regions lists them")
    return codes


def _decide(
    engine: Engine,
    feed: PriceFeed,
    found: Iterator[RegionPrices],
    failures: Mapping[str, str],
    *,
    day: date,
    known: KnownNames,
) -> PriceRefresh:
    with read_session(engine) as session, closing(load_newest_lists(session, SOURCE_ID)) as last_lists:
        return refresh_prices(
            found,
            last_lists,
            day=day,
            known=known,
            failures=failures,
            held=load_held(feed.held),
            accept=feed.accept,
        )


def _write(
    engine: Engine,
    feed: PriceFeed,
    refresh: PriceRefresh,
    now: datetime,
    *,
    strict: bool,
    dry_run: bool,
    progress: Progress,
) -> IngestOutcome | None:
    """Write the lists that are taken; what is held back is noted before, since it was seen whatever becomes of them."""
    if not dry_run:
        save_held(feed.held, {each.region for each in refresh.lists}, refresh.held)
    if not refresh.lists or (strict and refresh.refused):
        return None
    return ingest(engine, to_reading(refresh), now=now, strict=strict, dry_run=dry_run, progress=progress)


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
    now: datetime,
    url: str = HISTORY_URL,
    file: Path | None = None,
    policy: RetryPolicy | None = None,
    strict: bool = False,
    dry_run: bool = False,
    progress: Progress = no_progress,
) -> RateRefresh:
    """Write the exchange rates of the days of which the catalog has none, from `url` or from a saved file.

    Raises BadData for what cannot be fetched, or is none of the European Central Bank's files.
    """
    progress("exchange rates", None)
    data = read_saved_file(file) if file else fetch_history(url, policy)
    with read_session(engine) as session:
        known = load_rate_days(session)
    reading = read_reference_rates(data, str(file or url), known_days=known)
    days = sorted({rate.day for rate in reading.exchange_rates})
    outcome = ingest(engine, reading, now=now, strict=strict, dry_run=dry_run, progress=progress) if days else None
    return RateRefresh(days=days, rates=len(reading.exchange_rates), outcome=outcome)
