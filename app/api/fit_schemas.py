"""The wire of fit: options, rejections, and how they came about."""

from datetime import date

from pydantic import Field

from app.api.schemas import NextCursor, Out, Total, Usd


class CostOut(Out):
    """What all VMs of an option cost under one purchase model; null where the price is unknown."""

    usd_per_hour: Usd | None
    as_of: date | None = Field(description="The day from which the price is known to hold.")
    usd_per_month: Usd | None
    usd_per_job: Usd | None = Field(description="Null where the question gives no hours.")


class HeadroomOut(Out):
    """How much of a resource there is beyond what is required; all VMs together where the resource pools."""

    resource: str
    unit: str
    required: float
    available: float
    headroom_percent: float = Field(description="100 x (available - required) / available.")


class OptionOut(Out):
    """A size that fits, and how many of it."""

    size: str
    region: str | None = Field(description="Where the prices hold: the cheapest of the asked regions.")
    status: str
    nodes: int
    on_demand: CostOut
    spot: CostOut
    headroom: list[HeadroomOut]
    limiting_resource: str | None = Field(description="The resource with the least to spare.")
    unused_gpu_memory_gib: float | None = Field(description="GPU memory that is paid for beyond what is required.")
    unused_gpu_memory_percent: float | None
    warnings: list[str] = Field(description="NO_PRICE, OLD_PRICE, PREVIEW, RETIRING, RETIRED, UNVERIFIED. Extensible.")
    explanation: str


class FailureOut(Out):
    """A constraint that a size does not meet."""

    constraint: str
    code: str = Field(description="GPU_MEMORY_TOTAL, VCPU, NOT_IN_REGION, … Extensible.")
    required: float | None
    available: float | None
    shortfall: float | None
    unit: str | None
    detail: str


class RejectionOut(Out):
    """A size that does not fit, the failure that misses most first."""

    size: str
    status: str
    failures: list[FailureOut]


class FitOut(Out):
    """Which sizes fit, the best first; which do not, and why."""

    items: list[OptionOut]
    next_cursor: NextCursor
    total: Total
    rejected: list[RejectionOut] = Field(description="With `include=rejected`: every size that does not fit.")
    rejected_total: int
    rejection_summary: dict[str, int] = Field(description="Sizes by the reason that misses most.")
    nearest_misses: list[RejectionOut]
