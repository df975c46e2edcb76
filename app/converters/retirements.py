"""Converts inventories to requests of the plan for retirements, and plans to responses."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.names import RegionCode, as_written
from app.catalog.queries.snapshot import Catalog, computing
from app.fit.features import Refusal
from app.fit.vm import Adjustment
from app.schemas.fit_response import RejectionOut
from app.schemas.retirement_request import RetirementPlanIn, SuccessorNeedsIn
from app.schemas.retirements import (
    GiveUpOut,
    PlannedItemOut,
    RetirementPlanOut,
    SuccessorOut,
)
from app.services.ranked import to_adjustment, to_fraction
from app.services.retirement_plan import (
    InventoryItem,
    PlannedItem,
    Price,
    RetirementPlan,
    RetirementRequest,
    Successor,
    summarize,
)
from app.services.retirements import plan_retirements

_ANNOUNCED = (
    *("status", "retirement_date", "source_id", "source_title", "source_kind", "source_url", "source_published_on"),
)


def plan_body(catalog: Catalog, body: RetirementPlanIn) -> RetirementPlanOut:
    """Plan the query that answers a body."""
    items = [
        InventoryItem(size=item.size, region=RegionCode(item.region), count=item.count, id=item.id)
        for item in body.items
    ]
    return plan_inventory(catalog, items, body)


@computing
def plan_inventory(catalog: Catalog, items: Sequence[InventoryItem], needs: SuccessorNeedsIn) -> RetirementPlanOut:
    """Plan the query that answers an inventory of any length."""
    fields = {name: getattr(needs, name) for name in SuccessorNeedsIn.model_fields}
    plan = plan_retirements(catalog, RetirementRequest(items=items, **fields))
    return to_plan_out(plan)


def to_plan_out(plan: RetirementPlan) -> RetirementPlanOut:
    """Convert a plan with its summary; of equal lines the first lists all successors, the others the best."""
    first: dict[tuple[str, str, int], PlannedItemOut] = {}
    items = []
    for planned in plan.items:
        same = first.get(line := _line(planned))
        if same is None:
            items.append(first.setdefault(line, _item(planned)))
        else:
            own = {"index": planned.index, "id": planned.item.id, "same_as": same.index}
            items.append(same.model_copy(update=own | {"successors": same.successors[:1]}))
    return RetirementPlanOut(
        today=plan.today,
        keep=list(plan.request.keep),
        summary=summarize(plan),
        items=items,
        no_price=plan.no_price,
    )


def to_plan_rows(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Convert the items of a plan's JSON to flat rows, each with its best successor and the names of the others."""
    return [
        _to_row(item, items[item["index"] if item["same_as"] is None else item["same_as"]]["successors"])
        for item in items
    ]


def _to_row(item: Mapping[str, Any], successors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    best = next(iter(successors), None)
    change = best.get("change") if best else None
    plain = ("id", "size", "region", "count", "status", "retirement_date", "days_left", "source_url", "outcome")
    adjusted = {
        f"{name}adjustment": one["adjustment"]
        for name, one in (("", item), ("successor_", best))
        if one and "adjustment" in one
    }
    return {name: item[name] for name in plain} | {
        "usd_per_hour": item["usd_per_hour"],
        "successor": best["size"] if best else None,
        "successor_usd_per_hour": best["usd_per_hour"] if best else None,
        "change_usd_per_hour": change["usd_per_hour"] if change else None,
        "change_usd_per_month": change["usd_per_month"] if change else None,
        "gained": [one["detail"] for one in best["gained"]] if best else [],
        "lost": [one["detail"] for one in best["lost"]] if best else [],
        "other_successors": [one["size"] for one in successors[1:]],
        "unknown": item["unknown"],
        "give_up": [" ".join(fix["give_up"]) for fix in item["fixes"]],
        "errors": [error["detail"] for error in item["errors"]],
        "purchase": item["purchase"],
        **adjusted,
    }


def _line(planned: PlannedItem) -> tuple[str, str, int]:
    item = planned.item
    return item.size, as_written(item.region), item.count


def _item(planned: PlannedItem) -> PlannedItemOut:
    item, facts, refusals = planned.item, planned.facts, planned.refusals
    region_known = all(error.field != "region" for error in planned.errors)
    return PlannedItemOut(
        index=planned.index,
        same_as=None,
        id=item.id,
        size=facts.get("name", item.size),
        region=str(item.region) if region_known else as_written(item.region),
        count=item.count,
        outcome=planned.outcome,
        **{name: facts.get(name) for name in _ANNOUNCED},
        days_left=planned.days_left,
        unknown=list(planned.unknown),
        usd_per_hour=planned.price.usd_per_hour if planned.price is not None else None,
        price_as_of=planned.price.as_of if planned.price is not None else None,
        purchase=planned.purchase,
        adjustment=_adjustment(planned.price),
        cost=planned.cost,
        successors=[_successor(one) for one in planned.successors],
        rejection_summary=dict(refusals.summary) if refusals is not None else {},
        nearest_misses=[_refusal(one) for one in refusals.nearest] if refusals is not None else [],
        fixes=[
            GiveUpOut(
                give_up=list(fix.give_up),
                size=fix.size,
                usd_per_hour=fix.price.usd_per_hour,
                adjustment=_adjustment(fix.price),
            )
            for fix in planned.fixes
        ],
        errors=planned.errors,
    )


def _successor(successor: Successor) -> SuccessorOut:
    match, changes = successor.match, successor.differences
    return SuccessorOut(
        **_figures(successor.facts),
        relation=match.relation,
        status=match.machine.status,
        retirement_date=match.machine.retirement_date,
        kept=list(changes.kept),
        gained=changes.gained,
        lost=changes.lost,
        unknown=list(changes.unknown),
        usd_per_hour=successor.price.usd_per_hour,
        price_as_of=successor.price.as_of,
        adjustment=_adjustment(successor.price),
        cost=successor.cost,
        change=successor.change,
    )


def _figures(facts: Mapping[str, Any]) -> dict[str, Any]:
    gpus = to_fraction(facts["gpu_count_numerator"], facts["gpu_count_denominator"])
    plain = {name: facts[name] for name in ("series", "vcpus", "memory_gib", "gpu_model")}
    return plain | {
        "size": facts["name"],
        "gpu_count": round(float(gpus), 4) if gpus is not None else None,
        "gpu_fraction": str(gpus) if gpus is not None and gpus.denominator > 1 else None,
    }


def _adjustment(price: Price | None) -> Adjustment | None:
    return to_adjustment(price.adjustment) if price is not None else None


def _refusal(refusal: Refusal) -> RejectionOut:
    return RejectionOut(size=refusal.machine.name, status=refusal.machine.status, failures=refusal.failures)
