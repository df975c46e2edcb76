"""The tables of the catalog, without those of webhooks; docs/catalog.md describes each, and how values are resolved."""

from datetime import date, datetime
from decimal import Decimal

from sqlalchemy import JSON, BigInteger, Column, Index, false, text
from sqlmodel import Field, SQLModel

from app.catalog.column_types import BYTEWISE, NOT_IN_DIGEST, WITHOUT_ROWID, RateColumn, UtcDateTime
from app.catalog.providers import DEFAULT_PROVIDER


class Source(SQLModel, table=True):
    """A document, feed or data set that facts and prices come from."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    title: str = Field(sa_type=BYTEWISE)
    publisher: str = Field(sa_type=BYTEWISE)
    kind: str = Field(sa_type=BYTEWISE)
    url: str | None = Field(sa_type=BYTEWISE, default=None)
    published_on: date | None = None
    sha256: str = Field(sa_type=BYTEWISE)
    pinned: bool = Field(
        default=False,
        sa_column_kwargs={"server_default": false()},
        description="what it says stays accepted, whatever others say",
    )
    retail: bool = Field(
        default=False,
        sa_column_kwargs={"server_default": false()},
        description="its prices are those that the vendor publishes for everybody, which are checked",
    )
    formula: str | None = Field(
        sa_type=BYTEWISE, default=None, description="how its prices were computed; null where a list states them"
    )


class Series(SQLModel, table=True):
    """A family of sizes, with the rack its VMs form where they do."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    provider: str = Field(sa_type=BYTEWISE)
    family: str | None = Field(sa_type=BYTEWISE, default=None)
    category: str | None = Field(sa_type=BYTEWISE, default=None)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None)
    use_cases: str | None = Field(sa_type=BYTEWISE, default=None)
    integrations: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_dtypes: str | None = Field(sa_type=BYTEWISE, default=None)
    supported_images: str | None = Field(sa_type=BYTEWISE, default=None)
    ofed_driver: str | None = Field(sa_type=BYTEWISE, default=None)
    scale_up_domain_gpus: int | None = None
    rack_vms: int | None = None
    rack_gpus: int | None = None
    rack_nvlink_tb_per_s: float | None = None
    rack_fast_memory_tb: float | None = None
    rack_hbm_tb: float | None = None
    rack_lpddr_tb: float | None = None
    rack_fp4_pflops: float | None = None
    retirement_date: date | None = None
    cloud_services: bool | None = Field(default=None, description="price lists have meters of Cloud Services for it")
    reserved_1y_until: date | None = Field(default=None, description="the last day reservations of a year were sold")
    reserved_3y_until: date | None = None


