"""The list of retirements, and the response of POST /retirements."""

from datetime import date

from pydantic import Field

from app.fit.successors import FeatureChange
from app.schemas.fit_response import RejectionOut
from app.schemas.sizes import AdjustmentField, CommittedHours, NoPriceField, Omittable, Out, SourcedOut, Usd, page_of


class FiguresOut(Out):
    """What a size is, in short."""

    size: str = Field(description="Name of the size.")
    series: str | None = Field(description="Id of its series.")
    vcpus: int | None = Field(description="vCPUs of the VM.")
    memory_gib: float | None = Field(description="Memory of the VM, GiB.")
    gpu_model: str | None = Field(description="The GPU with its memory.")
    gpu_count: float | None = Field(description="To four digits; the exact fraction is in gpu_fraction.")
    gpu_fraction: str | None = Field(description="The exact part of a GPU, `1/6`; null for whole GPUs.")


class DatedOut(FiguresOut):
    """A size that retires."""

    provider: str = Field(description="Who sells it.")
    series_name: str | None = Field(description="Name of its series.")
    status: str = Field(description="retiring or retired, today. Extensible.")
    verified: bool = Field(description="Whether the vendor's own documents name this size.")
    retirement_date: date = Field(description="The day on which the size retires.")
    days_left: int = Field(description="Days from today to retirement_date; negative once it has passed.")


class RetirementOut(SourcedOut, DatedOut):
    """A size that retires, with the source of the date."""


RetirementPage = page_of(
    RetirementOut,
    "RetirementPage",
    "retirements",
    "Sizes that retire, those to come before those that have, the earliest first.",
)


class VmCostOut(Out):
    """What all VMs of an item cost."""

    usd_per_hour: Usd = Field(description="All VMs, USD an hour.")
    usd_per_month: Usd = Field(
        description="All VMs for the month's hours; by a reservation or savings plan for committed_hours_per_month."
    )
    committed_hours_per_month: CommittedHours


class SuccessorOut(FiguresOut):
    """A size that can take the place of another in its region."""

    relation: str = Field(
        description="same_family, same_category (of their series, as sources state them) or other. Extensible."
    )
    status: str = Field(description="current or retiring, today. Extensible.")
    retirement_date: date | None = Field(description="The day on which it retires; null where none is announced.")
    kept: list[str] = Field(description="Features of which it has as much as the old size.")
    gained: list[FeatureChange] = Field(description="Features of which it has more.")
    lost: list[FeatureChange] = Field(description="Features of which it has less, or something else.")
    unknown: list[str] = Field(description="Features of the old size of which no source says what the successor has.")
    usd_per_hour: Usd = Field(description="One VM, USD an hour.")
    price_as_of: date = Field(description="The day from which the price is known to hold.")
    adjustment: AdjustmentField = None
    cost: VmCostOut = Field(description="What all VMs of the item will cost.")
    change: Omittable[VmCostOut] = Field(
        description="Its cost less that of the old size; absent where the price of the old size is unknown."
    )


class GiveUpOut(Out):
    """Features without which there is a successor."""

    give_up: list[str] = Field(description="The features to leave out of `keep`.")
    size: str = Field(description="Name of the best successor then.")
    usd_per_hour: Usd = Field(description="One VM of it, USD an hour.")
    adjustment: AdjustmentField = None


class ItemErrorOut(Out):
    """A name of an item that the catalog does not have, or a region of another provider than its size."""

    field: str = Field(description="size or region. Extensible.")
    code: str = Field(description="UNKNOWN_SIZE, UNKNOWN_REGION or OTHER_PROVIDER. Extensible.")
    detail: str = Field(description="The same in words.")
    suggestions: list[str] = Field(description="The nearest names; empty if none is near.")


class PlannedItemOut(Out):
    """The answer to one item of the inventory."""

    index: int = Field(description="Place of the item in the inventory, from 0.")
    same_as: int | None = Field(
        description="Index of the first item with the same size, region and count, which lists all successors; null "
        "where that is this item."
    )
    id: str | None = Field(description="The id of the item.")
    size: str = Field(description="Name of the size; as it was sent where the catalog does not have it.")
    region: str = Field(description="Code of the region; as it was sent where the catalog does not have it.")
    count: int = Field(description="Number of VMs.")
    outcome: str = Field(description="successor, no_successor, not_needed or error. Extensible.")
    status: str | None = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    retirement_date: date | None = Field(description="The day on which the size retires.")
    days_left: int | None = Field(description="Days from today to retirement_date; negative once it has passed.")
    source_id: str | None = Field(description="Id in GET /sources of the source that gives the date.")
    source_title: str | None = Field(description="The source's title.")
    source_kind: str | None = Field(
        description="vendor_page, vendor_api, vendor_announcement or third_party. Extensible."
    )
    source_url: str | None = Field(description="Where the source is published.")
    source_published_on: date | None = Field(description="The day on which the source was published.")
    unknown: list[str] = Field(
        description="Features to keep of which no source says what the old size has; they constrain nothing."
    )
    usd_per_hour: Usd | None = Field(description="One VM of the old size, USD an hour; null is unknown.")
    price_as_of: date | None = Field(description="The day from which the price is known to hold.")
    purchase: str = Field(
        description="The purchase model of all its prices: the requested one, or on_demand where no price of that is "
        "known in the region. Extensible."
    )
    adjustment: AdjustmentField = None
    cost: Omittable[VmCostOut] = Field(description="What all VMs cost now; absent where the price is unknown.")
    successors: list[SuccessorOut] = Field(description="The successors, best first; with `same_as` only the best.")
    rejection_summary: dict[str, int] = Field(
        description="Without a successor: number of sizes by each reason why they are none."
    )
    nearest_misses: list[RejectionOut] = Field(
        description="Without a successor: the sizes that come nearest, with every reason, at most three."
    )
    fixes: list[GiveUpOut] = Field(description="Without a successor: what to give up so that there is one.")
    errors: list[ItemErrorOut] = Field(description="What the catalog does not have; empty unless outcome is error.")


class OutcomesOut(Out):
    """Number of items by outcome."""

    successor: int = Field(description="Retiring, and there is a successor.")
    no_successor: int = Field(description="Retiring, and there is none.")
    not_needed: int = Field(description="Not retiring, or not before `before`.")
    error: int = Field(description="The catalog does not have the size or the region.")


class DueDateOut(Out):
    """What retires on one day."""

    retirement_date: date | None = Field(description="The day; null for sizes withdrawn without a date.")
    items: int = Field(description="Number of items.")
    vms: int = Field(description="Number of VMs.")
    without_successor: int = Field(description="Number of items without a successor.")


class PlanSummaryOut(Out):
    """The plan in numbers; costs are of the items whose old price is known and that have a successor."""

    outcomes: OutcomesOut = Field(description="How many items have each outcome.")
    by_date: list[DueDateOut] = Field(description="What retires when, the earliest day first.")
    now: VmCostOut = Field(description="What the VMs cost now.")
    then: VmCostOut = Field(description="What the best successors cost.")
    change: VmCostOut = Field(description="then - now.")
    priced: int = Field(description="Number of items that the costs are of.")
    unpriced: int = Field(description="Number of items with a successor whose old price is unknown.")


class RetirementPlanOut(Out):
    """An inventory with its retirements and successors."""

    today: date = Field(description="The day of the plan.")
    keep: list[str] = Field(description="The features that successors keep.")
    summary: PlanSummaryOut = Field(description="The plan in numbers.")
    items: list[PlannedItemOut] = Field(description="One for each item, in the order of the inventory.")
    no_price: NoPriceField = None
