"""The responses about managed disks, and about what VMs with disks cost."""

from datetime import date

from pydantic import Field

from app.schemas.sizes import AdjustmentField, Amount, ExchangeRateField, NoPriceField, Omittable, Out, PageOut, Usd


class ConvertedDiskPricesOut(Out):
    """The prices of a disk in the requested currency, by the answer's exchange rate; null is unknown."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    price_per_month: Amount | None = Field(description="usd_per_month, converted.")
    price_per_gib_hour: Amount | None = Field(description="usd_per_gib_hour, converted.")
    price_per_iops_hour: Amount | None = Field(description="usd_per_iops_hour, converted.")
    price_per_mbps_hour: Amount | None = Field(description="usd_per_mbps_hour, converted.")
    price_per_gib_month: Amount | None = Field(description="usd_per_gib_month, converted.")


class DiskOut(Out):
    """A managed disk with its prices in a region: of one size, or of any size."""

    id: str = Field(description="Its id: `p30-lrs`.")
    type: str = Field(description="standard_hdd, standard_ssd, premium_ssd, premium_ssd_v2 or ultra_disk. Extensible.")
    redundancy: str = Field(description="lrs (copies in one zone) or zrs (in three). Extensible.")
    size: str | None = Field(description="The vendor's name of the size, `P30`; null for a disk of any size.")
    sku: str = Field(description="The vendor's name of type and redundancy: `Premium_LRS`.")
    min_gib: int | None = Field(description="The least capacity of a disk of any size, GiB.")
    max_gib: int = Field(description="The capacity of a disk of a size, the greatest of one of any size, GiB.")
    max_iops: int | None = Field(description="Operations a second; of a disk of any size the most it can have.")
    max_mbps: int | None = Field(description="Megabytes (10^6) a second; of a disk of any size the most it can have.")
    burst_iops: int | None = Field(description="Operations a second in a burst on credit; 0: none.")
    burst_mbps: int | None = Field(description="Megabytes a second in a burst on credit; 0: none.")
    included_iops: int | None = Field(description="Of a disk of any size: IOPS in the price of its capacity.")
    included_mbps: int | None = Field(description="Of a disk of any size: MBps in the price of its capacity.")
    iops_per_gib: int | None = Field(description="Of a disk of any size: IOPS that it can have for each GiB.")
    mbps_per_iops: float | None = Field(description="Of a disk of any size: MBps that it can have for each IOPS.")
    max_shares: int | None = Field(description="VMs that can share the disk.")
    source_id: str = Field(description="Id of the source in GET /sources that describes the disk.")
    region: str | None = Field(description="Where the prices hold: the requested region, else the cheapest.")
    usd_per_month: Usd | None = Field(description="Price of a disk of a size; null is unknown, or of any size.")
    usd_per_gib_hour: Usd | None = Field(description="Of a disk of any size: price of capacity.")
    usd_per_iops_hour: Usd | None = Field(description="Of a disk of any size: price of IOPS above those included.")
    usd_per_mbps_hour: Usd | None = Field(description="Of a disk of any size: price of MBps above those included.")
    usd_per_gib_month: Usd | None = Field(
        description="A GiB of the full disk: usd_per_month / max_gib, or 730 usd_per_gib_hour; 9 decimal places."
    )
    price_as_of: date | None = Field(description="The day from which the oldest of the prices is known to hold.")
    price_age_days: int | None = Field(description="Days since price_as_of, today.")
    price_source_ids: list[str] = Field(description="Ids of the sources of the prices in GET /sources.")
    converted: Omittable[ConvertedDiskPricesOut] = Field(
        default=None, description="With `currency`: the prices in that currency."
    )


class DiskPage(PageOut):
    """Managed disks."""

    items: list[DiskOut] = Field(description="The disks of this page.")
    exchange_rate: ExchangeRateField = None


class ConvertedCostOfVmOut(Out):
    """What one VM costs in the requested currency, by the answer's exchange rate; null is unknown."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    price_per_hour: Amount | None = Field(description="usd_per_hour, converted.")
    price_per_month: Amount | None = Field(description="usd_per_month, converted.")
    price_per_year: Amount | None = Field(description="usd_per_year, converted.")
    price_per_vcpu_hour: Amount | None = Field(description="usd_per_vcpu_hour, converted.")
    price_per_memory_gib_hour: Amount | None = Field(description="usd_per_memory_gib_hour, converted.")
    price_per_gpu_hour: Amount | None = Field(description="usd_per_gpu_hour, converted.")
    price_per_gpu_gib_hour: Amount | None = Field(description="usd_per_gpu_gib_hour, converted.")


