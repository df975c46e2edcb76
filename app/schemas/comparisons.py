"""The responses about similar sizes, comparisons, disks and costs."""

from datetime import date
from typing import Annotated

from pydantic import Field, PlainSerializer

from app.catalog.providers import PROVIDERS
from app.fit.similarity import DISTANCE_DIGITS
from app.schemas.sizes import (
    AdjustmentField,
    Amount,
    ExchangeRateField,
    NextCursor,
    NoPriceField,
    Omittable,
    Out,
    PageOut,
    Total,
    Usd,
)

Distance = Annotated[
    float, PlainSerializer(lambda exact: round(exact, DISTANCE_DIGITS), return_type=float, when_used="json")
]
"""A share of 1, which JSON has rounded: who rounds it to fewer digits for a page starts from the exact one."""


class TermOut(Out):
    """One term of a distance."""

    term: str = Field(description="gpu_class, gpu_memory_gib, gpu_count, usd_per_hour, vcpus, memory_gib. Extensible.")
    unit: str | None = Field(description="Of wanted, value and difference; null for the class of GPU.")
    wanted: float | None = Field(description="The value of the size in the request.")
    value: float | None = Field(description="The value of the other size.")
    difference: float | None = Field(description="value - wanted; null where the value is unknown.")
    difference_percent: float | None = Field(description="100 x (value - wanted) / wanted.")
    weight: int = Field(description="Weight of the term.")
    distance: Distance = Field(description="0 (the same) to 1 (eight times, an eighth, or another vendor's GPU).")
    contribution: Distance = Field(
        description="What it adds to the distance of the sizes: weight x distance / sum of weights."
    )
    detail: str = Field(description="The same in words.")


class SimilarOut(Out):
    """A size that is similar to another."""

    size: str = Field(description="Name of the size.")
    provider: str | None = Field(description=f"Who sells it: {', '.join(PROVIDERS)}. Extensible.")
    distance: Distance = Field(description="The sum of the contributions: 0 (the same) to 1.")
    cheaper: bool | None = Field(description="Costs less an hour; null where a price is unknown.")
    bigger: bool | None = Field(description="At least as much GPU memory, vCPUs and memory, and more of one of them.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    verified: bool = Field(description="Whether the vendor's own documents name this size.")
    series: str | None = Field(description="Id of its series.")
    gpu_model: str | None = Field(description="The GPU with its memory.")
    gpu_count: float | None = Field(description="To four digits; the exact fraction is in gpu_fraction.")
    gpu_fraction: str | None = Field(description="The exact part of a GPU, `1/6`; null for whole GPUs.")
    gpu_memory_gib: float | None = Field(description="Of all GPUs of the VM together, GiB.")
    vcpus: int | None = Field(description="vCPUs of the VM.")
    memory_gib: float | None = Field(description="Memory of the VM, GiB.")
    region: str | None = Field(description="Where the price holds.")
    usd_per_hour: Usd | None = Field(description="Price under the requested purchase model; null is unknown.")
    adjustment: AdjustmentField = None
    terms: list[TermOut] = Field(
        description="The terms of the distance whose value is known for the size in the request."
    )


class SimilarPage(Out):
    """Sizes that are similar to one, nearest first."""

    size: str = Field(description="The size in the request.")
    items: list[SimilarOut] = Field(description="The sizes of this page, nearest first.")
    next_cursor: NextCursor
    total: Total


class CellOut(Out):
    """The value of one size."""

    size: str = Field(description="Name of the size.")
    value: bool | int | float | str | list[str] | None = Field(
        description="A number, a string, a list of strings or a boolean, by the field; null is unknown."
    )
    difference: float | None = Field(description="value - the baseline's; null if either is unknown or not an amount.")
    difference_percent: float | None = Field(
        description="100 x difference / the baseline's value; null if that is zero."
    )


class LineOut(Out):
    """One field of all sizes."""

    field: str = Field(description="Name of the field: `gpu_memory_gib`.")
    unit: str | None = Field(description="Of value and difference; null if they are not amounts.")
    differs: bool = Field(description="Whether the known values differ.")
    values: list[CellOut] = Field(description="One for each size, in the order of the request.")


class ComparisonOut(Out):
    """Sizes side by side, in the order of the request."""

    baseline: str = Field(description="Name of the size that the others are compared with.")
    sizes: list[str] = Field(description="Names of the sizes.")
    fields: list[LineOut] = Field(
        description="Every field of a size, the figures of all its GPUs together, and prices per unit of those; "
        "with `currency` each price also in that currency, `price_per_…` after `usd_per_…`."
    )
    exchange_rate: ExchangeRateField = None


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
