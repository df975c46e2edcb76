"""The values of a plan for retirements: the request, the answer to each item of an inventory, and its summary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from app.catalog.purchases import Purchase
from app.catalog.queries.known_prices import NoPrice
from app.catalog.queries.params import Os
from app.fit.features import Refusals
from app.fit.successors import Differences, Match
from app.schemas.retirements import DueDateOut, ItemErrorOut, PlanSummaryOut, VmCostOut


@dataclass(frozen=True, slots=True, kw_only=True)
class InventoryItem:
    """So many VMs of a size in a region; `id` is the client's own."""

    size: str
    region: str
    count: int = 1
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementRequest:
    """What to plan: an inventory, the features that successors keep, and how they are bought.

    `before` limits it to retirements before a day; a successor does not retire within `successor_days` from today.
    """

    items: Sequence[InventoryItem]
    keep: tuple[str, ...]
    os: Os
    purchase: Purchase
    before: date | None
    max_successors: int
    successor_days: int
    hours_per_month: Decimal


class Price(NamedTuple):
    """A price in force, USD an hour, and the day from which it is known to hold.

    `adjustment` is JSON of the list price and the rules; None where no rule applies.
    """

    usd_per_hour: Decimal
    as_of: date
    adjustment: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Successor:
    """A size that can take the place of another; `change` is its cost less that of the old size, None where unknown."""

    match: Match
    facts: Mapping[str, Any]
    differences: Differences
    price: Price
    cost: VmCostOut
    change: VmCostOut | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Features without which there is a successor, and the best one then."""

    give_up: tuple[str, ...]
    size: str
    price: Price


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """One item of the inventory with its answer; `facts` is the row of its size, empty where that is unknown.

    `purchase` is how its prices are paid: as requested, or on demand where no such price is known in its region.
    """

    index: int
    item: InventoryItem
    outcome: str
    purchase: Purchase
    facts: Mapping[str, Any]
    days_left: int | None = None
    unknown: tuple[str, ...] = ()
    price: Price | None = None
    cost: VmCostOut | None = None
    successors: tuple[Successor, ...] = ()
    refusals: Refusals | None = None
    fixes: tuple[Fix, ...] = ()
    errors: tuple[ItemErrorOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementPlan:
    """The answer to a request, item by item in the order of the inventory.

    `no_price` is there where in a region of it no price of the system and purchase model is known.
    """

    request: RetirementRequest
    today: date
    items: tuple[PlannedItem, ...]
    no_price: NoPrice | None = None


SUCCESSOR, NO_SUCCESSOR, NOT_NEEDED, UNKNOWN_NAME = "successor", "no_successor", "not_needed", "error"
"""The outcomes of an item."""


def summarize(plan: RetirementPlan) -> PlanSummaryOut:
    """Count a plan by outcome and date, and add up what moving to the best successors costs; exact."""
    outcomes = dict.fromkeys((SUCCESSOR, NO_SUCCESSOR, NOT_NEEDED, UNKNOWN_NAME), 0)
    due: dict[date | None, DueDateOut] = {}
    now, then, priced = Decimal(0), Decimal(0), 0
    for item in plan.items:
        outcomes[item.outcome] += 1
        if item.outcome in (SUCCESSOR, NO_SUCCESSOR):
            day = item.facts["retirement_date"]
            before = due.get(day, DueDateOut(retirement_date=day, items=0, vms=0, without_successor=0))
            due[day] = DueDateOut(
                retirement_date=day,
                items=before.items + 1,
                vms=before.vms + item.item.count,
                without_successor=before.without_successor + (item.outcome == NO_SUCCESSOR),
            )
        if item.successors and item.cost is not None:
            priced, now = priced + 1, now + item.cost.usd_per_hour
            then += item.successors[0].cost.usd_per_hour
    hours = plan.request.hours_per_month
    return PlanSummaryOut(
        outcomes=outcomes,
        by_date=[due[day] for day in sorted(due, key=lambda day: (day is None, day or date.max))],
        now=VmCostOut(usd_per_hour=now, usd_per_month=now * hours),
        then=VmCostOut(usd_per_hour=then, usd_per_month=then * hours),
        change=VmCostOut(usd_per_hour=then - now, usd_per_month=(then - now) * hours),
        priced=priced,
        unpriced=outcomes[SUCCESSOR] - priced,
    )
