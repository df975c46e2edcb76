"""The responses about series, GPUs, regions, sources, revisions, models, changes, accuracy, comparisons and costs."""

from datetime import date, datetime
from typing import Annotated

from pydantic import ConfigDict, Field, PlainSerializer

from app.catalog.fields import CHANGE_KINDS, FIELDS
from app.catalog.names import CONTINENTS
from app.catalog.presets import Preset
from app.catalog.providers import PROVIDERS
from app.catalog.queries.params import optional
from app.fit.results import FamilyAccuracy
from app.fit.similarity import DISTANCE_DIGITS
from app.schemas.sizes import (
    AdjustmentField,
    Amount,
    CommittedHours,
    ConvertedPriceOut,
    EstimateField,
    ExchangeRateField,
    NextCursor,
    NoPriceField,
    Omittable,
    Out,
    PageOut,
    Total,
    Usd,
    converted_amounts,
    model_of_fields,
    page_of,
)


class SeriesOut(model_of_fields(FIELDS["series"], id="Its id: `nd_h100_v5`.")):  # type: ignore[misc]  # made of the table
    """A family of sizes; only series whose VMs share one NVLink domain have a rack."""

    provider: str = Field(description=f"Who sells it: {', '.join(PROVIDERS)}. Extensible.")


SeriesPage = page_of(SeriesOut, "SeriesPage", "series")


class BenchmarkOut(Out):
    """A published result."""

    id: str = Field(description="Its id.")
    series_id: str | None = Field(description="Id of the series that was measured.")
    scope: str = Field(description="gpu, vm or rack. Extensible.")
    workload: str = Field(description="What was run.")
    metric: str = Field(description="What was measured.")
    value: float = Field(description="The result, in the unit.")
    unit: str = Field(description="The unit of the value.")
    comparison: str | None = Field(description="What the result is compared with.")
    source_id: str = Field(description="Id of the source in GET /sources.")


class SeriesDetailOut(SeriesOut):
    """A series with its sizes, its benchmarks, and the flags that all its sizes have."""

    sizes: list[str] = Field(description="Names of its sizes.")
    flags: list[str] = Field(description="The features that all its sizes support.")
    benchmarks: list[BenchmarkOut] = Field(description="Published results of it.")


class GpuOut(model_of_fields(FIELDS["gpu"], id="Its id: `h100-sxm-80`.")):  # type: ignore[misc]  # made of the table
    """A GPU model: throughput is dense, bandwidths are decimal."""


GpuPage = page_of(GpuOut, "GpuPage", "GPU models")


class RegionOut(Out):
    """A region."""

    code: str = Field(description="Its code: `eastus`.")
    name: str = Field(description="Its name: `East US`.")
    geography: str | None = Field(description="The part of the world that it belongs to.")
    provider: str = Field(description=f"Whose region it is: {', '.join(PROVIDERS)}. Extensible.")
    place: str | None = Field(description="The city or state where it is.")
    country: str | None = Field(description="Its country by ISO 3166-1: `US`; null for a price of all regions.")
    continent: str | None = Field(description=f"{', '.join(CONTINENTS)}. Extensible.")
    latitude: float | None = Field(description="Degrees north of the place.")
    longitude: float | None = Field(description="Degrees east of the place.")
    source_id: str = Field(description="Id of the source in GET /sources.")


RegionPage = page_of(RegionOut, "RegionPage", "regions")


