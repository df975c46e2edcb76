"""Read the managed disks, and their prices in force on a day."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from pydantic import Field
from sqlalchemy import Date, String, and_, bindparam, cast, exists, or_, select

from app.catalog.column_types import table_of
from app.catalog.disks import DiskType, Redundancy
from app.catalog.models import Disk, DiskPrice
from app.catalog.queries.params import Count, CurrencyParams, Day, PageParams, RegionSet, SortOrder
from app.catalog.queries.price_scope import region_binds
from app.db.functions import NANO
from app.db.statements import BoundStatement, Reader, Statement, cached_statement, fetch, to_dicts

DISK, PRICE = table_of(Disk), table_of(DiskPrice)
_price = PRICE.c

DISK_SORT_KEYS = ("type", "max_gib", "max_iops", "max_mbps", "usd_per_month", "usd_per_gib_month")


class DiskSearch(CurrencyParams, PageParams):
    """Which disks, and where their prices are."""

    type: tuple[DiskType, ...] = Field(
        default=(), description="Of this type; of any of several.", examples=[["premium_ssd"]]
    )
    redundancy: Redundancy | None = Field(
        default=None, description="Copies in one zone (`lrs`) or in three (`zrs`).", examples=["lrs"]
    )
    min_gib: Count | None = Field(default=None, description="The disk holds at least this many GiB.", examples=[1000])
    min_iops: Count | None = Field(
        default=None, description="The disk allows at least this many IOPS.", examples=[5000]
    )
    region: RegionSet = Field(
        default=(),
        description="The prices of this region, of the cheapest of several; default: of the cheapest of all.",
        examples=[["westeurope"]],
    )
    as_of: Day | None = Field(
        default=None, description="The prices in force on this day; default: today.", examples=["2026-09-01"]
    )
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
    query = BoundStatement(_disks_statement(), {})
    disks = fetch(reader, query)
    values = {f"region_{index}": code for index, code in enumerate(regions)}
    rows = fetch(reader, BoundStatement(_rates_statement(len(regions)), values | {"day": day.isoformat()}))
    rates: dict[str, dict[str, dict[str, DiskRate]]] = {}
    for disk, region, per, nano_usd, valid_from, source in rows:
        rate = DiskRate(usd=Decimal(nano_usd) / NANO, valid_from=date.fromisoformat(valid_from), source_id=source)
        rates.setdefault(disk, {}).setdefault(region, {})[per] = rate
    return DiskCatalog(disks=to_dicts(query, disks), rates=rates)


@cached_statement(1)
def _disks_statement() -> Statement:
    return Statement(select(DISK).order_by(DISK.c.id), short=True)


@cached_statement(64)
def _rates_statement(regions: int) -> Statement:
    """Build the statement of the newest rate of each disk, region and unit; of one day that of the first source."""
    day: Any = bindparam("day", type_=Date)
    newer = PRICE.alias("newer").c
    later = or_(
        newer.valid_from > _price.valid_from,
        and_(newer.valid_from == _price.valid_from, newer.source_id < _price.source_id),
    )
    same = (newer[name] == _price[name] for name in ("region", "disk_id", "per"))
    query = (
        select(
            *(_price.disk_id, _price.region, _price.per, _price.nano_usd),
            cast(_price.valid_from, String).label("valid_from"),
            _price.source_id,
        )
        .where(_price.valid_from <= day, ~exists().where(*same, newer.valid_from <= day, later))
        .order_by(*(_price[name] for name in ("region", "disk_id", "per")))
    )
    if regions:
        query = query.where(or_(*(_price.region == code for code in region_binds(regions))))
    return Statement(query, short=True)
