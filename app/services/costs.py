"""What VMs cost in a region with their disks, the prices of disks, and ways to buy, each with its date and source."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

from app.catalog.providers import AZURE, PROVIDERS
from app.catalog.purchases import DISK_TYPES, PURCHASE_MODELS, Purchase
from app.catalog.queries.costs import (
    DISK_SORT_KEYS,
    BuySearch,
    CostSearch,
    DiskCatalog,
    DiskRates,
    DiskSearch,
    SizePrice,
    find_cheapest_price,
    load_disks,
    parse_disk,
)
from app.catalog.queries.exchange_rates import CurrencyRate, convert_amounts, find_exchange_rate
from app.catalog.queries.filters import check_sort
from app.catalog.queries.lookups import (
    RegionPlace,
    check_regions,
    check_regions_of_sizes,
    clouds_of_regions,
    get_size_keys,
)
from app.catalog.queries.params import Os, check_days
from app.catalog.queries.prices import PriceSearch, find_ended_sales, find_prices
from app.catalog.queries.sizes import NoPrice, SizeDetails, explain_no_price, find_size_details
from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery
from app.fit.costs import (
    HOURS_PER_MONTH,
    MONTHS_PER_YEAR,
    TERMS,
    DiskModel,
    DiskRequest,
    ProvisionedDisk,
    WayToBuy,
    disk_usd_per_month,
    most_performance,
    paid_hours,
    per_unit,
    round_usd,
    smallest_disk,
    to_exact,
    total,
    usd_per_gib_month,
)
from app.fit.verdict import OLD_PRICE_DAYS
from app.nearest import join_with_or
from app.schemas.catalog import (
    BuyMonthOut,
    BuyOut,
    BuyPriceOut,
    BuyWayOut,
    ConvertedWayOut,
    CostInAllOut,
    CostOfDiskOut,
    CostOfVmOut,
    CostOut,
    DiskOut,
    DiskPage,
    NotSoldOut,
)
from app.services.ranked import paginate, to_adjustment
from app.validation import plural


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
        return usd_per_gib_month(self.disk, {per: price.usd for per, price in self.rates.items()})

    def usd(self, per: str) -> Decimal | None:
        """Return the rate per month, GiB-hour, IOPS-hour or MBps-hour."""
        return self.rates[per].usd if per in self.rates else None


def find_disks(catalog: Catalog, search: DiskSearch) -> DiskPage:
    """Find one page of the disks that `search` asks for; raises BadQuery for a region, day, currency or sort key."""
    check_days(search, catalog.today)
    _check_regions_of_disks(catalog.snapshot.regions, search.region)
    check_sort(search.sort, DISK_SORT_KEYS)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    loaded = load_disks(catalog, search.as_of or catalog.today, search.region)
    disks = ((to_disk_model(row), row["source_id"]) for row in loaded.disks)
    offers = [_cheapest_offer(disk, by, loaded) for disk, by in disks if _is_wanted(disk, search)]
    # By the keys, the first counting most; equals by type, redundancy and capacity.
    offers.sort(
        key=lambda offer: (DISK_TYPES.index(offer.disk.type), offer.disk.redundancy, offer.disk.max_gib, offer.disk.id)
    )
    for key in reversed(search.sort):
        sign = -1 if key.startswith("-") else 1
        offers = sorted(offers, key=lambda offer: _unknown_last(_sorted_value(offer, key.removeprefix("-")), sign))
    request_key = f"disks {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    shown, next_cursor = paginate(catalog, offers, search, request_key)
    items = [_to_disk_out(offer, rate, catalog.today) for offer in shown]
    return DiskPage(items=items, next_cursor=next_cursor, total=len(offers), exchange_rate=rate)


def _check_regions_of_disks(regions: Mapping[str, RegionPlace], codes: Sequence[str]) -> None:
    """Check that the regions exist and that one belongs to the cloud that sells the disks; raises BadQuery."""
    check_regions(regions, "region", codes)
    if codes and AZURE.id not in {regions[code].provider for code in codes}:
        detail = f"{clouds_of_regions(regions, codes)}, and the disks are {AZURE.name}'s"
        raise BadQuery("region", ",".join(codes), detail)


def _to_disk_out(offer: DiskOffer, rate: CurrencyRate | None, today: date) -> DiskOut:
    usd = {f"usd_per_{per}": offer.usd(per) for per in ("month", "gib_hour", "iops_hour", "mbps_hour")}
    of_gib = offer.usd_per_gib_month
    as_of = min((price.valid_from for price in offer.rates.values()), default=None)
    return DiskOut(
        **asdict(offer.disk),
        source_id=offer.source_id,
        region=offer.region,
        **usd,
        usd_per_gib_month=round_usd(of_gib),
        price_as_of=as_of,
        price_age_days=(today - as_of).days if as_of is not None else None,
        price_source_ids=sorted({price.source_id for price in offer.rates.values()}),
        converted=_convert({**usd, "usd_per_gib_month": of_gib}, rate),
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


NOT_INCLUDED = (
    "outbound data transfer and other network traffic",
    "snapshots, backups and images",
    "disk transactions, bursts and mounts of shared disks",
    "an operating system disk, unless it is among the disks",
    "licences and support beyond the operating system in the price of the VM",
    "taxes, credits, and discounts beyond those that were ingested as adjustments",
)
"""What the figures leave out."""


def compute_costs(catalog: Catalog, name: str, search: CostSearch) -> CostOut:
    """Cost the VMs and disks of `search`.

    Raises NotFound for the size, BadQuery for a region, a day to come, a currency without a rate, and for a disk that
    there is not, that cannot be so fast, or that is of another cloud than the size.
    """
    check_days(search, catalog.today)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions_of_sizes(catalog, catalog.snapshot.regions, (key,), search.region)
    (size,) = find_size_details(catalog, (key,), search)
    name, provider = size.row["name"], size.row["provider"]
    if search.disk and provider != AZURE.id:
        clouds = f"managed disks are of {AZURE.name}, and {name} is a size of {PROVIDERS[provider].name}"
        raise BadQuery("disk", search.disk[0], clouds)
    day = search.as_of or catalog.today
    rate = find_exchange_rate(catalog, search.currency, day)
    price = find_cheapest_price(catalog, key, search)
    region = price.region if price else search.region[0] if len(search.region) == 1 else None
    of_disks = load_disks(catalog, day, (region,) if region else ())
    if not region:  # of no region, not of any
        of_disks = DiskCatalog(disks=of_disks.disks, rates={})
    vm, month = _cost_vm(size, price, rate, search, catalog.today)
    costed = [_cost_disk(text, search, of_disks, rate, region=region, today=catalog.today) for text in search.disk]
    disks = [disk for disk, _ in costed]
    of_one = total((month, *(disk_month for _, disk_month in costed)))
    per_month = of_one * search.count if of_one is not None else None
    in_all = {"usd_per_month": per_month, "usd_per_year": _year(per_month)}
    parts = {"vm": vm.usd_per_month, **{f"disks[{index}]": disk.usd_per_month for index, disk in enumerate(disks)}}
    return CostOut(
        size=name,
        region=region,
        os=search.os,
        purchase=search.purchase,
        count=search.count,
        hours_per_month=search.hours_per_month,
        as_of=day,
        vm=vm,
        disks=disks,
        total=CostInAllOut(**_round(in_all), converted=_convert(in_all, rate)),
        unknown_parts=[part for part, usd in parts.items() if usd is None],
        warnings=_warnings(size.row, price, vm, disks, search.os, today=catalog.today),
        not_included=NOT_INCLUDED,
        exchange_rate=rate,
        no_price=None if price else _why_no_price(catalog, size, key, search),
    )


def _why_no_price(catalog: Catalog, size: SizeDetails, size_key: str, search: CostSearch) -> NoPrice | None:
    """Return why a size has no price: no longer sold that way, no prices in the region, or none for this size."""
    name, day = size.row["name"], search.as_of or catalog.today
    offer = f"{search.os} {search.purchase}"
    if (ended := find_ended_sales(catalog, size_key, day).get(search.purchase)) is not None:
        detail = f"{offer}: {name} is no longer sold this way; the last day was {ended}"
        return NoPrice(os=search.os, purchase=search.purchase, known_in=(), detail=detail)
    of_all = explain_no_price(catalog, search, provider=size.row["provider"])
    if of_all is not None:
        return of_all
    everywhere = PriceSearch(limit=_MOST_REGIONS, **search.model_dump(include={"os", "purchase", "as_of", "known_at"}))
    known_in = tuple(sorted({price["region"] for price in find_prices(catalog, name, everywhere).items}))
    there = f" in {join_with_or(search.region)}" if search.region else " in any region"
    known = f", as the catalog knew them on {search.known_at}" if search.known_at is not None else ""
    elsewhere = f", but in {plural(len(known_in), 'other region')}" if known_in and search.region else ""
    detail = f"{offer}: no price of {name} is known{there}{elsewhere}{f' on {day}' if search.as_of else ''}{known}"
    return NoPrice(os=search.os, purchase=search.purchase, known_in=known_in, detail=detail)


def _cost_vm(
    size: SizeDetails, price: SizePrice | None, rate: CurrencyRate | None, search: CostSearch, today: date
) -> tuple[CostOfVmOut, Fraction | None]:
    """Return what one VM costs, and what exactly in a month."""
    usd = to_exact(price.usd_per_hour) if price else None
    hours = paid_hours(search.purchase, search.hours_per_month)
    month = usd * to_exact(hours) if usd is not None else None
    exact = {
        "usd_per_hour": usd,
        "usd_per_month": month,
        "usd_per_year": _year(month),
        "usd_per_vcpu_hour": per_unit(usd, size.row["vcpus"]),
        "usd_per_1000_coremark_hour": per_unit(usd, Fraction(size.row["coremark"] or 0, 1000)),
        "usd_per_memory_gib_hour": per_unit(usd, size.row["memory_gib"]),
        "usd_per_gpu_hour": per_unit(usd, size.gpus),
        "usd_per_gpu_gib_hour": per_unit(usd, size.row["gpu_memory_gib"]),
    }
    cost = CostOfVmOut(
        **_round(exact),
        committed_hours_per_month=HOURS_PER_MONTH if price and search.purchase in TERMS else None,
        converted=_convert(exact, rate),
        price_as_of=price.as_of if price else None,
        price_age_days=(today - price.as_of).days if price else None,
        approximate_date=price.approximate_date if price else None,
        source_id=price.source_id if price else None,
        adjustment=to_adjustment(price.adjustment) if price else None,
        estimate=price.estimate if price else None,
    )
    return cost, month


def _cost_disk(
    text: str,
    search: CostSearch,
    catalog: DiskCatalog,
    rate: CurrencyRate | None,
    *,
    region: str | None,
    today: date,
) -> tuple[CostOfDiskOut, Fraction | None]:
    """Return a disk with what it costs, and what exactly in a month."""
    chosen = _choose_disk(text, search.redundancy, catalog)
    rates: DiskRates = catalog.rates.get(chosen.disk.id, {}).get(region or "", {})
    month = disk_usd_per_month(chosen, {per: price.usd for per, price in rates.items()})
    used = list(rates.values()) if month is not None else []
    as_of = min((price.valid_from for price in used), default=None)
    exact = {"usd_per_month": month, "usd_per_year": _year(month)}
    cost = CostOfDiskOut(
        requested=text,
        disk=chosen.disk.id,
        type=chosen.disk.type,
        redundancy=chosen.disk.redundancy,
        size=chosen.disk.size,
        gib=chosen.gib,
        iops=chosen.iops,
        mbps=chosen.mbps,
        **_round(exact),
        converted=_convert(exact, rate),
        price_as_of=as_of,
        price_age_days=(today - as_of).days if as_of else None,
        source_ids=sorted({price.source_id for price in used}),
    )
    return cost, month


def _choose_disk(text: str, redundancy: str, catalog: DiskCatalog) -> ProvisionedDisk:
    """Choose the smallest disk for a text of `disk`; raises BadQuery where there is none, or it needs more figures."""
    kind, amounts = parse_disk(text)
    disks = [to_disk_model(row) for row in catalog.disks if (row["type"], row["redundancy"]) == (kind, redundancy)]
    if not disks:
        raise BadQuery("disk", text, f"the catalog has no {kind} with redundancy={redundancy}; GET /disks lists them")
    wanted = DiskRequest(**amounts)
    chosen = smallest_disk(disks, wanted)
    if chosen is None:
        limits = ("max_gib", "max_iops", "max_mbps")
        gib, iops, mbps = (max(filter(None, (getattr(disk, name) for disk in disks)), default=0) for name in limits)
        least = min(disk.min_gib or 1 for disk in disks)
        raise BadQuery("disk", text, f"{kind} holds {least} to {gib} GiB, with up to {iops} IOPS and {mbps} MBps")
    if chosen.disk.size is None:
        _check_performance(text, chosen, wanted)
    return chosen


def _check_performance(text: str, chosen: ProvisionedDisk, wanted: DiskRequest) -> None:
    """Check the IOPS and MBps of a disk of any size; raises BadQuery where none are included, or there are too many."""
    if not (wanted.iops or chosen.iops) or not (wanted.mbps or chosen.mbps):
        example = f"{chosen.disk.type}:{chosen.gib}:1000:100"
        raise BadQuery("disk", text, f"its IOPS and MBps are billed, so say how many: {example}")
    iops, mbps = most_performance(chosen)
    if iops is not None and chosen.iops is not None and chosen.iops > iops:
        raise BadQuery("disk", text, f"{chosen.gib} GiB can have up to {iops} IOPS")
    if mbps is not None and chosen.mbps is not None and chosen.mbps > mbps:
        raise BadQuery("disk", text, f"with {chosen.iops} IOPS it can have up to {mbps} MBps")


def _warnings(
    size: Mapping[str, Any],
    price: SizePrice | None,
    vm: CostOfVmOut,
    disks: Sequence[CostOfDiskOut],
    os: str,
    *,
    today: date,
) -> tuple[str, ...]:
    """Return the problems of the VM with these disks, and of their prices."""
    types, most = {disk.type for disk in disks}, size["max_data_disks"]
    premium = ("premium_ssd", "premium_ssd_v2", "ultra_disk")
    ages = [disk.price_age_days for disk in disks if disk.price_age_days is not None]
    weak = _weaknesses([price] if price else [], today)
    raised = {
        "NO_PRICE": vm.usd_per_hour is None or any(disk.usd_per_month is None for disk in disks),
        "OLD_PRICE": "OLD_PRICE" in weak or max(ages, default=0) > OLD_PRICE_DAYS,
        "UNUSUAL_PRICE": "UNUSUAL_PRICE" in weak,
        "DISPUTED_PRICE": "DISPUTED_PRICE" in weak,
        "COMMITMENT": vm.committed_hours_per_month is not None,
        "LICENCE_INCLUDED": os == "windows" and vm.usd_per_hour is not None,
        "NO_PREMIUM_STORAGE": size["premium_storage"] is False and not types.isdisjoint(premium),
        "NO_ULTRA_DISK": size["ultra_disk"] is False and "ultra_disk" in types,
        "TOO_MANY_DISKS": most is not None and len(disks) > most + 1,  # one may be the operating system's
        "RETIRING": size["status"] == "retiring",
        "WITHDRAWN": size["status"] == "withdrawn",
        "RETIRED": size["status"] == "retired",
        "UNVERIFIED": not size["verified"],
    }
    return tuple(code for code, holds in raised.items() if holds)


def _weaknesses(prices: Sequence[SizePrice], today: date) -> list[str]:
    """Return the warnings about the prices that a figure was computed from."""
    raised = {
        "OLD_PRICE": any(price.approximate_date or (today - price.as_of).days > OLD_PRICE_DAYS for price in prices),
        "UNUSUAL_PRICE": any(price.unusual for price in prices),
        "DISPUTED_PRICE": any(price.disputed for price in prices),
    }
    return [code for code, holds in raised.items() if holds]


def _year(usd_per_month: Fraction | None) -> Fraction | None:
    return usd_per_month * MONTHS_PER_YEAR if usd_per_month is not None else None


def _round(amounts: Mapping[str, Fraction | None]) -> dict[str, Decimal | None]:
    return {name: round_usd(usd) for name, usd in amounts.items()}


def _convert(amounts: Mapping[str, Decimal | Fraction | None], rate: CurrencyRate | None) -> dict[str, Any] | None:
    return convert_amounts(amounts, rate) if rate is not None else None


_MOST_REGIONS = 500
_SHOWN_MONTHS = (1, 3, 6, 12, 18, 24, 36, 48, 60)
ASSUMPTIONS = (
    f"a commitment is paid for {HOURS_PER_MONTH} hours of each month of its term, used or not",
    "nothing else uses it, and it is neither exchanged nor cancelled",
    "a term that ends before the months do is bought again, and prices stay as they are",
    "paying upfront, monthly or hourly costs the same",
)

Paid = tuple[Os, Purchase]
_Way = tuple[WayToBuy | None, list[tuple[Paid, SizePrice]]]
"""What a way costs, None where it is unknown, and the prices that it is made of."""


def compare_ways(catalog: Catalog, name: str, search: BuySearch) -> BuyOut:
    """Compare the ways to buy; raises NotFound for the size, BadQuery for a region, a currency or a day to come.

    Also for Azure Hybrid Benefit for a size of another cloud.
    """
    check_days(search, catalog.today)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions_of_sizes(catalog, catalog.snapshot.regions, (key,), search.region)
    asked = CostSearch(**search.model_dump(include={"os", "region", "as_of", "known_at"}))
    (size,) = find_size_details(catalog, (key,), asked)
    of_azure = size.row["provider"] == AZURE.id
    if search.hybrid_benefit and not of_azure:
        name, seller = size.row["name"], PROVIDERS[size.row["provider"]].name
        raise BadQuery("hybrid_benefit", "true", f"is a benefit of {AZURE.name}, and {name} is a size of {seller}")
    os: Os = "linux" if search.hybrid_benefit else search.os
    cheapest = find_cheapest_price(catalog, key, asked.model_copy(update={"os": os}))
    region = cheapest.region if cheapest is not None else search.region[0] if len(search.region) == 1 else None

    def price_of(paid: Paid) -> SizePrice | None:
        of_region = {"os": paid[0], "purchase": paid[1], "region": (region,) if region is not None else search.region}
        return find_cheapest_price(catalog, key, asked.model_copy(update=of_region)) if region is not None else None

    prices = {(os, purchase): price_of((os, purchase)) for purchase in PURCHASE_MODELS}
    if os == "windows" and of_azure:
        without_evictions = (purchase for purchase in PURCHASE_MODELS if purchase != "spot")
        prices |= {("linux", purchase): price_of(("linux", purchase)) for purchase in without_evictions}
    spot_hours = 100 / (100 - to_exact(search.spot_loss_percent))
    priced = {purchase: _to_way((os, purchase), prices, spot_hours) for purchase in PURCHASE_MODELS}
    ways = {purchase: way for purchase, (way, _) in priced.items() if way is not None}
    totals = {purchase: way.cost(search.months, to_exact(search.hours_per_month)) for purchase, way in ways.items()}
    ranked = sorted(totals, key=lambda purchase: totals[purchase])
    day, retires = search.as_of or catalog.today, size.row["retirement_date"]
    ended = {name: end for name, end in find_ended_sales(catalog, key, day).items() if name not in ways}
    left = _whole_months(day, date.fromisoformat(retires)) if retires else search.months
    return BuyOut(
        size=size.row["name"],
        region=region,
        os=search.os,
        hybrid_benefit=search.hybrid_benefit,
        count=search.count,
        months=search.months,
        hours_per_month=search.hours_per_month,
        spot_loss_percent=search.spot_loss_percent,
        as_of=day,
        retirement_date=retires,
        retires_after_months=left if left < search.months else None,
        cheapest=next(iter(ranked), None),
        cheapest_without_spot=next((purchase for purchase in ranked if purchase != "spot"), None),
        unknown=[purchase for purchase in PURCHASE_MODELS if purchase not in ways and purchase not in ended],
        not_sold=[NotSoldOut(purchase=purchase, sold_until=end) for purchase, end in ended.items()],
        ways=[
            _to_out(purchase, ways, used, search, catalog.today, rate=rate) for purchase, (_, used) in priced.items()
        ],
        assumptions=ASSUMPTIONS,
        exchange_rate=rate,
        no_price=None if cheapest else _why_no_price(catalog, size, key, asked.model_copy(update={"os": os})),
    )


def _whole_months(first: date, last: date) -> int:
    """Return the whole months between two days; 0 if the last is before the first."""
    return max(12 * (last.year - first.year) + last.month - first.month - (last.day < first.day), 0)


def _to_way(paid: Paid, prices: Mapping[Paid, SizePrice | None], spot_hours: Fraction) -> _Way:
    """Return a way to buy: of hours of use, or of a commitment.

    A commitment of Azure for Windows has no price of its own in most lists: it is that for Linux, and the licence is
    paid by the hour of use, which is the difference of the prices on demand.
    """
    os, purchase = paid
    own, term = prices[paid], TERMS.get(purchase, 0)
    if own is not None:
        usd = to_exact(own.usd_per_hour)
        if term:
            return WayToBuy(used=Fraction(), committed=usd, term=term), [(paid, own)]
        used = usd * spot_hours if purchase == "spot" else usd
        return WayToBuy(used=used, committed=Fraction(), term=0), [(paid, own)]
    needed: tuple[Paid, ...] = (("linux", purchase), (os, "on_demand"), ("linux", "on_demand"))
    parts = [(part, price) for part in needed if (price := prices.get(part)) is not None]
    if not term or os != "windows" or len(parts) < len(needed):
        return None, []
    committed, windows, linux = (to_exact(price.usd_per_hour) for _, price in parts)
    if windows < linux:
        return None, []
    return WayToBuy(used=windows - linux, committed=committed, term=term), parts


def _to_out(
    purchase: Purchase,
    ways: Mapping[Purchase, WayToBuy],
    prices: list[tuple[Paid, SizePrice]],
    search: BuySearch,
    today: date,
    *,
    rate: CurrencyRate | None,
) -> BuyWayOut:
    way, on_demand = ways.get(purchase), ways.get("on_demand")
    hours, count = to_exact(search.hours_per_month), search.count
    month = even = from_hours = total = saved = None
    if way is not None:
        total = way.cost(search.months, hours) * count
        others = (other for name, other in ways.items() if name not in (purchase, "spot"))
        from_hours = way.cheapest_from(others, search.months)
        if on_demand is not None and purchase != "on_demand":
            month, even = way.break_even_month(on_demand, hours), way.break_even_hours(on_demand)
            saved = on_demand.cost(search.months, hours) * count - total
    months = sorted({*(shown for shown in _SHOWN_MONTHS if shown < search.months), search.months})
    cumulative = [way.cost(at, hours) * count for at in months] if way else []
    return BuyWayOut(
        purchase=purchase,
        term_months=TERMS.get(purchase, 0),
        usd_total=round_usd(total),
        usd_per_month=round_usd(total / search.months) if total is not None else None,
        saved_usd=round_usd(saved),
        break_even_month=month,
        break_even_percent=_percent(even),
        cheapest_from_percent=_percent(from_hours),
        cumulative=[
            BuyMonthOut(month=at, usd=round_usd(usd)) for at, usd in zip(months, cumulative, strict=bool(cumulative))
        ],
        warnings=_weaknesses([price for _, price in prices], today),
        prices=[
            BuyPriceOut(
                os=os,
                purchase=paid,
                usd_per_hour=price.usd_per_hour,
                price_as_of=price.as_of,
                price_age_days=(today - price.as_of).days,
                approximate_date=price.approximate_date,
                source_id=price.source_id,
                unusual=price.unusual,
                disputed=price.disputed,
                adjustment=to_adjustment(price.adjustment),
                estimate=price.estimate,
                converted=_convert({"usd_per_hour": price.usd_per_hour}, rate),
            )
            for (os, paid), price in prices
        ],
        converted=ConvertedWayOut(
            currency=rate.currency,
            cost_total=rate.convert(total) if total is not None else None,
            cost_per_month=rate.convert(total / search.months) if total is not None else None,
            saved=rate.convert(saved) if saved is not None else None,
            cumulative_cost=[rate.convert(usd) for usd in cumulative],
        )
        if rate is not None
        else None,
    )


def _percent(hours: Fraction | None) -> float | None:
    return round(float(100 * hours / HOURS_PER_MONTH), 2) if hours is not None else None
