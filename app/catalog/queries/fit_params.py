"""What may be asked of sizes that are then reckoned with: which fit, which are alike, how they differ."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from app.catalog.queries.params import (
    LowerText,
    OfferParams,
    PageParams,
    RegionSet,
    SizeRequirements,
    SizeSelection,
    UsdAmount,
)

FitSort = Literal["cost_per_hour", "cost_per_job", "headroom", "waste", "nodes"]
ResourceInclude = Literal["rejected"]
Hours = Annotated[Decimal, Field(ge=Decimal("1e-9"), le=Decimal(1_000_000), allow_inf_nan=False)]
MAX_COMPARED = 10


class FitSearch(SizeSelection, SizeRequirements, PageParams):
    """What a job needs of its VMs, and what it may cost."""

    max_nodes: int = Field(
        default=1, ge=1, le=10_000, description="Pooled amounts may be met by up to so many VMs.", examples=[2]
    )
    hours: Hours | None = Field(
        default=None, description="How long the job runs; gives the cost of the job.", examples=[24]
    )
    hours_per_month: Annotated[Hours, Field(le=744)] = Field(
        default=Decimal(730),
        description="Hours a month that a month's cost is made of.",
        examples=[730],
    )
    budget_usd_per_month: UsdAmount | None = Field(
        default=None, description="The most that all VMs may cost a month, USD.", examples=[100000]
    )
    sort: FitSort = Field(default="cost_per_hour", description="What the best option is; unknown prices come last.")
    include: tuple[ResourceInclude, ...] = Field(
        default=(), description="`rejected` lists every size that does not fit, with each failing constraint."
    )

    @field_validator("sort")
    @classmethod
    def _can_be_known(cls, sort: FitSort, about: ValidationInfo) -> FitSort:
        if sort == "cost_per_job" and about.data.get("hours", ...) is None:  # hours that are wrong are told of alone
            raise PydanticCustomError("contradiction", "needs hours, how long the job runs")
        return sort


class SimilarSearch(OfferParams, PageParams):
    """Which sizes like one."""

    region: RegionSet = Field(
        default=(),
        description="Only sizes that have a price in this region, in any of several, with the cheapest of them.",
        examples=[["eastus"]],
    )
    limit: int = Field(default=10, ge=1, le=500, description="How many items a page holds at most.", examples=[2])


class CompareSearch(OfferParams):
    """Which sizes to lay side by side."""

    size: Annotated[tuple[LowerText, ...], Field(min_length=2, max_length=MAX_COMPARED)] = Field(
        description="The sizes, 2 to 10, by any of their names; the answer keeps their order.",
        examples=[["nc24ads_a100_v4", "nc40ads_h100_v5"]],
    )
    baseline: LowerText | None = Field(
        default=None,
        description="The one of them that the others are compared with; default: the first.",
        examples=["nc24ads_a100_v4"],
    )
