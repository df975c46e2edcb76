"""The tables of prices: price lists as runs, disks, exchange rates and adjustments."""

from datetime import date
from decimal import Decimal

from sqlalchemy import BigInteger
from sqlmodel import Field

from app.catalog.column_types import BYTEWISE, NOT_IN_DIGEST, WITHOUT_ROWID, CatalogTable, RateColumn


class Price(CatalogTable, table=True):
    """A run: one price of one offer that a source observed on consecutive days of its lists.

    A run of a source with complete lists was observed on `valid_from`, and on the day of every complete list up to
    `seen_until`; without complete lists the two are one day.
    """

    __table_args__ = WITHOUT_ROWID

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)
    valid_from: date = Field(primary_key=True, description="the first day on which it was observed")
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    known_from: date = Field(
        primary_key=True,
        sa_column_kwargs={"info": NOT_IN_DIGEST},
        description="the day on which the first observation was ingested",
    )
    seen_until: date = Field(description="the last day on which it was observed")
    nano_usd_per_hour: int = Field(sa_type=BigInteger, description="a billionth of a US dollar an hour")
    approximate_date: bool = Field(description="the source is undated; valid_from is the year it points to")
    file_id: int | None = Field(  # no foreign key: a check of each of a million rows would take longer than it is worth
        default=None, sa_column_kwargs={"info": NOT_IN_DIGEST}, description="the file it was read in: PriceFile"
    )
    # The rest is derived at each ingest, by app.catalog.store.price_checks.
    median_nano_usd: int | None = Field(
        sa_type=BigInteger,
        default=None,
        sa_column_kwargs={"info": NOT_IN_DIGEST},
        description="where the price is unusual: the median of its size over all regions",
    )
    disputed: bool | None = Field(
        default=None,
        sa_column_kwargs={"info": NOT_IN_DIGEST},
        description="another retail list of the same weeks has another price; null where none does",
    )
    listed_until: date | None = Field(
        default=None,
        sa_column_kwargs={"info": NOT_IN_DIGEST},
        description="the last list that had the offer with a price that was refused, after this price was last seen",
    )
    ends_on: date | None = Field(
        default=None,
        sa_column_kwargs={"info": NOT_IN_DIGEST},
        description="the first day on which it can be bought this way no more; null where none is known",
    )


class RefusedPrice(CatalogTable, table=True):
    """A price of a retail list that fails a check of app.catalog.price_checks, with the rule and the evidence.

    It is as it would be in `price`, where it returns as soon as the evidence is gone.
    """

    __tablename__ = "refused_price"
    __table_args__ = WITHOUT_ROWID

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)
    valid_from: date = Field(primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    known_from: date = Field(primary_key=True, sa_column_kwargs={"info": NOT_IN_DIGEST})
    seen_until: date
    nano_usd_per_hour: int = Field(sa_type=BigInteger)
    approximate_date: bool
    file_id: int | None = Field(default=None, sa_column_kwargs={"info": NOT_IN_DIGEST})
    rule: str = Field(sa_type=BYTEWISE, description="equals_windows, cloud_services, flapping or unlike_parent")
    evidence: str = Field(sa_type=BYTEWISE, description="what it was compared with")


class PriceFile(CatalogTable, table=True):
    """A file that prices were read in: a number, where each price would repeat a path."""

    __tablename__ = "price_file"

    id: int = Field(primary_key=True)
    file: str = Field(sa_type=BYTEWISE, unique=True, description="its path as it was given")


class CompleteList(CatalogTable, table=True):
    """The list of a source for one region and day with all its prices of one kind: what it lacks was not offered."""

    __tablename__ = "price_list"
    __table_args__ = WITHOUT_ROWID

    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    region: str = Field(sa_type=BYTEWISE, primary_key=True)
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)
    day: date = Field(primary_key=True)
    known_from: date = Field(
        sa_column_kwargs={"info": NOT_IN_DIGEST}, description="the day on which it was first ingested"
    )
    rows: int = Field(description="how many prices it has")
    file: str | None = Field(sa_type=BYTEWISE, default=None, sa_column_kwargs={"info": NOT_IN_DIGEST})


