"""Runs a refresh of prices from the first request to the last row: fetch, read, compare region by region, write."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import sha256
from typing import Literal, Unpack

from sqlalchemy import Engine, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Availability, Series, Size
from app.catalog.money import to_usd_text
from app.catalog.names import closest_regions, explain_unknown_region, region_key
from app.catalog.readings import PriceBlock, PriceList, Reading, Report, SourceRow, no_progress
from app.catalog.store.facts import load_size_providers, load_subject_keys
from app.db.engines import read_session
from app.errors import BadData, BadQuery
from app.ingest.feeds.fetching import FetchedLists, PriceApi, PriceFeed, fetch_lists, saved_files
from app.ingest.feeds.gate import (
    HeldPrice,
    PriceKey,
    PriceMap,
    check_list,
    find_jumps,
    load_held,
    load_newest_lists,
    load_region_codes,
    save_held,
)
from app.ingest.feeds.part_prices import load_stated_parts
from app.ingest.feeds.price_lists import REPORT_LIMIT, MeterPrice, ReadScope, RegionPrices, SizeSpec
from app.ingest.run import IngestOptions, IngestOutcome, ingest
from app.nearest import did_you_mean

_BLOCK = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """The regions and sizes of the catalog: codes, and keys, which `identify` returns for any name of a size.

    Prices of other sizes are not taken; None for `sizes` takes any but those of `other_providers`.
    """

    regions: Collection[str]
    sizes: Collection[str] | None
    other_providers: Collection[str] = ()
    identify: Callable[[str], str]

    def has(self, size: str) -> bool:
        """Return whether a size in any spelling is one whose prices are taken."""
        key = self.identify(size)
        return key not in self.other_providers and (self.sizes is None or key in self.sizes)

    def price_key(self, price: MeterPrice | HeldPrice) -> PriceKey:
        """Return what a price is of."""
        return PriceKey(self.identify(price.size), price.os, price.purchase)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRegion:
    """A region whose newest list is not taken: its prices stay as they are, unless its `remedy` is tried, if any."""

    region: str
    reasons: tuple[str, ...]
    remedy: Literal["accept", "fetch"] | None


@dataclass(slots=True, kw_only=True)
class PriceRefresh:
    """What a refresh of prices found: the lists to take, the regions that are refused, and counts over all items.

    `unmatched` counts the prices of each name that is no size of the catalog, or one of another provider: they are not
    taken. Nor are those in `held`, which jumped.
    """

    api: PriceApi
    day: date
    lists: list[RegionPrices] = field(default_factory=list)
    refused: list[RefusedRegion] = field(default_factory=list)
    items: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    reported: int = 0
    unmatched: Counter[str] = field(default_factory=Counter)
    held: list[HeldPrice] = field(default_factory=list)

    @property
    def prices(self) -> int:
        """The number of prices to take."""
        return sum(map(len, self.lists))


# The run


def run_price_refresh(
    engine: Engine,
    feed: PriceFeed,
    *,
    day: date,
    **options: Unpack[IngestOptions],
) -> tuple[PriceRefresh, IngestOutcome | None]:
    """Fetch the prices of a day and write those of every region that is not refused, in one transaction.

    Returns what was found, and the outcome of the ingest; None where no list was left to write or, with `strict`, any
    was refused. Raises BadQuery for an unknown region, BadData for saved lists that cannot be read.
    """
    api, progress = feed.api, options.get("progress", no_progress)
    with read_session(engine) as session:
        codes, identify = load_region_codes(session, api.provider), load_subject_keys(session, Reading()).size_key
        providers, stated = load_size_providers(session)
        specs = () if api.by_region else [*_load_specs(session, api.provider)]
    known_names = KnownNames(
        regions=codes,
        sizes=None if feed.new_sizes else providers.keys(),
        other_providers={key for key in stated if providers[key] != api.provider},
        identify=identify,
    )
    regions = _find_regions(feed.regions, codes)
    scope = ReadScope(
        source_id=api.source_id,
        day=day,
        regions=frozenset(regions or (() if api.by_region else codes)),
        identify=identify,
        sizes=specs,
        stated_parts=load_stated_parts(feed.seeds, api.provider),
        progress=progress,
    )
    failures: dict[str, str] = {}
    store = FetchedLists(root=feed.cache / api.source_id, day=day, suffix=api.suffix)
    names = api.lists(regions or codes)
    if feed.file:
        fetched = api.read(saved_files(feed.file), scope)
    else:
        store.open_day()
        if feed.accept:
            store.restore_refused(names)
        failures = asyncio.run(fetch_lists(feed, names, store, progress))
        fetched = (  # only one list is in memory
            prices
            for name in sorted(filter(store.has, names))
            for prices in api.read([store.file(name)], replace(scope, only_region=name if api.by_region else None))
        )
    with read_session(engine) as session, closing(load_newest_lists(session, api.source_id)) as last_lists:
        refresh = refresh_prices(feed, day, fetched, last_lists, known_names)
    seen = {listed.region for listed in refresh.lists} | {refused.region for refused in refresh.refused}
    for region in {*regions} - seen - failures.keys():
        failures[region] = "what was read has no item of it"
    if feed.file and not seen | failures.keys():
        raise BadData("has no items", file=str(feed.file))
    for region, reason in failures.items():
        refresh.refused.append(RefusedRegion(region=region, reasons=(reason,), remedy="fetch"))
    refresh.refused.sort(key=lambda refused: refused.region)
    if not feed.file:
        for refused in {name for region in refresh.refused for name in api.lists((region.region,))}:
            store.refuse(refused)
    if not options.get("dry_run"):  # what is held back was seen, whatever becomes of the lists
        save_held(feed.held, {listed.region for listed in refresh.lists}, refresh.held)
    if not refresh.lists or (options.get("strict") and refresh.refused):
        return refresh, None
    outcome = ingest(engine, to_reading(refresh), **options)
    if outcome.written and not feed.file:
        store.accept(api.lists([listed.region for listed in refresh.lists]))
    return refresh, outcome


def _load_specs(session: Session, provider: str) -> Iterator[SizeSpec]:
    """Yield the figures of each size of a provider, by name; the database has numbers as floats."""
    size, series = table_of(Size).c, table_of(Series).c
    counts = (size.gpu_count_numerator, size.gpu_count_denominator)
    there, offered = table_of(Availability).c, defaultdict[str, set[str]](set)
    of_provider = select(there.size_key, there.region).where(size.key == there.size_key, size.provider == provider)
    for key, region in session.execute(of_provider):
        offered[key].add(region)
    figures = (size.vcpus, size.memory_gib, size.gpu_model, *counts, size.nvme_disk_gib)
    query = (
        select(size.key, size.name, series.family, *figures)
        .outerjoin_from(table_of(Size), table_of(Series), series.id == size.series_id)
        .where(size.provider == provider)
        .order_by(size.name)
    )
    for key, name, family, vcpus, memory_gib, gpu_model, numerator, denominator, nvme_disk_gib in session.execute(
        query
    ):
        yield SizeSpec(
            name=name,
            family=family,
            vcpus=vcpus,
            memory_gib=None if memory_gib is None else Decimal(str(memory_gib)),
            gpu_model=gpu_model,
            gpu_count=None if numerator is None else Fraction(numerator, denominator),
            nvme_disk_gib=None if nvme_disk_gib is None else Decimal(str(nvme_disk_gib)),
            regions=frozenset(offered[key]) if key in offered else None,
        )


def _find_regions(names: Sequence[str], region_codes: Sequence[str]) -> tuple[str, ...]:
    codes = tuple(map(region_key, names))
    for name, code in zip(names, codes, strict=True):
        if code not in region_codes:
            hint = did_you_mean(closest_regions(code, region_codes), " ")
            raise BadQuery("region", name, f"no such region; {hint}GET /regions lists them")
    return codes


# The gate


def refresh_prices(
    feed: PriceFeed,
    day: date,
    fetched: Iterable[RegionPrices],
    previous: Iterable[tuple[str, Mapping[tuple[str, str, str], int]]],
    names: KnownNames,
) -> PriceRefresh:
    """Decide on each region's list, compared with the list before unless the feed accepts it as it is.

    Of a list that is taken the prices that jump are held back, unless the same were held back on another day.
    A region is decided on alone: one that is refused keeps its prices, and the others are taken. Both lists are in the
    order of the regions' codes, so that only one region of the lists before is in memory.
    """
    refresh, list_before, held = PriceRefresh(api=feed.api, day=day), _in_step(previous), load_held(feed.held)
    for every in fetched:
        unmatched = Counter(price.size for price in every.prices if not names.has(price.size))
        refresh.unmatched += unmatched
        listed = every.where(lambda price: price.size not in unmatched)  # noqa: B023  # called at once
        reasons: tuple[str, ...] = ()
        remedy: Literal["accept", "fetch"] | None = "accept"
        if listed.region not in names.regions:
            reasons = (explain_unknown_region(listed.region, names.regions),)
            remedy = None
        elif not len(listed):
            remedy = "fetch"
            reasons = (
                f"none of {listed.items} items is a price{' of a size that the catalog has' if unmatched else ''}",
            )
        elif not feed.accept:
            new = {names.price_key(price): price.nano_usd_per_hour for price in listed.prices}
            before = dict(list_before(listed.region))
            _add_held(
                before, new, {names.price_key(price): price for price in held if price.region == listed.region}, day
            )
            reasons = check_list(before, new)
            jumps = [] if reasons else find_jumps(before, new)
            if jumps:
                refresh.held += _hold_back(listed, {key: before[key] for key in jumps}, names, day)
                listed = listed.where(lambda price: names.price_key(price) not in jumps)  # noqa: B023  # called at once
        refresh.items += listed.items
        refresh.left_out.update(listed.left_out)
        refresh.reported += listed.reported
        if reasons:
            refresh.refused.append(RefusedRegion(region=listed.region, reasons=reasons, remedy=remedy))
        else:
            refresh.lists.append(listed)
    return refresh


def _add_held(before: dict[PriceKey, int], new: PriceMap, held: Mapping[PriceKey, HeldPrice], day: date) -> None:
    """Add to the list before what it lacks since that was held back: the new price if confirmed, else the old one."""
    for key in held.keys() & new.keys():
        price = held[key]
        if price.day != day and price.new_nano == new[key]:
            before[key] = price.new_nano
        else:
            before.setdefault(key, price.old_nano)


def _hold_back(listed: RegionPrices, old: PriceMap, names: KnownNames, day: date) -> Iterator[HeldPrice]:
    for price in listed.prices:
        if (key := names.price_key(price)) in old:
            of_way = (listed.region, price.size, price.os, price.purchase)
            yield HeldPrice(*of_way, old_nano=old[key], new_nano=price.nano_usd_per_hour, day=day)


def _in_step(lists: Iterable[tuple[str, Mapping[tuple[str, str, str], int]]]) -> Callable[[str], PriceMap]:
    """Return a function that finds the list of a region; it must be called in the order of the regions' codes."""
    remaining = iter(lists)
    current = next(remaining, None)

    def find(region: str) -> PriceMap:
        nonlocal current
        while current and current[0] < region:
            current = next(remaining, None)
        return {PriceKey(*key): nano for key, nano in current[1].items()} if current and current[0] == region else {}

    return find


