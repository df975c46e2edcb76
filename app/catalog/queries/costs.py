"""Read managed disks and their prices in force on a day, the parameters of a cost, and where a size is cheapest."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.catalog.in_force import (
    Rules,
    adjusted_nano_usd,
    adjustment_json,
    earliest_spot_day,
    is_in_force,
    last_observed,
)
from app.catalog.purchases import DISK_TYPES, DiskType, Redundancy
from app.catalog.queries.params import (
    MAX_VALUES,
    PRICED_OS,
    Count,
    CurrencyParams,
    Day,
    HoursPerMonth,
    JsonBool,
    LowerText,
    OfferParams,
    Os,
    PageParams,
    RegionSet,
    SortOrder,
    optional,
    several,
)
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import Statement, cached_statement
from app.catalog.tables import select_all
from app.db.dialects import Dialect, parameters
from app.db.functions import NANO
from app.db.statements import BoundStatement, Reader, fetch, to_dicts

DISK_SORT_KEYS = ("type", "max_gib", "max_iops", "max_mbps", "usd_per_month", "usd_per_gib_month")


class DiskSearch(CurrencyParams, PageParams):
    """Which disks, and where their prices are."""

    type: Annotated[tuple[DiskType, ...], Field(max_length=MAX_VALUES)] = several(
        "Of this type; of any of several.", "premium_ssd"
    )
    redundancy: Redundancy | None = optional("Copies in one zone (`lrs`) or in three (`zrs`).", "lrs")
    min_gib: Count | None = optional("The disk holds at least this many GiB.", 1000)
    min_iops: Count | None = optional("The disk allows at least this many IOPS.", 5000)
    region: RegionSet = several(
        "The prices of this region, of the cheapest of several; default: of the cheapest of all.", "westeurope"
    )
    as_of: Day | None = optional("The prices in force on this day; default: today.", "2026-09-01")
    sort: SortOrder = Field(
        default=("type",),
        description="What to order by, `-` before one descends; unknown comes last, equals go by type and capacity. "
        f"Keys: {', '.join(DISK_SORT_KEYS)}.",
        examples=[["usd_per_gib_month"]],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRate:
    """A price of a disk in force on a day, with the day from which it is known to hold, and its source."""

    usd: Decimal
    valid_from: date
    source_id: str


DiskRates = Mapping[str, DiskRate]
"""The rates of a disk in a region by what they are per: month, or gib_hour, iops_hour and mbps_hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCatalog:
    """All disks as rows of their table in the order of their ids, and the rates of each by id and region."""

    disks: Sequence[Mapping[str, Any]]
    rates: Mapping[str, Mapping[str, DiskRates]]


def load_disks(reader: Reader, day: date, regions: Sequence[str]) -> DiskCatalog:
    """Read all disks, and the rates that are in force on a day in some regions, or in all where none is given."""
    query = BoundStatement(_DISKS)
    disks = fetch(reader, query)
    values = {f"region_{index}": code for index, code in enumerate(regions)}
    rows = fetch(reader, BoundStatement(_rates_statement(len(regions)), values | {"day": day.isoformat()}))
    rates: dict[str, dict[str, dict[str, DiskRate]]] = {}
    for disk, region, per, nano_usd, valid_from, source in rows:
        rate = DiskRate(usd=Decimal(nano_usd) / NANO, valid_from=valid_from, source_id=source)
        rates.setdefault(disk, {}).setdefault(region, {})[per] = rate
    return DiskCatalog(disks=to_dicts(query, disks), rates=rates)


_DISKS = Statement(f"{select_all('disk')} order by id", short=True)


@cached_statement(64, short=True)
def _rates_statement(sql: Dialect, regions: int) -> str:
    """Write the statement of the newest rate of each disk, region and unit; of one day that of the first source."""
    day = sql.day("day")
    there = f"and rate.region in ({', '.join(parameters('region', regions))})" if regions else ""
    return f"""
        select disk_id, region, per, nano_usd, valid_from, source_id
        from disk_price as rate
        where valid_from <= {day} {there} and not exists (
            select 1 from disk_price as newer
            where newer.region = rate.region and newer.disk_id = rate.disk_id and newer.per = rate.per
                and newer.valid_from <= {day}
                and (newer.valid_from > rate.valid_from
                    or newer.valid_from = rate.valid_from and newer.source_id < rate.source_id)
        )
        order by region, disk_id, per
    """


MAX_DISKS = 64
"""No VM takes more data disks than this."""
DISK_PATTERN = f"^({'|'.join(DISK_TYPES)}):([1-9][0-9]{{0,5}})(:([0-9]{{1,7}})(:([0-9]{{1,6}}))?)?$"
"""A type of disk, its GiB, and perhaps its IOPS and MBps."""
_ANY_DISK = re.compile(re.sub(r"\{(\d),\d\}", r"{\1,15}", DISK_PATTERN))
"""The same with larger amounts, which are refused with those that the type has."""


def parse_disk(text: str) -> tuple[str, dict[str, int]]:
    """Split `premium_ssd_v2:1024:5000:200` into the type and the gib, iops and mbps that are given.

    Raises ValueError for a text that is no such disk.
    """
    match = _ANY_DISK.fullmatch(text)
    if match is None:
        raise ValueError(
            "expected TYPE:GiB, TYPE:GiB:IOPS or TYPE:GiB:IOPS:MBps, such as premium_ssd:1024; "
            f"types are {', '.join(DISK_TYPES)}"
        )
    amounts = zip(("gib", "iops", "mbps"), match.group(2, 4, 6), strict=True)
    return match[1], {name: int(amount) for name, amount in amounts if amount is not None}


def _check_disk(text: str) -> str:
    parse_disk(text)
    return text