class ConvertedMonthOut(Out):
    """What a disk, or all VMs with their disks, cost in the requested currency; null is unknown."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    price_per_month: Amount | None = Field(description="usd_per_month, converted.")
    price_per_year: Amount | None = Field(description="usd_per_year, converted.")


class CostOfVmOut(Out):
    """What one VM costs; null is unknown, or there is none of the resource."""

    usd_per_hour: Usd | None = Field(description="Price under the requested purchase model.")
    usd_per_month: Usd | None = Field(description="usd_per_hour x hours_per_month.")
    usd_per_year: Usd | None = Field(description="usd_per_hour x hours_per_month x 12.")
    usd_per_vcpu_hour: Usd | None = Field(description="usd_per_hour by vCPUs, rounded to 9 decimal places.")
    usd_per_memory_gib_hour: Usd | None = Field(description="usd_per_hour by GiB of memory.")
    usd_per_gpu_hour: Usd | None = Field(description="usd_per_hour by GPUs; a fraction of one counts as such.")
    usd_per_gpu_gib_hour: Usd | None = Field(description="usd_per_hour by GiB of GPU memory.")
    price_as_of: date | None = Field(description="The day from which the price is known to hold.")
    price_age_days: int | None = Field(description="Days since price_as_of, today.")
    approximate_date: bool | None = Field(description="The source is undated: price_as_of is only the year.")
    source_id: str | None = Field(description="Id of the source of the price in GET /sources.")
    adjustment: AdjustmentField = None
    converted: Omittable[ConvertedCostOfVmOut] = Field(
        default=None, description="With `currency`: the cost in that currency."
    )


class CostOfDiskOut(Out):
    """A disk of one VM: what was requested, what was chosen, what it costs."""

    requested: str = Field(description="The disk as it was requested: `premium_ssd:1000`.")
    disk: str = Field(description="Id of the chosen disk in GET /disks: the smallest that has what was requested.")
    type: str = Field(description="Its type.")
    redundancy: str = Field(description="lrs or zrs. Extensible.")
    size: str | None = Field(description="The vendor's name of its size; null for a disk of any size.")
    gib: int = Field(description="Capacity that is paid for, GiB.")
    iops: int | None = Field(description="Operations a second that are paid for.")
    mbps: int | None = Field(description="Megabytes (10^6) a second that are paid for.")
    usd_per_month: Usd | None = Field(description="Price of the whole month, whether the VM runs or not.")
    usd_per_year: Usd | None = Field(description="usd_per_month x 12.")
    price_as_of: date | None = Field(description="The day from which the oldest of its prices is known to hold.")
    price_age_days: int | None = Field(description="Days since price_as_of, today.")
    source_ids: list[str] = Field(description="Ids of the sources of its prices in GET /sources.")
    converted: Omittable[ConvertedMonthOut] = Field(
        default=None, description="With `currency`: the cost in that currency."
    )


class CostInAllOut(Out):
    """What all VMs cost with their disks; null where a part is unknown."""

    usd_per_month: Usd | None = Field(description="count x (the VM and its disks).")
    usd_per_year: Usd | None = Field(description="usd_per_month x 12.")
    converted: Omittable[ConvertedMonthOut] = Field(
        default=None, description="With `currency`: the cost in that currency."
    )


class CostOut(Out):
    """The cost of VMs of a size with disks; each figure is exact, and rounded once."""

    size: str = Field(description="Name of the size.")
    region: str | None = Field(description="Where the prices hold: the requested region, else the VM's cheapest.")
    os: str = Field(description="linux or windows. Extensible.")
    purchase: str = Field(description="The purchase model of the VM. Extensible.")
    count: int = Field(description="How many VMs there are, each with the disks.")
    hours_per_month: Usd = Field(description="Hours a month that each VM runs.")
    as_of: date = Field(description="The day whose prices were taken.")
    vm: CostOfVmOut = Field(description="One VM without disks.")
    disks: list[CostOfDiskOut] = Field(description="The disks of one VM, in the order of the request.")
    total: CostInAllOut = Field(description="All VMs with their disks.")
    unknown_parts: list[str] = Field(description="What has no price, and leaves the total unknown: `vm`, `disks[0]`.")
    warnings: list[str] = Field(
        description="NO_PRICE, OLD_PRICE, UNUSUAL_PRICE, LICENCE_INCLUDED, NO_PREMIUM_STORAGE, NO_ULTRA_DISK, "
        "TOO_MANY_DISKS, RETIRING, … Extensible."
    )
    not_included: list[str] = Field(description="What the figures leave out.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None
