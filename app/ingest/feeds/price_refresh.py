"""Joins the parts of a refresh of prices: maps pages, lets the gate decide region by region, and makes a reading."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from hashlib import sha256
from pathlib import Path

from app.catalog.names import region_key
from app.catalog.readings import PriceBlock, PriceList, Prices, Progress, Reading, Report, SourceRow, no_progress
from app.catalog.regions import explain_unknown_region
from app.ingest.feeds.fetched_pages import FetchedPages
from app.ingest.feeds.gate import DEFAULT_LIMITS, GateLimits, PriceKey, PriceMap, check_list, find_jumps
from app.ingest.feeds.held_prices import HeldPrice
from app.ingest.feeds.retail_prices import REPORT_LIMIT, LeftOut, MeterPrice, RegionMapper, RegionPrices, format_usd
from app.ingest.feeds.retail_prices_client import API_URL, Page, read_saved_pages, to_page

SOURCE_ID = "azure-retail-prices"
_BLOCK = 1_000

Identify = Callable[[str], str]
"""Returns the key of a size by any of its names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownNames:
    """The regions and sizes of the catalog: codes, and keys, which `identify` returns for any name of a size.

    Prices of other sizes are not taken; None for `sizes` takes any.
    """

    regions: Collection[str]
    sizes: Collection[str] | None
    identify: Identify

    def price_key(self, price: MeterPrice | HeldPrice) -> PriceKey:
        """Return what a price is of."""
        return PriceKey(self.identify(price.size), price.os, price.purchase)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedRegion:
    """A region whose newest list is not taken: its prices stay as they are. `fetched`: there is a list to accept."""

    region: str
    reasons: tuple[str, ...]
    fetched: bool


@dataclass(slots=True, kw_only=True)
class PriceRefresh:
    """What a refresh of prices found: the lists to take, the regions that are refused, and counts over all items.

    `unmatched` counts the prices of each name that is no size of the catalog: they are not taken. Nor are those in
    `held`, which jumped.
    """

    day: date
    lists: list[RegionPrices] = field(default_factory=list)
    refused: list[RefusedRegion] = field(default_factory=list)
    items: int = 0
    left_out: Counter[LeftOut] = field(default_factory=Counter)
    reported: int = 0
    unmatched: Counter[str] = field(default_factory=Counter)
    held: list[HeldPrice] = field(default_factory=list)

    @property
    def prices(self) -> int:
        """The number of prices to take."""
        return sum(map(len, self.lists))

    def add(self, found: RegionPrices, reasons: Sequence[str]) -> None:
        """Add the list of a region, or refuse it for some reasons."""
        self.items += found.items
        self.left_out.update(found.left_out)
        self.reported += found.reported
        if reasons:
            self.refused.append(RefusedRegion(region=found.region, reasons=tuple(reasons), fetched=True))
        else:
            self.lists.append(found)


# Pages to prices of regions


def read_fetched(
    store: FetchedPages, regions: Sequence[str], *, identify: Identify, progress: Progress = no_progress
) -> Iterator[RegionPrices]:
    """Yield the prices of the regions that were fetched, in the order of their codes."""
    fetched, items = sorted(region for region in regions if store.has(region)), 0
    for number, region in enumerate(fetched):
        mapper = RegionMapper(region=region, day=store.day, file=list_name(store.day, region), identify=identify)
        for body in store.pages(region):
            items += _add_page(to_page(body), lambda _: mapper)  # noqa: B023  # called at once
            progress("reading pages", number / len(fetched), items)
        yield mapper.finish()


def read_files(
    path: Path, day: date, regions: Collection[str] = (), *, identify: Identify, progress: Progress = no_progress
) -> Iterator[RegionPrices]:
    """Yield the prices of saved pages, in the order of the regions' codes; with `regions` of these only."""
    mappers: dict[str, RegionMapper] = {}
    items = 0

    def mapper_of(name: str) -> RegionMapper | None:
        region = region_key(name)
        if regions and region not in regions:
            return None
        if region not in mappers:
            mappers[region] = RegionMapper(region=region, day=day, file=list_name(day, region), identify=identify)
        return mappers[region]

    for page in read_saved_pages(path):
        items += _add_page(page, mapper_of)
        progress("reading pages", None, items)
    for region in sorted(mappers):
        yield mappers.pop(region).finish()


def _add_page(page: Page, mapper_of: Callable[[str], RegionMapper | None]) -> int:
    for item in page.items:
        if mapper := mapper_of(str(item.get("armRegionName") or "")):
            mapper.add(item)
    return len(page.items)


def list_name(day: date, region: str) -> str:
    """Return the name by which the list of a region and day is known, in place of a file's path."""
    return f"{SOURCE_ID}/{day}/{region}"


# The gate