class PriceTracking(CatalogTable, table=True):
    """A region, system and purchase model that has had prices, so that a further price there is a new one."""

    __tablename__ = "price_tracking"
    __table_args__ = WITHOUT_ROWID

    region: str = Field(sa_type=BYTEWISE, primary_key=True)
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)


class PriceDay(CatalogTable, table=True):
    """How many prices of a source were last observed on a day; derived at ingest.

    The newest days of sources are known from it without reading the prices.
    """

    __tablename__ = "price_day"
    __table_args__ = WITHOUT_ROWID

    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    day: date = Field(primary_key=True)
    approximate_date: bool = Field(primary_key=True, description="the source is undated")
    prices: int


class PriceTotal(CatalogTable, table=True):
    """How many prices a region, system and purchase model has on every day from `since` to the one before `until`.

    Derived at ingest, for all days. Before the first row of a region there are none.
    """

    __tablename__ = "price_total"
    __table_args__ = WITHOUT_ROWID

    region: str = Field(sa_type=BYTEWISE, primary_key=True)
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)
    since: date = Field(primary_key=True, description="the first day with these numbers")
    until: date | None = Field(default=None, description="null where they hold for ever")
    in_force: int = Field(description="how many prices are in force")
    begun: int = Field(description="how many prices have begun, in force or not")


class Disk(CatalogTable, table=True):
    """A managed disk: of one size, or of any size, with capacity, IOPS and throughput each billed for itself."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    type: str = Field(sa_type=BYTEWISE)
    redundancy: str = Field(sa_type=BYTEWISE)
    size: str | None = Field(sa_type=BYTEWISE, default=None, description="null for disks of any size")
    sku: str = Field(sa_type=BYTEWISE)
    min_gib: int | None = Field(default=None, description="of disks of any size")
    max_gib: int
    max_iops: int | None = None
    max_mbps: int | None = None
    burst_iops: int | None = None
    burst_mbps: int | None = None
    included_iops: int | None = Field(default=None, description="in the price of the capacity")
    included_mbps: int | None = None
    iops_per_gib: int | None = None
    mbps_per_iops: float | None = None
    max_shares: int | None = None
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")


class DiskPrice(CatalogTable, table=True):
    """A price of a disk in a region from a date on, by source; older ones are kept as history."""

    __tablename__ = "disk_price"
    __table_args__ = WITHOUT_ROWID

    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    disk_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="disk.id")
    per: str = Field(sa_type=BYTEWISE, primary_key=True, description="month, gib_hour, iops_hour or mbps_hour")
    valid_from: date = Field(primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    nano_usd: int = Field(sa_type=BigInteger, description="a billionth of a US dollar")


class ExchangeRate(CatalogTable, table=True):
    """How many units of a currency one euro was worth on a day; there are no rows of the euro itself."""

    __tablename__ = "exchange_rate"
    __table_args__ = WITHOUT_ROWID

    currency: str = Field(sa_type=BYTEWISE, primary_key=True, description="ISO 4217")
    day: date = Field(primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    units_per_euro: Decimal = Field(sa_type=RateColumn)


class Adjustment(CatalogTable, table=True):
    """A rule by which the reader's own price differs from the list price; null is any size, region, system or day.

    Rules apply in the order of `source_id` and `position`. One has either a discount or a fixed price.
    """

    __table_args__ = WITHOUT_ROWID

    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    position: int = Field(primary_key=True, description="in the file, from 1")
    name: str = Field(sa_type=BYTEWISE)
    size: str | None = Field(sa_type=BYTEWISE, default=None, description="a glob on the key of a size")
    region: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="region.code")
    os: str | None = Field(sa_type=BYTEWISE, default=None)
    purchase: str | None = Field(sa_type=BYTEWISE, default=None)
    discount_basis_points: int | None = Field(default=None, description="hundredths of a percent; negative is a markup")
    nano_usd_per_hour: int | None = Field(sa_type=BigInteger, default=None, description="the fixed price")
    valid_from: date | None = None
    valid_until: date | None = Field(default=None, description="the last day")