# The reading


def to_reading(refresh: PriceRefresh) -> Reading:
    """Return the lists that are taken as a reading; the prices of a region are a list of their own."""
    api = refresh.api
    source = SourceRow(
        id=api.source_id,
        title=api.title,
        publisher=api.publisher,
        kind="vendor_api",
        url=api.url,
        published_on=refresh.day,
        sha256=_digest(refresh.lists),
        retail=True,
        formula=api.formula,
    )
    lists = tuple(
        PriceList(
            file=f"{api.source_id}/{refresh.day}/{listed.region}",
            blocks=partial(_blocks, listed, api.source_id, refresh.day, (number + 1) / len(refresh.lists)),
            sources=frozenset({api.source_id}),
            complete=True,
            regions=frozenset({listed.region}),
        )
        for number, listed in enumerate(refresh.lists)
    )
    reports = (*(report for listed in refresh.lists for report in _reports(listed)), *_held_reports(refresh))
    return Reading(citable=(source,), prices=lists, reports=reports)


def _reports(listed: RegionPrices) -> Iterator[Report]:
    yield from listed.reports
    if more := listed.reported - len(listed.reports):
        file = listed.reports[0].file
        yield Report(file=file, line=None, column=None, cell=None, detail=f"{more} more items are not read")


def _held_reports(refresh: PriceRefresh) -> Iterator[Report]:
    for price in refresh.held[:REPORT_LIMIT]:
        detail = (
            f"{price.size} {price.os} {price.purchase} was {to_usd_text(price.old_nano)}; the new price is held back "
            "until a list of another day has the same"
        )
        file, cell = f"{refresh.api.source_id}/{price.day}/{price.region}", to_usd_text(price.new_nano)
        yield Report(file=file, line=None, column=refresh.api.figure, cell=cell, detail=detail)
    if (more := len(refresh.held) - REPORT_LIMIT) > 0:
        detail = f"{more} more prices are held back"
        yield Report(file=refresh.api.source_id, line=None, column=None, cell=None, detail=detail)


def _blocks(listed: RegionPrices, source: str, day: date, share: float) -> Iterator[PriceBlock]:
    for start in range(0, len(listed), _BLOCK):
        rows = slice(start, start + _BLOCK)
        number = len(listed.size[rows])
        columns = ("size", "os", "purchase", "nano_usd_per_hour", "line")
        yield PriceBlock(
            **{name: getattr(listed, name)[rows] for name in columns},
            region=[listed.region] * number,
            valid_from=[day] * number,
            approximate_date=[False] * number,
            source=[source] * number,
            share=share,
        )


def _digest(lists: Iterable[RegionPrices]) -> str:
    """Return the sha256 of the prices: a line for each, in the order of regions, sizes and ways to buy."""
    digest = sha256()
    for listed in sorted(lists, key=lambda prices: prices.region):
        for price in listed.prices:
            line = (listed.region, price.size, price.os, price.purchase, str(price.nano_usd_per_hour))
            digest.update(("\t".join(line) + "\n").encode())
    return digest.hexdigest()