class Gpu(SQLModel, table=True):
    """A GPU model as the operating system sees one of it; throughput is dense."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    vendor: str = Field(sa_type=BYTEWISE)
    model: str = Field(sa_type=BYTEWISE)
    family: str = Field(sa_type=BYTEWISE)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None)
    architecture: str | None = Field(sa_type=BYTEWISE, default=None)
    compute_capability: str | None = Field(sa_type=BYTEWISE, default=None)
    memory_gib: float | None = None
    usable_memory_gib: float | None = None
    memory_bandwidth_gb_per_s: float | None = None
    fp64_tflops: float | None = None
    fp32_tflops: float | None = None
    tf32_tflops: float | None = None
    fp16_tflops: float | None = None
    bf16_tflops: float | None = None
    fp8_tflops: float | None = None
    fp4_tflops: float | None = None
    int8_tops: float | None = None
    interconnect: str | None = Field(sa_type=BYTEWISE, default=None)
    interconnect_gb_per_s: float | None = None
    scale_up_domain_gpus: int | None = None


class Size(SQLModel, table=True):
    """The accepted values of one VM size; null is unknown, zero is zero.

    A size is known by its key, so that a source that spells its name otherwise means the same size; `name` is the
    spelling of the source with most authority.
    """

    key: str = Field(
        sa_type=BYTEWISE, primary_key=True, description="the name in lower case, without the prefix of its provider"
    )
    name: str = Field(sa_type=BYTEWISE, unique=True)
    provider: str = Field(sa_type=BYTEWISE)
    series_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="series.id", index=True)
    category: str | None = Field(
        sa_type=BYTEWISE, default=None, description="gpu_accelerated if it has GPUs, else that of the series"
    )
    quota_family: str | None = Field(sa_type=BYTEWISE, default=None, description="whose vCPU quota it counts towards")
    parent_size: str | None = Field(sa_type=BYTEWISE, default=None, description="the size whose vCPUs are constrained")
    verified: bool
    disputed: bool
    disputed_fields: str = Field(sa_type=BYTEWISE, description="names joined by `; `; empty where all sources agree")
    search_text: str = Field(sa_type=BYTEWISE, description="what `q` looks through: name, series, GPU; lower case")
    vcpus: int | None = Field(default=None, index=True)
    cpu_model: str | None = Field(sa_type=BYTEWISE, default=None)
    cpu_vendor: str | None = Field(sa_type=BYTEWISE, default=None)
    arch: str | None = Field(sa_type=BYTEWISE, default=None)
    coremark: int | None = None
    burstable: bool | None = None
    cpu_baseline_percent: float | None = None
    cpu_credits_per_hour: int | None = None
    memory_gib: float | None = None
    gpu_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="gpu.id", index=True)
    gpu_vendor: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_model: str | None = Field(sa_type=BYTEWISE, default=None)
    gpu_count: float | None = Field(default=None, description="the double nearest to numerator / denominator")
    gpu_count_numerator: int | None = None
    gpu_count_denominator: int | None = None
    gpu_memory_gib: float | None = Field(default=None, index=True, description="all GPUs of the VM together")
    gpu_memory_gib_per_gpu: float | None = Field(default=None, description="of one whole GPU")
    gpu_interconnect: str | None = Field(sa_type=BYTEWISE, default=None)
    nvlink: bool | None = None
    temp_disk_gib: float | None = None
    temp_disk_count: int | None = None
    nvme_disk_gib: float | None = None
    nvme_disk_count: int | None = None
    local_nvme: bool | None = None
    max_data_disks: int | None = None
    uncached_disk_iops: int | None = None
    uncached_disk_mbps: float | None = None
    disk_controller: str | None = Field(sa_type=BYTEWISE, default=None, description="names joined by `, `")
    max_nics: int | None = None
    network_mbps: int | None = None
    infiniband: bool | None = None
    infiniband_gbps: float | None = None
    fabric: str | None = Field(sa_type=BYTEWISE, default=None)
    confidential_computing: str | None = Field(sa_type=BYTEWISE, default=None)
    premium_storage: bool | None = None
    premium_storage_caching: bool | None = None
    ultra_disk: bool | None = None
    live_migration: bool | None = None
    memory_preserving_updates: bool | None = None
    generation_1: bool | None = None
    generation_2: bool | None = None
    accelerated_networking: bool | None = None
    ephemeral_os_disk: bool | None = None
    nested_virtualization: bool | None = None
    hibernation: bool | None = None
    gpudirect_rdma: bool | None = None
    encryption_at_host: bool | None = None
    trusted_launch: bool | None = None
    preview: bool | None = None
    withdrawn: bool | None = Field(default=None, description="can no longer be had, though no date was announced")
    retirement_date: date | None = None
    source_id: str | None = Field(
        sa_type=BYTEWISE, default=None, foreign_key="source.id", description="the first source by authority"
    )


class SizeAlias(SQLModel, table=True):
    """Another name of a size, as a price list or an older page spells it."""

    __tablename__ = "size_alias"

    alias_key: str = Field(sa_type=BYTEWISE, primary_key=True)
    alias: str = Field(sa_type=BYTEWISE)
    size_key: str = Field(sa_type=BYTEWISE, foreign_key="size.key", index=True)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")
    reason: str = Field(sa_type=BYTEWISE)


class Fact(SQLModel, table=True):
    """The value that one source states for one field of one subject: parsed, and verbatim with file and line."""

    kind: str = Field(sa_type=BYTEWISE, primary_key=True)
    subject: str = Field(sa_type=BYTEWISE, primary_key=True, description="a size's key, a series' or a GPU's id")
    field: str = Field(sa_type=BYTEWISE, primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id", index=True)
    written_as: str = Field(sa_type=BYTEWISE, description="the subject as the source spells it")
    value: str = Field(sa_type=BYTEWISE, description="as app.catalog.fields.to_text writes it")
    unit: str | None = Field(sa_type=BYTEWISE, default=None)
    raw: str = Field(sa_type=BYTEWISE)
    file: str = Field(sa_type=BYTEWISE)
    line: int
    note: str | None = Field(sa_type=BYTEWISE, default=None)
    corrected_value: str | None = Field(
        sa_type=BYTEWISE, default=None, description="what is taken instead of a value that is known to be wrong"
    )
    verdict: str = Field(sa_type=BYTEWISE, description="accepted, agrees or disputed", index=True)
    reason: str = Field(sa_type=BYTEWISE, description="why this value was or was not accepted")


class Correction(SQLModel, table=True):
    """A fact that is known to be wrong, with the value to use instead and why."""

    kind: str = Field(sa_type=BYTEWISE, primary_key=True)
    subject: str = Field(sa_type=BYTEWISE, primary_key=True)
    field: str = Field(sa_type=BYTEWISE, primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    value: str = Field(sa_type=BYTEWISE)
    reason: str = Field(sa_type=BYTEWISE)


class Region(SQLModel, table=True):
    """A region of a provider; where one price is for all of its regions, they are one here, without a place."""

    code: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    geography: str | None = Field(sa_type=BYTEWISE, default=None)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")
    provider: str = Field(
        sa_type=BYTEWISE, default=DEFAULT_PROVIDER.id, sa_column_kwargs={"server_default": DEFAULT_PROVIDER.id}
    )
    place: str | None = Field(sa_type=BYTEWISE, default=None, description="the city or state")
    country: str | None = Field(sa_type=BYTEWISE, default=None, description="by ISO 3166-1: US")
    continent: str | None = Field(sa_type=BYTEWISE, default=None)
    latitude: float | None = Field(default=None, description="degrees north")
    longitude: float | None = Field(default=None, description="degrees east")


class Availability(SQLModel, table=True):
    """A region in which a source says that a size is offered, on the day of the source; other regions lack it."""

    __table_args__ = WITHOUT_ROWID

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    zones: str = Field(
        sa_type=BYTEWISE, description="joined by spaces; empty where a zone cannot be chosen, ? if unknown"
    )
    file: str = Field(sa_type=BYTEWISE, sa_column_kwargs={"info": NOT_IN_DIGEST}, description="where it was read")


class Price(SQLModel, table=True):
    """A run: one price of one offer that a source observed on consecutive days of its lists.

    A run of a source with complete lists was observed on `valid_from`, and on the day of every complete list up to
    `seen_until`; without complete lists the two are one day.
    """

    __table_args__ = (
        # The few prices on which lists disagree, which lists of conflicts look for.
        Index(
            "ix_price_disputed",
            *("size_key", "region", "os", "purchase"),
            sqlite_where=text("disputed is 1"),
            postgresql_where=text("disputed is true"),
        ),
        WITHOUT_ROWID,
    )

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


class RefusedPrice(SQLModel, table=True):
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


class PriceFile(SQLModel, table=True):
    """A file that prices were read in: a number, where each price would repeat a path."""

    __tablename__ = "price_file"

    id: int = Field(primary_key=True)
    file: str = Field(sa_type=BYTEWISE, unique=True, description="its path as it was given")


class CompleteList(SQLModel, table=True):
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


class PriceTracking(SQLModel, table=True):
    """A region, system and purchase model that has had prices, so that a further price there is a new one."""

    __tablename__ = "price_tracking"
    __table_args__ = WITHOUT_ROWID

    region: str = Field(sa_type=BYTEWISE, primary_key=True)
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    purchase: str = Field(sa_type=BYTEWISE, primary_key=True)


class PriceDay(SQLModel, table=True):
    """How many prices of a source were last observed on a day; derived at ingest.

    The newest days of sources are known from it without reading the prices.
    """

    __tablename__ = "price_day"
    __table_args__ = WITHOUT_ROWID

    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    day: date = Field(primary_key=True)
    approximate_date: bool = Field(primary_key=True, description="the source is undated")
    prices: int


class PriceTotal(SQLModel, table=True):
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


class Disk(SQLModel, table=True):
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


class DiskPrice(SQLModel, table=True):
    """A price of a disk in a region from a date on, by source; older ones are kept as history."""

    __tablename__ = "disk_price"
    __table_args__ = WITHOUT_ROWID

    region: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="region.code")
    disk_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="disk.id")
    per: str = Field(sa_type=BYTEWISE, primary_key=True, description="month, gib_hour, iops_hour or mbps_hour")
    valid_from: date = Field(primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    nano_usd: int = Field(sa_type=BigInteger, description="a billionth of a US dollar")


class ExchangeRate(SQLModel, table=True):
    """How many units of a currency one euro was worth on a day; there are no rows of the euro itself."""

    __tablename__ = "exchange_rate"
    __table_args__ = WITHOUT_ROWID

    currency: str = Field(sa_type=BYTEWISE, primary_key=True, description="ISO 4217")
    day: date = Field(primary_key=True)
    source_id: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="source.id")
    units_per_euro: Decimal = Field(sa_type=RateColumn)


class Adjustment(SQLModel, table=True):
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


class Offer(SQLModel, table=True):
    """What a size costs today in a region by each purchase model; derived at ingest.

    The regions of `app.catalog.purchases.ANY_REGION` have every size, with its offer in the region where it is
    cheapest by that purchase model, or with no price.
    There are no foreign keys: offers are made of rows of sizes and prices, and PostgreSQL would take longer to look for
    these again than to write an offer.
    """

    __table_args__ = (
        Index("ix_offer_on_demand", "region", "os", "on_demand_rank_usd", "size_key"),
        Index("ix_offer_spot", "region", "os", "spot_rank_usd", "size_key"),
        WITHOUT_ROWID,
    )

    region: str = Field(sa_type=BYTEWISE, primary_key=True, description="where it was asked for, or one of ANY_REGION")
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    size_key: str = Field(sa_type=BYTEWISE, primary_key=True)
    gpu_memory_gib: float | None = Field(default=None, description="this and the nine below: as in size")
    gpu_count: float | None = None
    gpu_count_numerator: int | None = None
    gpu_count_denominator: int | None = None
    vcpus: int | None = None
    coremark: int | None = None
    memory_gib: float | None = None
    preview: bool | None = None
    withdrawn: bool | None = None
    retirement_date: date | None = None
    on_demand_rank_usd: float = Field(description="USD an hour; infinity where unknown")
    spot_rank_usd: float
    reserved_1y_rank_usd: float | None = Field(default=None, description="null where unknown: no index is by these")
    reserved_3y_rank_usd: float | None = None
    savings_1y_rank_usd: float | None = None
    savings_3y_rank_usd: float | None = None
    priced_in: str | None = Field(sa_type=BYTEWISE, default=None)
    on_demand_as_of: date | None = Field(default=None, description="the day from which the price is known to hold")
    spot_as_of: date | None = None
    reserved_1y_as_of: date | None = None
    reserved_3y_as_of: date | None = None
    savings_1y_as_of: date | None = None
    savings_3y_as_of: date | None = None
    on_demand_approximate_date: bool | None = None
    spot_approximate_date: bool | None = None
    reserved_1y_approximate_date: bool | None = None
    reserved_3y_approximate_date: bool | None = None
    savings_1y_approximate_date: bool | None = None
    savings_3y_approximate_date: bool | None = None
    on_demand_adjustment: str | None = Field(
        sa_type=BYTEWISE, default=None, description="JSON: list price and rules; null where none of Adjustment applies"
    )
    spot_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    on_demand_median_usd: float | None = Field(
        default=None, description="where the price is unusual: the median of the size over all regions"
    )
    spot_median_usd: float | None = None
    reserved_1y_median_usd: float | None = None
    reserved_3y_median_usd: float | None = None
    savings_1y_median_usd: float | None = None
    savings_3y_median_usd: float | None = None
    on_demand_disputed: bool | None = Field(default=None, description="retail lists disagree on the price")
    spot_disputed: bool | None = None
    reserved_1y_disputed: bool | None = None
    reserved_3y_disputed: bool | None = None
    savings_1y_disputed: bool | None = None
    savings_3y_disputed: bool | None = None
    on_demand_formula: str | None = Field(
        sa_type=BYTEWISE, default=None, description="how the price is computed; null where a list states it"
    )
    spot_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_1y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_3y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_1y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_3y_formula: str | None = Field(sa_type=BYTEWISE, default=None)


class SizeJson(SQLModel, table=True):
    """A size as a JSON object without status and price, written at ingest, so that searches need not serialize it."""

    __tablename__ = "size_doc"

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    doc: str = Field(sa_type=BYTEWISE)


class LanguageModel(SQLModel, table=True):
    """A language model's configuration, a preset of the estimator; `app.catalog.presets` documents each column."""

    __tablename__ = "model"

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None, description="joined by `; `")
    hf_repo: str | None = Field(sa_type=BYTEWISE, default=None)
    license: str | None = Field(sa_type=BYTEWISE, default=None)
    dtype: str | None = Field(sa_type=BYTEWISE, default=None)
    fp8_block: int | None = None
    params: int = Field(sa_type=BigInteger)
    active_params: int = Field(sa_type=BigInteger)
    published_params: int | None = Field(sa_type=BigInteger, default=None)
    params_note: str | None = Field(sa_type=BYTEWISE, default=None)
    max_context_tokens: int | None = None
    layers: int
    hidden: int
    vocab: int
    tied_embeddings: bool
    learned_positions: int
    attention: str = Field(sa_type=BYTEWISE)
    heads: int
    kv_heads: int
    head_dim: int
    sliding_window: int | None = None
    sliding_layers: int
    kv_lora_rank: int | None = None
    q_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    mlp: str = Field(sa_type=BYTEWISE)
    intermediate: int | None = None
    moe_layers: int
    experts: int
    experts_per_token: int
    shared_experts: int
    moe_intermediate: int | None = None
    norms_per_layer: int
    norm_bias: bool
    embedding_norm: bool
    qk_norm: str | None = Field(sa_type=BYTEWISE, default=None)
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    lm_head_bias: bool
    router_bias: bool
    attention_sinks: bool
    config: str | None = Field(sa_type=BYTEWISE, default=None, description="JSON: fields of config.json")
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")