class SourceOut(Out):
    """A document, feed or data set."""

    id: str = Field(description="Its id.")
    title: str = Field(description="Its title.")
    publisher: str = Field(description="Who published it.")
    kind: str = Field(description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible.")
    url: str | None = Field(description="Where it is published.")
    published_on: date | None = Field(description="The day on which it was published.")
    sha256: str = Field(description="SHA-256 of the content that was read.")
    pinned: bool = Field(description="Whether its values stay accepted even if other sources disagree.")
    retail: bool = Field(description="Whether its prices are those that the vendor publishes for everybody.")
    formula: str | None = Field(description="How its prices were computed; null where a list states them.")
    newest_day: date | None = Field(
        description="The newest day, up to today, of its prices or exchange rates; null if it has none with a date."
    )


SourcePage = page_of(SourceOut, "SourcePage", "sources")


class RevisionOut(Out):
    """One ingest that changed something."""

    number: int = Field(description="Its number, from 1.")
    created_at: datetime = Field(description="When it was made, in UTC.")
    digest: str = Field(description="sha256 of the content of the whole catalog after it.")
    source_ids: list[str] = Field(description="Ids of the sources that changed something.")
    counts: dict[str, int] = Field(description="Rows of each table.")
    changes: int | None = Field(
        description="How many events of GET /changes it made; null where it had nothing to be compared with."
    )


RevisionPage = page_of(RevisionOut, "RevisionPage", "revisions", "Revisions, the newest first.")


class ModelOut(Preset):
    """A language model's configuration: widths are numbers of values, contexts and windows are in tokens."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


ModelPage = page_of(ModelOut, "ModelPage", "language models")


class CategoryCoverageOut(Out):
    """For how many sizes of a type a figure is known."""

    category: str | None = Field(description="The type of size; null where it is unknown.")
    total: int = Field(description="Sizes of the type that the figure applies to.")
    known: int = Field(description="Those whose figure is known.")


class UnknownOfSeriesOut(Out):
    """The sizes of a series whose figure is unknown."""

    series: str | None = Field(description="Id of the series; null for sizes of none.")
    sizes: int = Field(description="Sizes whose figure is unknown.")
    total: int = Field(description="Sizes of the series that the figure applies to.")
    reason: str = Field(
        description="no_page (no documentation page among the sources is about these sizes), not_stated (pages are, "
        "and do not state the figure) or stated_of_others (it is known of other sizes of the series). Extensible."
    )


class FieldCoverageOut(Out):
    """For how many sizes a figure is known; a known none, such as no local disk, counts."""

    field: str = Field(description="The field of a size.")
    total: int = Field(description="Sizes that it applies to: those of GPUs do not to sizes without one.")
    known: int = Field(description="Those of them whose figure is known.")
    percent: float | None = Field(description="100 x known / total, to one decimal; null where total is 0.")
    categories: list[CategoryCoverageOut] = Field(description="The same by type of size.")
    unknown: list[UnknownOfSeriesOut] = Field(description="The series with sizes whose figure is unknown, by id.")


class CoverageOut(Out):
    """How much is known of the sizes that a search finds."""

    total: int = Field(description="How many sizes the filters find.")
    items: list[FieldCoverageOut] = Field(description="The figures, as pages of a size order them.")


class ChangeOut(Out):
    """An event: what a revision changed of a size, one of its accepted values, or one of its prices in force."""

    id: int = Field(description="Its number, which grows from event to event.")
    revision: int = Field(description="The number of the revision in GET /revisions.")
    at: datetime = Field(description="When the revision was made, in UTC.")
    kind: str = Field(description=f"What happened: {', '.join(CHANGE_KINDS)}. Extensible.")
    size: str = Field(description="The name of the size, which may be gone.")
    region: str | None = Field(description="The region of the price; null where the event is about no price.")
    os: str | None = Field(description="The operating system of the price.")
    purchase: str | None = Field(description="The purchase model of the price.")
    field: str | None = Field(description="The field of the value or the dispute.")
    old: str | None = Field(description="The price in USD an hour, or the value, that was; null: none, or unknown.")
    new: str | None = Field(description="The price in USD an hour, or the value, that is now; null: none, or unknown.")
    percent: float | None = Field(description="By how much the price rose, or fell (negative), of the old one.")
    valid_from: date | None = Field(description="The first day on which the new price was observed.")
    source_id: str | None = Field(description="Id of the source of the new price or value.")


class ChangePage(PageOut):
    """Events, the oldest first."""

    items: list[ChangeOut] = Field(description="The events of this page.")
    revision: int = Field(description="The newest revision: send it as `since` to get what comes later.")
    tracked_since: datetime = Field(description="Changes are known from here on, in UTC.")


class AccuracyOut(Out):
    """All families of measurements."""

    items: list[FamilyAccuracy] = Field(description="The families, in the order of the documentation.")


Distance = Annotated[
    float, PlainSerializer(lambda exact: round(exact, DISTANCE_DIGITS), return_type=float, when_used="json")
]
"""A share of 1, which JSON has rounded: who rounds it to fewer digits for a page starts from the exact one."""


class TermOut(Out):
    """One term of a distance."""

    term: str = Field(
        description="gpu_class, gpu_memory_gib, gpu_count, usd_per_hour, arch, vcpus, memory_gib. Extensible."
    )
    unit: str | None = Field(
        description="Of wanted, value and difference; null for the class of GPU and the architecture."
    )
    wanted: float | None = Field(description="The value of the size in the request.")
    value: float | None = Field(description="The value of the other size.")
    difference: float | None = Field(description="value - wanted; null where the value is unknown.")
    difference_percent: float | None = Field(description="100 x (value - wanted) / wanted.")
    weight: int = Field(description="Weight of the term.")
    distance: Distance = Field(
        description="0 (the same) to 1 (eight times, an eighth, another vendor's GPU, or another architecture)."
    )
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


class ConvertedDiskPricesOut(
    converted_amounts("per_month", "per_gib_hour", "per_iops_hour", "per_mbps_hour", "per_gib_month")  # type: ignore[misc]
):
    """The prices of a disk in the requested currency, by the answer's exchange rate; null is unknown."""


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
    converted: Omittable[ConvertedDiskPricesOut] = optional("With `currency`: the prices in that currency.")


class DiskPage(PageOut):
    """Managed disks."""

    items: list[DiskOut] = Field(description="The disks of this page.")
    exchange_rate: ExchangeRateField = None


class ConvertedCostOfVmOut(
    converted_amounts(  # type: ignore[misc]
        *("per_hour", "per_month", "per_year", "per_vcpu_hour", "per_1000_coremark_hour", "per_memory_gib_hour"),
        *("per_gpu_hour", "per_gpu_gib_hour"),
    )
):
    """What one VM costs in the requested currency, by the answer's exchange rate; null is unknown."""


class ConvertedMonthOut(converted_amounts("per_month", "per_year")):  # type: ignore[misc]
    """What a disk, or all VMs with their disks, cost in the requested currency; null is unknown."""


class CostOfVmOut(Out):
    """What one VM costs; null is unknown, or there is none of the resource."""

    usd_per_hour: Usd | None = Field(description="Price under the requested purchase model.")
    usd_per_month: Usd | None = Field(
        description="usd_per_hour x hours_per_month; by a reservation or savings plan x committed_hours_per_month."
    )
    usd_per_year: Usd | None = Field(description="usd_per_month x 12.")
    committed_hours_per_month: CommittedHours
    usd_per_vcpu_hour: Usd | None = Field(description="usd_per_hour by vCPUs, rounded to 9 decimal places.")
    usd_per_1000_coremark_hour: Usd | None = Field(description="usd_per_hour by 1,000 CoreMark iterations a second.")
    usd_per_memory_gib_hour: Usd | None = Field(description="usd_per_hour by GiB of memory.")
    usd_per_gpu_hour: Usd | None = Field(description="usd_per_hour by GPUs; a fraction of one counts as such.")
    usd_per_gpu_gib_hour: Usd | None = Field(description="usd_per_hour by GiB of GPU memory.")
    price_as_of: date | None = Field(description="The day from which the price is known to hold.")
    price_age_days: int | None = Field(description="Days since price_as_of, today.")
    approximate_date: bool | None = Field(description="The source is undated: price_as_of is only the year.")
    source_id: str | None = Field(description="Id of the source of the price in GET /sources.")
    adjustment: AdjustmentField = None
    estimate: EstimateField = None
    converted: Omittable[ConvertedCostOfVmOut] = optional("With `currency`: the cost in that currency.")


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
    converted: Omittable[ConvertedMonthOut] = optional("With `currency`: the cost in that currency.")


class CostInAllOut(Out):
    """What all VMs cost with their disks; null where a part is unknown."""

    usd_per_month: Usd | None = Field(description="count x (the VM and its disks).")
    usd_per_year: Usd | None = Field(description="usd_per_month x 12.")
    converted: Omittable[ConvertedMonthOut] = optional("With `currency`: the cost in that currency.")


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
        description="NO_PRICE, OLD_PRICE, UNUSUAL_PRICE, COMMITMENT, LICENCE_INCLUDED, NO_PREMIUM_STORAGE, "
        "NO_ULTRA_DISK, TOO_MANY_DISKS, RETIRING, … Extensible."
    )
    not_included: list[str] = Field(description="What the figures leave out.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None


class BuyPriceOut(Out):
    """A price that a way to buy is made of."""

    os: str = Field(description="linux or windows. Extensible.")
    purchase: str = Field(description="Its purchase model. Extensible.")
    usd_per_hour: Usd = Field(description="USD an hour, of one VM.")
    price_as_of: date = Field(description="The day from which the price is known to hold.")
    price_age_days: int = Field(description="Days since price_as_of, today.")
    approximate_date: bool = Field(description="The source is undated: price_as_of is only the year.")
    source_id: str = Field(description="Id of its source in GET /sources.")
    unusual: bool = Field(description="The price is far from that of other regions.")
    disputed: bool = Field(description="Sources disagree on it.")
    adjustment: AdjustmentField = None
    estimate: EstimateField = None
    converted: Omittable[ConvertedPriceOut] = optional("With `currency`: the price in it.")


class ConvertedWayOut(Out):
    """What a way to buy costs in the requested currency, by the answer's exchange rate; null is unknown."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    cost_total: Amount | None = Field(description="usd_total, converted.")
    cost_per_month: Amount | None = Field(description="usd_per_month, converted.")
    saved: Amount | None = Field(description="saved_usd, converted.")
    cumulative_cost: list[Amount] = Field(description="The amounts of `cumulative`, converted, in its order.")


class BuyMonthOut(Out):
    """What a way to buy has cost by the end of a month."""

    month: int = Field(description="The month, from 1.")
    usd: Usd = Field(description="What it costs to stop then: terms that began are paid whole.")


class BuyWayOut(Out):
    """A way to buy; amounts are of all VMs, and null where its price is unknown."""

    purchase: str = Field(
        description="on_demand, spot, reserved_1y, reserved_3y, savings_1y or savings_3y. Extensible."
    )
    term_months: int = Field(description="Months of its commitment; 0 for none.")
    usd_total: Usd | None = Field(description="What it costs over the months; terms that began are paid whole.")
    usd_per_month: Usd | None = Field(description="usd_total by months.")
    saved_usd: Usd | None = Field(description="What on demand costs less usd_total; negative where this costs more.")
    break_even_month: int | None = Field(
        description="The month by whose end on demand has cost as much as the first term: from then on it has paid "
        "off, used or not. null for never within the term."
    )
    break_even_percent: float | None = Field(
        description="Percent of 730 hours a month from which it costs less than on demand over whole terms; null for "
        "never."
    )
    cheapest_from_percent: float | None = Field(
        description="Percent of 730 hours a month from which it is the cheapest of the known ways over the months; "
        "null for never. The others are not compared with spot VMs, which can be evicted."
    )
    cumulative: list[BuyMonthOut] = Field(description="What it has cost by the end of some months.")
    warnings: list[str] = Field(description="Of its prices: OLD_PRICE, UNUSUAL_PRICE, DISPUTED_PRICE. Extensible.")
    prices: list[BuyPriceOut] = Field(
        description="The prices that it is made of. A commitment for Windows is that for Linux, and the licence by the "
        "hour: the difference of the two prices on demand."
    )
    converted: Omittable[ConvertedWayOut] = optional("With `currency`: the amounts in that currency.")


class NotSoldOut(Out):
    """A way to buy a size that the vendor no longer offers."""

    purchase: str = Field(description="Its purchase model. Extensible.")
    sold_until: date = Field(description="The last day on which it was sold.")


class BuyOut(Out):
    """The ways to buy VMs of a size, compared; each figure is exact, and rounded once."""

    size: str = Field(description="Name of the size.")
    region: str | None = Field(description="Where the prices hold: of the requested regions the cheapest on demand.")
    os: str = Field(description="linux or windows. Extensible.")
    hybrid_benefit: bool = Field(description="Whether Windows is paid as Linux, by Azure Hybrid Benefit.")
    count: int = Field(description="Number of VMs.")
    months: int = Field(description="Months for which they are needed.")
    hours_per_month: Usd = Field(description="Hours a month that each VM runs.")
    spot_loss_percent: Usd = Field(description="Part of the hours on spot that is done again.")
    as_of: date = Field(description="The day whose prices were taken.")
    retirement_date: date | None = Field(
        description="The day on which the size retires; figures are as if it could be used after it."
    )
    retires_after_months: int | None = Field(
        description="Whole months from as_of to that day, where they are fewer than `months`; else null."
    )
    cheapest: str | None = Field(description="The cheapest of the known ways; null where none is known.")
    cheapest_without_spot: str | None = Field(description="The cheapest of those that cannot be evicted.")
    unknown: list[str] = Field(description="Ways whose price is unknown: any of them may be cheaper.")
    not_sold: list[NotSoldOut] = Field(description="Ways that could no longer be bought on as_of.")
    ways: list[BuyWayOut] = Field(description="Every way, also those of an unknown price.")
    assumptions: list[str] = Field(description="What the figures take for granted.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None


class ObservationOut(Out):
    """What a vendor reported about a size in a place, to the holder of an API key."""

    kind: str = Field(description="spot_placement_score, spot_eviction_rate, obtainability or estimated_uptime.")
    meaning: str = Field(description="What its value means.")
    value: str = Field(description="As the vendor says it: `High`, `7`, `5-10`, `0.9`.")
    region: str = Field(description="Code of the region.")
    zone: str | None = Field(description="The zone, as the vendor names it; null for all of the region.")
    note: str | None = Field(description="What was asked for, if the answer depends on it: `for 10 VMs`.")
    source: str = Field(description="What it was taken in as.")
    observed_at: datetime = Field(description="When the vendor said so.")
    age_hours: int = Field(description="Whole hours since then.")
    expires_at: datetime = Field(description="Until when it is shown.")


class ObservationsOut(Out):
    """What the holder of an API key observed of a size; nothing of it is in another answer."""

    size: str = Field(description="Name of the size.")
    items: list[ObservationOut] = Field(description="By kind, region and zone, the newest first.")