def refresh_prices(
    found: Iterable[RegionPrices],
    previous: Iterable[tuple[str, Mapping[tuple[str, str, str], int]]],
    *,
    day: date,
    known: KnownNames,
    failures: Mapping[str, str],
    held: Sequence[HeldPrice] = (),
    accept: bool = False,
    limits: GateLimits = DEFAULT_LIMITS,
) -> PriceRefresh:
    """Decide on each region's list, compared with the list before; with `accept` it is not compared.

    Of a list that is taken the prices that jump are held back, unless the same were `held` back on another day.
    A region is decided on alone: one that failed or is refused keeps its prices, and the others are taken. Both lists
    are in the order of the regions' codes, so that only one region of the lists before is in memory.
    """
    refresh, list_before = PriceRefresh(day=day), _in_step(previous)
    for every in found:
        unmatched = _count_unmatched(every, known)
        refresh.unmatched += unmatched
        each = every.where(lambda price: price.size not in unmatched)  # noqa: B023  # called at once
        reasons: tuple[str, ...] = ()
        if each.region not in known.regions:
            reasons = (explain_unknown_region(each.region, known.regions),)
        elif not len(each):
            reasons = (
                f"none of {each.items} items is a price{' of a size that the catalog has' if unmatched else ''}",
            )
        elif not accept:
            new = {known.price_key(price): price.nano_usd_per_hour for price in each.prices}
            before = dict(list_before(each.region))
            _add_held(before, new, {known.price_key(one): one for one in held if one.region == each.region}, day)
            reasons = check_list(before, new, limits)
            jumps = [] if reasons else find_jumps(before, new, limits)
            if jumps:
                refresh.held += _hold_back(each, {key: before[key] for key in jumps}, known, day)
                each = each.where(lambda price: known.price_key(price) not in jumps)  # noqa: B023  # called at once
        refresh.add(each, reasons)
    for region, reason in failures.items():
        refresh.refused.append(RefusedRegion(region=region, reasons=(reason,), fetched=False))
    refresh.refused.sort(key=lambda refused: refused.region)
    return refresh


def _add_held(before: dict[PriceKey, int], new: PriceMap, held: Mapping[PriceKey, HeldPrice], day: date) -> None:
    """Add to the list before what it lacks since that was held back: the new price if confirmed, else the old one."""
    for key in held.keys() & new.keys():
        price = held[key]
        if price.day != day and price.new_nano == new[key]:
            before[key] = price.new_nano
        else:
            before.setdefault(key, price.old_nano)


def _hold_back(found: RegionPrices, old: PriceMap, known: KnownNames, day: date) -> Iterator[HeldPrice]:
    for price in found.prices:
        if (key := known.price_key(price)) in old:
            yield HeldPrice(
                region=found.region,
                size=price.size,
                os=price.os,
                purchase=price.purchase,
                old_nano=old[key],
                new_nano=price.nano_usd_per_hour,
                day=day,
            )


def _count_unmatched(found: RegionPrices, known: KnownNames) -> Counter[str]:
    """Count the prices of each name that is no known size."""
    if known.sizes is None:
        return Counter()
    return Counter(price.size for price in found.prices if known.identify(price.size) not in known.sizes)


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
    source = SourceRow(
        id=SOURCE_ID,
        title="Azure Retail Prices API",
        publisher="Microsoft",
        kind="vendor_api",
        url=API_URL,
        published_on=refresh.day,
        sha256=_digest(refresh.lists),
        retail=True,
    )
    lists = tuple(
        PriceList(
            file=list_name(refresh.day, each.region),
            blocks=partial(_blocks, each, refresh.day, (number + 1) / len(refresh.lists)),
            sources=frozenset({SOURCE_ID}),
            complete=True,
            regions=frozenset({each.region}),
        )
        for number, each in enumerate(refresh.lists)
    )
    reports = (*(report for each in refresh.lists for report in _reports(each)), *_held_reports(refresh))
    return Reading(citable=(source,), prices=Prices(lists), reports=reports)


def _reports(found: RegionPrices) -> Iterator[Report]:
    yield from found.reports
    if more := found.reported - len(found.reports):
        file = found.reports[0].file
        yield Report(file=file, line=None, column=None, cell=None, detail=f"{more} more items are not read")


def _held_reports(refresh: PriceRefresh) -> Iterator[Report]:
    for price in refresh.held[:REPORT_LIMIT]:
        detail = (
            f"{price.size} {price.os} {price.purchase} was {format_usd(price.old_nano)}; the new price is held back "
            "until a list of another day has the same"
        )
        file, cell = list_name(price.day, price.region), format_usd(price.new_nano)
        yield Report(file=file, line=None, column="retailPrice", cell=cell, detail=detail)
    if (more := len(refresh.held) - REPORT_LIMIT) > 0:
        yield Report(file=SOURCE_ID, line=None, column=None, cell=None, detail=f"{more} more prices are held back")


def _blocks(found: RegionPrices, day: date, share: float) -> Iterator[PriceBlock]:
    for start in range(0, len(found), _BLOCK):
        rows = slice(start, start + _BLOCK)
        size = found.size[rows]
        number = len(size)
        yield PriceBlock(
            size=size,
            region=[found.region] * number,
            os=found.os[rows],
            purchase=found.purchase[rows],
            nano_usd_per_hour=found.nano_usd_per_hour[rows],
            valid_from=[day] * number,
            approximate_date=[False] * number,
            source=[SOURCE_ID] * number,
            line=found.line[rows],
            share=share,
        )


def _digest(lists: Iterable[RegionPrices]) -> str:
    """Return the sha256 of the prices: a line for each, in the order of regions, sizes and ways to buy."""
    digest = sha256()
    for each in sorted(lists, key=lambda found: found.region):
        for price in each.prices:
            line = (each.region, price.size, price.os, price.purchase, str(price.nano_usd_per_hour))
            digest.update(("\t".join(line) + "\n").encode())
    return digest.hexdigest()
