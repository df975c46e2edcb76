"""Retirements: the calendar of what retires in which month, and a plan for an inventory; with what can take its place.

The plan is the answer of `POST /retirements`. An inventory is sent by POST, as it may be longer than a URL; a short one
is in the links of the page that answers, so that they can be shared.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from app.catalog.names import RegionCode
from app.catalog.purchases import Purchase
from app.catalog.queries.params import PRICED_OS, Day, GpuSet, JsonBool, LowerTextSet, Os, PlainText, QueryParams
from app.catalog.queries.provenance import find_region_names
from app.catalog.queries.retirements import RetirementFilter, find_all_retirements, find_usual_region
from app.errors import BadData, BadQuery
from app.formats.text import Csv
from app.web.rendering import render_page
from app.web.serving import PageContent, PageRequest, plain_lines, with_query
from app.web.sizes_view import regions_by_cloud

if TYPE_CHECKING:
    from app.schemas.retirements import PlannedItemOut, RetirementPlanOut

EXAMPLE = """size,region,count
Standard_NV12s_v3,West Europe,4
Standard_D8s_v3,eastus,20
Standard_NC24ads_A100_v4,eastus,1"""
_MAX_TEXT = 400_000

Row = Mapping[str, Any]


class RetirementsView(QueryParams):
    """Which retirements, and whose prices say what successors cost."""

    series: LowerTextSet = Field(default=(), description="Of the sizes of a series, by its id or name.")
    gpu: GpuSet = Field(default=(), description="Of sizes with this GPU: a name or a glob.")
    region: Annotated[PlainText, AfterValidator(RegionCode)] | None = Field(
        default=None, description="Of sizes that have a price in this region, which is that of successors, too."
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="How the VMs are paid for.")
    past: JsonBool = Field(default=False, description="Sizes that have retired, in place of those that will.")

    def filters(self) -> RetirementFilter:
        """Return the filters of `GET /retirements`; those of dates are left to the page."""
        return RetirementFilter(series=self.series, gpu=self.gpu, region=(self.region,) if self.region else ())


async def render(request: PageRequest) -> str:
    """Render the calendar; without months where a parameter is invalid."""
    view: RetirementsView = request.params
    run, filters = request.executor, view.filters()
    retiring = [] if request.errors else await run.ask(find_all_retirements, filters)
    rows = [row for row in retiring if (row["days_left"] <= 0) == view.past]
    region = view.region or (await run.ask(find_usual_region, view.os) if rows else None)
    planned = await find_successors(request, [row["size"] for row in rows], region, max_successors=1)
    regions = await run.ask(find_region_names)
    months = _months(rows, planned)
    return render_page(
        request,
        "retirements.html",
        months=list(reversed(months)) if view.past else months,
        total=len(rows),
        others=len(retiring) - len(rows),
        region=region,
        region_title=regions.get(region or "", region),
        regions=[("", "any"), *regions_by_cloud(regions, (await run.snapshot()).regions)],
        purchase=next((plan.purchase for plan in planned.values()), view.purchase),
        calendar=with_query("retirements.ics", filters),
        json_url=with_query("retirements", filters),
        example=EXAMPLE,
    )


async def find_successors(
    request: PageRequest, sizes: Sequence[str], region: str | None, **needed: Any
) -> Mapping[str, "PlannedItemOut"]:
    """Return the plan for one VM of each size in a region, by name of the size."""
    if region is None or not sizes:
        return {}
    from app.schemas.retirement_request import SuccessorNeedsIn
    from app.services.retirements import InventoryItem, plan_retirements

    items = [InventoryItem(size=size, region=RegionCode(region)) for size in sizes]
    needs = SuccessorNeedsIn(os=request.params.os, purchase=request.params.purchase, **needed)
    plan = await request.executor.ask(plan_retirements, items, needs)
    return {item.size: item for item in plan.items}


def _months(rows: Sequence[Row], planned: Mapping[str, "PlannedItemOut"]) -> list[tuple[date, int, list[Row]]]:
    """Return the months of retirements, which come in the order of their days: first day, sizes, and series by day."""
    months = []
    for first_day, of_month in groupby(rows, key=lambda row: row["retirement_date"].replace(day=1)):
        by_series: dict[tuple[date, str | None], list[Row]] = {}
        for row in of_month:
            by_series.setdefault((row["retirement_date"], row["series"]), []).append(row)
        sizes = sum(map(len, by_series.values()))
        months.append((first_day, sizes, [_series(listed, planned) for listed in by_series.values()]))
    return months


def _series(rows: Sequence[Row], planned: Mapping[str, "PlannedItemOut"]) -> Row:
    """Return the sizes of a series that retire on one day, with the known changes of cost of one VM, USD a month."""
    sizes = [_size(row, planned.get(row["size"])) for row in rows]
    return {
        "title": rows[0]["series_name"] or rows[0]["size"].removeprefix("Standard_"),
        "first": rows[0],
        "sizes": sizes,
        "changes": sorted(size["change"] for size in sizes if size["change"] is not None),
        "replaceable": sum(size["best"] is not None for size in sizes),
    }


def _size(row: Row, plan: "PlannedItemOut | None") -> Row:
    """Return a size with the best one that can take its place, and what that costs more; None where it is unknown."""
    best = next(iter(plan.successors), None) if plan else None
    change = best.change.usd_per_month if best and best.change else None
    return {"facts": row, "planned": plan, "best": best, "change": change}


class PlanView(QueryParams):
    """An inventory, and what its successors are."""

    inventory: Annotated[str, Field(max_length=_MAX_TEXT), AfterValidator(plain_lines)] | None = Field(
        default=None, description="CSV with the columns size and region, and optionally count and id."
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="How the VMs are paid for, now and then.")
    before: Day | None = Field(default=None, description="Only sizes that retire before this day need a successor.")
    max_successors: Annotated[int, Field(ge=1, le=20)] = Field(default=3, description="The most successors of an item.")


async def render_plan(request: PageRequest) -> str:
    """Render the form and, with an inventory, the plan."""
    plan = await _plan(request)
    return render_page(
        request,
        "retirement_plan.html",
        plan=plan,
        change=_shown_change(plan) if plan else None,
        link=request.link() if plan else "",
        example=EXAMPLE,
    )


async def render_csv(request: PageRequest) -> str:
    """Render the plan as CSV: a row for each item, with its best successor; raises BadQuery without an inventory."""
    from app.catalog.price_notes import flatten_adjustments
    from app.services.retirements import to_plan_rows

    plan = await _plan(request)
    if plan is None:
        raise BadQuery("inventory", None, "an inventory is needed: CSV with the columns size and region")
    rows = flatten_adjustments(to_plan_rows(plan.model_dump(mode="json")["items"]))
    rows = flatten_adjustments(rows, "successor_")
    kinds = {name: "list" if isinstance(value, list) else "text" for name, value in rows[0].items()}
    csv = Csv({name: kind if name not in _NUMBERS else "number" for name, kind in kinds.items()})  # type: ignore[misc]
    return (csv.head + csv.write(list(zip(*(row.values() for row in rows), strict=True)))).decode()


_NUMBERS = {
    *("count", "days_left", "usd_per_hour", "successor_usd_per_hour", "change_usd_per_hour", "change_usd_per_month"),
    *("list_usd_per_hour", "successor_list_usd_per_hour"),
}


def _shown_change(plan: "RetirementPlanOut") -> Decimal:
    """Return the change in monthly cost, USD, between the amounts as the page rounds them."""
    now, then = (cost.usd_per_month.quantize(_CENT, ROUND_HALF_UP) for cost in (plan.summary.now, plan.summary.then))
    return then - now


_CENT = Decimal("0.01")


async def _plan(request: PageRequest) -> "RetirementPlanOut | None":
    """Return the plan; None without an inventory. Raises BadQuery saying where the inventory is wrong."""
    view: PlanView = request.params
    if request.errors or not view.inventory:
        return None
    from app.converters.inventory import parse_inventory
    from app.schemas.retirement_request import MAX_ITEMS, SuccessorNeedsIn, explain_too_many
    from app.services.retirements import plan_retirements

    try:
        items = [*parse_inventory(view.inventory, "inventory")]
    except BadData as error:
        places = (f"line {error.line}" if error.line else "", f"column {error.column!r}" if error.column else "")
        place = ", ".join(filter(None, places))
        raise BadQuery("inventory", None, f"{place}: {error.detail}" if place else error.detail) from None
    if not items:
        raise BadQuery("inventory", None, "has a header and no VMs below it")
    if len(items) > MAX_ITEMS:
        raise BadQuery(
            "inventory",
            None,
            f"has {len(items):,} items; at most {MAX_ITEMS:,} here, and any number in vmsizes retirements",
        )
    lines = len({(item.size, item.region, item.count) for item in items})
    if detail := explain_too_many(lines, view.max_successors):
        raise BadQuery("inventory", None, detail)
    return await request.executor.ask(plan_retirements, items, view.as_params(SuccessorNeedsIn))


PAGE = PageContent(params=RetirementsView, render=render)
PLAN_PAGE = PageContent(params=PlanView, render=render_plan)
CSV = PageContent(
    params=PlanView,
    render=render_csv,
    file_name=lambda _: "retirement-plan.csv",
    media_type="text/csv; charset=utf-8",
    form=PLAN_PAGE,
)