DiskText = Annotated[LowerText, Field(json_schema_extra={"pattern": DISK_PATTERN}), AfterValidator(_check_disk)]


class CostSearch(OfferParams, CurrencyParams):
    """Which VMs and disks to cost, and for how long they run."""

    count: int = Field(default=1, ge=1, le=100_000, description="VMs, each with its disks.", examples=[2])
    hours_per_month: HoursPerMonth = Field(
        default=Decimal(730),
        description="Hours a month that each VM runs; disks, reservations and savings plans cost the whole month.",
        examples=[730],
    )
    disk: tuple[DiskText, ...] = Field(
        default=(),
        max_length=MAX_DISKS,
        description="A disk of each VM: `premium_ssd:1024` is the smallest of that type that holds 1,024 GiB. IOPS and "
        "MBps may follow: `premium_ssd_v2:1024:5000:200`. Again for each further disk.",
        examples=[["premium_ssd:1024"]],
    )
    redundancy: Redundancy = Field(
        default="lrs", description="Of all disks: copies in one zone (`lrs`) or in three (`zrs`)."
    )
    as_of: Day | None = optional("At the prices in force on this day; default: today.", "2026-09-01")
    known_at: Day | None = optional(
        "At the VM's price as the catalog knew it at the end of this day; default: as it knows it now.", "2026-09-01"
    )


class BuySearch(CurrencyParams):
    """Which VMs are bought, for how long, and how they are used."""

    os: Os = Field(default="linux", description=PRICED_OS)
    region: RegionSet = several(
        "The prices of this region; default, and of several: of the cheapest on demand.", "eastus"
    )
    count: int = Field(default=1, ge=1, le=100_000, description="Number of VMs.", examples=[2])
    months: int = Field(default=36, ge=1, le=60, description="Months for which they are needed.", examples=[12])
    hours_per_month: HoursPerMonth = Field(
        default=Decimal(730), description="Hours a month that each VM runs.", examples=[200]
    )
    spot_loss_percent: Annotated[Decimal, Field(ge=0, le=90, allow_inf_nan=False)] = Field(
        default=Decimal(0),
        description="Part of the hours on spot whose work is lost by evictions and is done again.",
        examples=[5],
    )
    hybrid_benefit: JsonBool = Field(
        default=False, description="With Azure Hybrid Benefit: Windows VMs cost what Linux VMs do.", examples=[False]
    )

    @field_validator("hybrid_benefit")
    @classmethod
    def _is_of_windows(cls, value: bool, about: ValidationInfo) -> bool:
        if value and about.data.get("os") == "linux":
            raise PydanticCustomError("contradiction", "needs os=windows, whose licence it is; os is linux")
        return value

    as_of: Day | None = optional("At the prices in force on this day; default: today.", "2026-09-01")
    known_at: Day | None = optional(
        "At the prices as the catalog knew them at the end of this day; default: as it knows them now.", "2026-09-01"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePrice:
    """What is paid for a size in a region, with the last day on which the price was observed, and its source.

    `adjustment` is JSON of the list price and the rules; None where no rule applies. `estimate` says how it is computed
    where no list states it.
    """

    region: str
    usd_per_hour: Decimal
    as_of: date
    approximate_date: bool
    source_id: str
    adjustment: str | None
    unusual: bool
    disputed: bool
    estimate: Mapping[str, Any] | None


def find_cheapest_price(catalog: Catalog, key: str, search: CostSearch) -> SizePrice | None:
    """Find the cheapest offer of a size in the regions of `search`, on its day; None where there is none."""
    day = search.as_of or catalog.today
    days = {"day": day, "spot_since": earliest_spot_day(day)}
    if search.known_at is not None:
        days["known"] = search.known_at
    values = {f"region_{index}": code for index, code in enumerate(search.region)}
    values |= {name: bound.isoformat() for name, bound in days.items()}
    values |= {"key": key, "os": search.os, "purchase": search.purchase}
    rules, dated = catalog.snapshot.rules, search.known_at is not None
    rows = catalog.fetch(BoundStatement(_cheapest_statement(len(search.region), rules, dated=dated), values))
    for region, nano_usd, as_of, approximate_date, source_id, adjustment, unusual, disputed in rows:
        usd = Decimal(nano_usd) / NANO
        listed = usd if adjustment is None else orjson.loads(adjustment)["list_usd_per_hour"]
        return SizePrice(
            region=region,
            usd_per_hour=usd,
            as_of=as_of,
            approximate_date=approximate_date,
            source_id=source_id,
            adjustment=adjustment,
            unusual=bool(unusual),
            disputed=bool(disputed),
            estimate=catalog.snapshot.explain_computed(source_id, key, region, listed),
        )
    return None


@cached_statement(64, short=True)
def _cheapest_statement(sql: Dialect, regions: int, rules: Rules, *, dated: bool) -> str:
    """Write the statement of the cheapest offer of a size: of equals that of the first region.

    Among all regions an unusual price is not the cheapest.
    """
    day, known_at = sql.day("day"), sql.day("known") if dated else None
    there = f"price.region in ({', '.join(parameters('region', regions))})" if regions else "median_nano_usd is null"
    return f"""
        select price.region, {adjusted_nano_usd(sql, "price", day, rules)} as paid,
            {last_observed("price", day, known_at)} as as_of, price.approximate_date, price.source_id,
            {adjustment_json(sql, "price", day, rules)} as adjustment,
            price.median_nano_usd is not null as unusual, price.disputed
        from price
        where price.size_key = :key and price.os = :os and price.purchase = :purchase
            and {there} and {is_in_force("price", day, known_at, sql.day("spot_since"))}
        order by paid, price.region
        limit 1
    """