class Benchmark(SQLModel, table=True):
    """A published result."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    series_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="series.id", index=True)
    scope: str = Field(sa_type=BYTEWISE, description="gpu, vm or rack")
    workload: str = Field(sa_type=BYTEWISE)
    metric: str = Field(sa_type=BYTEWISE)
    value: float
    unit: str = Field(sa_type=BYTEWISE)
    comparison: str | None = Field(sa_type=BYTEWISE, default=None)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")


class IngestedFile(SQLModel, table=True):
    """A file that was ingested, so that rows it no longer has are deleted when it is ingested again."""

    __tablename__ = "ingested_file"

    file: str = Field(sa_type=BYTEWISE, primary_key=True, description="its path as it was given")
    kind: str = Field(sa_type=BYTEWISE, primary_key=True, description="prices, aliases, regions, documents …")
    keys: list[list[str]] = Field(
        sa_column=Column(JSON, nullable=False),
        description="source and key of each row; empty for prices and facts, which know their file",
    )


class FeedRun(SQLModel, table=True):
    """The last refresh of a feed, also one that failed and so has no revision; no content of the catalog."""

    __tablename__ = "feed_run"

    feed: str = Field(sa_type=BYTEWISE, primary_key=True, description="azure-prices, exchange-rates …")
    ended_at: datetime = Field(sa_type=UtcDateTime)
    succeeded_at: datetime | None = Field(
        sa_type=UtcDateTime, default=None, description="when one last ended with nothing refused; null for never"
    )


class Revision(SQLModel, table=True):
    """One ingest that changed something: what the whole catalog's content was after it."""

    number: int = Field(primary_key=True)
    created_at: datetime = Field(sa_type=UtcDateTime)
    digest: str = Field(sa_type=BYTEWISE, description="sha256 of how many rows each table has, and of their sums")
    source_ids: list[str] = Field(sa_column=Column(JSON, nullable=False))
    counts: dict[str, int] = Field(sa_column=Column(JSON, nullable=False))
    changes: int | None = Field(
        default=None, description="how many events it made; null where there was nothing to compare it with"
    )


