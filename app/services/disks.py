"""Managed disks with their prices in a region, or in the cheapest one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.catalog.disks import DISK_TYPES
from app.catalog.queries.disks import DISK_SORT_KEYS, DiskCatalog, DiskRates, DiskSearch, load_disks
from app.catalog.queries.exchange_rates import CurrencyRate, convert_amounts, find_exchange_rate
from app.catalog.queries.filters import check_sort
from app.catalog.queries.lookups import check_regions
from app.catalog.queries.params import check_days
from app.catalog.queries.snapshot import Catalog
from app.fit.costs import DiskModel, round_usd, usd_per_gib_month
from app.schemas.costs import DiskOut, DiskPage
from app.services.ranked import RankedPage, paginate


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskOffer:
    """A disk and its rates in a region; without a price anywhere both are empty."""

    disk: DiskModel
    source_id: str
    region: str | None
    rates: DiskRates

    @property
    def usd_per_gib_month(self) -> Fraction | None:
        """What a GiB of a full disk costs a month."""
        return usd_per_gib_month(self.disk, {per: rate.usd for per, rate in self.rates.items()})

    def usd(self, per: str) -> Decimal | None:
        """Return the rate per month, GiB-hour, IOPS-hour or MBps-hour."""
        return self.rates[per].usd if per in self.rates else None


def find_disks(catalog: Catalog, search: DiskSearch) -> DiskPage:
    """Find one page of the disks that `search` asks for; raises BadQuery for a region, day, currency or sort key."""
    check_days(search, catalog.today)
    check_regions(catalog.snapshot.regions, "region", search.region)
    check_sort(search.sort, DISK_SORT_KEYS)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    known = load_disks(catalog, search.as_of or catalog.today, search.region)
    disks = ((to_disk_model(row), row["source_id"]) for row in known.disks)
    offers = [_cheapest_offer(disk, by, known) for disk, by in disks if _is_wanted(disk, search)]
    ranked = _sort(offers, search.sort)
    request_key = f"disks {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    page: RankedPage[DiskOffer] = paginate(catalog, ranked, search, request_key)
    items = [_to_disk_out(offer, rate, catalog.today) for offer in page.items]
    return DiskPage(items=items, next_cursor=page.next_cursor, total=len(ranked), exchange_rate=rate)


def _to_disk_out(offer: DiskOffer, rate: CurrencyRate | None, today: date) -> DiskOut:
    usd = {f"usd_per_{per}": offer.usd(per) for per in ("month", "gib_hour", "iops_hour", "mbps_hour")}
    of_gib = offer.usd_per_gib_month
    as_of = min((one.valid_from for one in offer.rates.values()), default=None)
    return DiskOut(
        **asdict(offer.disk),
        source_id=offer.source_id,
        region=offer.region,
        **usd,
        usd_per_gib_month=round_usd(of_gib),
        price_as_of=as_of,
        price_age_days=(today - as_of).days if as_of is not None else None,
        price_source_ids=sorted({one.source_id for one in offer.rates.values()}),
        converted=convert_amounts({**usd, "usd_per_gib_month": of_gib}, rate) if rate is not None else None,
    )


def to_disk_model(row: Mapping[str, Any]) -> DiskModel:
    """Map a row of the table of disks."""
    return DiskModel(**{name: value for name, value in row.items() if name != "source_id"})


def _is_wanted(disk: DiskModel, search: DiskSearch) -> bool:
    bounds = ((disk.max_gib, search.min_gib), (disk.max_iops, search.min_iops))
    return (
        (not search.type or disk.type in search.type)
        and search.redundancy in (None, disk.redundancy)
        and all(least is None or (amount is not None and amount >= least) for amount, least in bounds)
    )


def _cheapest_offer(disk: DiskModel, source_id: str, catalog: DiskCatalog) -> DiskOffer:
    """Return the offer of the region in which a GiB of the disk costs least; regions without that price come last."""
    offers = [
        DiskOffer(disk=disk, source_id=source_id, region=region, rates=rates)
        for region, rates in catalog.rates.get(disk.id, {}).items()
    ]
    return min(
        offers,
        key=lambda offer: (*_unknown_last(offer.usd_per_gib_month), offer.region or ""),
        default=DiskOffer(disk=disk, source_id=source_id, region=None, rates={}),
    )


def _sort(offers: list[DiskOffer], keys: Sequence[str]) -> list[DiskOffer]:
    """Sort by the keys, the first counting most; equals by type, redundancy and capacity."""
    offers.sort(key=lambda one: (DISK_TYPES.index(one.disk.type), one.disk.redundancy, one.disk.max_gib, one.disk.id))
    for key in reversed(keys):
        sign = -1 if key.startswith("-") else 1
        offers = sorted(offers, key=lambda one: _unknown_last(_sorted_value(one, key.removeprefix("-")), sign))
    return offers


def _sorted_value(offer: DiskOffer, name: str) -> int | Decimal | Fraction | None:
    if name == "type":
        return DISK_TYPES.index(offer.disk.type)
    if name == "usd_per_month":
        return offer.usd("month")
    if name == "usd_per_gib_month":
        return offer.usd_per_gib_month
    amount: int | None = getattr(offer.disk, name)
    return amount


def _unknown_last(value: int | Decimal | Fraction | None, sign: int = 1) -> tuple[bool, int | Decimal | Fraction]:
    return (value is None, sign * value if value is not None else 0)
