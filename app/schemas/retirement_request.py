"""The body of POST /retirements: an inventory, and what a successor has to be."""

from decimal import Decimal
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from app.catalog.purchases import Purchase
from app.catalog.queries.params import PRICED_OS, Day, HoursPerMonth, Os, PlainText, optional
from app.fit.features import ESSENTIAL_FEATURES, FEATURE_NAMES
from app.schemas.bodies import In, Keyword, OneOf, contradiction

MAX_ITEMS = 1000
MAX_SUCCESSORS = 5000
"""The most successors that an answer may list: 4 MB of JSON."""

FeatureName = Annotated[Keyword, OneOf(FEATURE_NAMES)]


class InventoryItemIn(In):
    """VMs of one size in one region."""

    size: PlainText = Field(description="The size, by any of its names.")
    region: PlainText = Field(description="The region, in any spelling.")
    count: Annotated[int, Field(ge=1, le=1_000_000)] = Field(default=1, description="Number of VMs.")
    id: PlainText | None = optional("An id of yours, which the answer repeats.")


class InventoryIn(In):
    """VMs that are in use."""

    items: Annotated[tuple[InventoryItemIn, ...], Field(min_length=1, max_length=MAX_ITEMS)] = Field(
        description="The inventory, at most 1,000 items."
    )


class SuccessorNeedsIn(In):
    """What a successor has to be, and which prices are used."""

    keep: Annotated[
        tuple[FeatureName, ...],
        Field(max_length=len(FEATURE_NAMES)),
        AfterValidator(lambda names: tuple(name for name in FEATURE_NAMES if name in names)),
    ] = Field(
        default=ESSENTIAL_FEATURES,
        description="The features that a successor must keep, where the old size is known to have them.",
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="How the VMs are paid for.")
    before: Day | None = optional("Only sizes that retire before this day need a successor.")
    max_successors: Annotated[int, Field(ge=1, le=20)] = Field(default=3, description="The most successors per item.")
    successor_days: Annotated[int, Field(ge=0, le=36_500)] = Field(
        default=1095, description="Days from today within which a successor must not retire."
    )
    hours_per_month: HoursPerMonth = Field(
        default=Decimal(730), description="Hours a month; reservations and savings plans are paid for 730 anyway."
    )


class RetirementPlanIn(SuccessorNeedsIn, InventoryIn):
    """An inventory, and what a successor has to be."""

    @model_validator(mode="after")
    def _bound_successors(self) -> Self:
        lines = len({(item.size, item.region, item.count) for item in self.items})
        if detail := explain_too_many(lines, self.max_successors):
            raise contradiction(f"items {detail}")
        return self


def explain_too_many(lines: int, max_successors: int) -> str | None:
    """Return an error if the different lines together may have too many successors to list, else None."""
    if lines * max_successors <= MAX_SUCCESSORS:
        return None
    return (
        f"has {lines:,} different lines, which may have {lines * max_successors:,} successors with max_successors="
        f"{max_successors}; at most {MAX_SUCCESSORS:,}: give max_successors={MAX_SUCCESSORS // lines}, or fewer lines"
    )