class Change(SQLModel, table=True):
    """An event: what a revision changed of a size, one of its accepted values, or one of its prices in force."""

    id: int = Field(primary_key=True, description="grows from event to event, and from revision to revision")
    revision: int = Field(index=True, description="the number of the revision, which is written after its events")
    kind: str = Field(sa_type=BYTEWISE, description="app.catalog.fields.ChangeKind")
    size_key: str = Field(sa_type=BYTEWISE, description="no foreign key: the size may be gone")
    size: str = Field(sa_type=BYTEWISE, description="the name of the size at that revision")
    region: str | None = Field(sa_type=BYTEWISE, default=None, description="this and the two below: of a price")
    os: str | None = Field(sa_type=BYTEWISE, default=None)
    purchase: str | None = Field(sa_type=BYTEWISE, default=None)
    field: str | None = Field(sa_type=BYTEWISE, default=None, description="of a value or a dispute")
    old: str | None = Field(sa_type=BYTEWISE, default=None, description="USD an hour, or a value as facts have it")
    new: str | None = Field(sa_type=BYTEWISE, default=None)
    percent: float | None = Field(default=None, description="of the old price, negative where it fell")
    valid_from: date | None = Field(default=None, description="the first day on which the new price was observed")
    source_id: str | None = Field(
        sa_type=BYTEWISE, default=None, description="no foreign key: the source may be forgotten"
    )


class TableSum(SQLModel, table=True):
    """The content of a table at the newest revision, from which the next digest starts."""

    __tablename__ = "table_sum"

    heading: str = Field(sa_type=BYTEWISE, primary_key=True, description="the table, and its columns in brackets")
    rows: int
    sum: str = Field(sa_type=BYTEWISE, description="the sum of its rows' hashes modulo 2^256, hexadecimal")
