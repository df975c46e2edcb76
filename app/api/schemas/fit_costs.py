"""The wire of fit: options, rejections, and how they came about."""

from datetime import date

from pydantic import Field

from app.api.schemas.estimate_response import FigureOut
from app.api.schemas.sizes import NextCursor, Out, Part, Total, Usd


class OptionCostOut(Out):
    """What all VMs cost under one purchase model; what is not known is null, or left out."""

    usd_per_hour: Usd | None = Field(description="All VMs, USD an hour.")
    as_of: date | None = Field(description="The day from which the price is known to hold.")
    price_age_days: int | None = Field(description="Days since as_of, today.")
    approximate_date: bool | None = Field(
        description="The price's source is undated: as_of is only the year it points to."
    )
    usd_per_month: Usd | None = Field(description="All VMs for the month's hours.")
    usd_per_job: Part[FigureOut] = Field(description="On spot VMs with what interruptions add to a training.")
    usd_per_million_tokens: Part[FigureOut] = Field(description="Generated, or trained on, at the expected rate.")


class CostsOut(Out):
    """What an option costs, by purchase model: those that were asked for."""

    on_demand: Part[OptionCostOut] = Field(description="On demand.")
    spot: Part[OptionCostOut] = Field(description="On spot.")


class HeadroomOut(Out):
    """How much of a resource there is beyond what is required; all VMs together where the resource pools."""

    resource: str = Field(description="gpu_memory, gpu_memory_per_gpu, gpus, vcpus, memory, local_disk, … Extensible.")
    unit: str = Field(description="The unit of required and available.")
    required: float = Field(description="What the job needs.")
    available: float = Field(description="What there is.")
    headroom_percent: float = Field(description="100 x (available - required) / available.")


class OptionOut(Out):
    """A size that fits, and how many of it."""

    size: str = Field(description="Name of the size.")
    region: str | None = Field(description="Where the prices hold: the cheapest of the asked regions.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    nodes: int = Field(description="How many VMs of this size.")
    cost: CostsOut = Field(description="What it costs, by purchase model.")
    headroom: list[HeadroomOut] = Field(description="What is to spare of each resource.")
    limiting_resource: str | None = Field(description="The resource with the least to spare.")
    unused_gpu_memory_gib: float | None = Field(description="GPU memory that is paid for beyond what is required.")
    unused_gpu_memory_percent: float | None = Field(description="The same in percent of all GPU memory.")
    warnings: list[str] = Field(
        description="NO_PRICE, OLD_PRICE, PREVIEW, RETIRING, WITHDRAWN, RETIRED, UNVERIFIED. Extensible."
    )
    explanation: str = Field(description="Why it fits, in a sentence.")


class FailureOut(Out):
    """A constraint that a size does not meet."""

    constraint: str = Field(description="The constraint, as it was asked.")
    code: str = Field(description="GPU_MEMORY_TOTAL, VCPU, NOT_IN_REGION, … Extensible.")
    required: float | None = Field(description="What is needed; null where that is no amount.")
    available: float | None = Field(description="What there is; null where that is unknown or no amount.")
    shortfall: float | None = Field(description="required - available.")
    unit: str | None = Field(description="The unit of the amounts; null where there are none.")
    detail: str = Field(description="The same in words.")


class RejectionOut(Out):
    """A size that does not fit, the failure that misses most first."""

    size: str = Field(description="Name of the size.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    failures: list[FailureOut] = Field(description="Every constraint that it does not meet.")


class FitOut(Out):
    """Which sizes fit, the best first; which do not, and why."""

    items: list[OptionOut] = Field(description="The options of this page.")
    next_cursor: NextCursor
    total: Total
    rejected: list[RejectionOut] = Field(description="With `include=rejected`: every size that does not fit.")
    rejected_total: int = Field(description="How many sizes do not fit.")
    rejection_summary: dict[str, int] = Field(description="Sizes by the reason that misses most.")
    nearest_misses: list[RejectionOut] = Field(description="The sizes that come nearest to fitting, at most three.")
