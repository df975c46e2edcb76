"""The page of a plan for retirements: a pasted inventory, which of its VMs retire, and what can take their place.

The answer is that of `POST /retirements`. An inventory is sent by POST, as it may be longer than a URL; a short one is
in the links of the page that answers, so that they can be shared.
"""

from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from app.catalog.fields import field_title
from app.catalog.purchases import Purchase
from app.catalog.queries.params import PRICED_OS, Day, Os, QueryParams
from app.errors import BadData, BadQuery
from app.formats.text import Csv
from app.web.fit_answer import MAX_URL
from app.web.rendering import render_page
from app.web.serving import PageContent, PageRequest, plain_lines
from app.web.sizes_view import PURCHASE_TITLES

if TYPE_CHECKING:
    from app.schemas.retirements import RetirementPlanOut

EXAMPLE = """size,region,count
Standard_NV12s_v3,West Europe,4
Standard_D8s_v3,eastus,20
Standard_NC24ads_A100_v4,eastus,1"""
_MAX_TEXT = 400_000


class PlanView(QueryParams):
    """An inventory, and what its successors are."""

    inventory: Annotated[str, Field(max_length=_MAX_TEXT), AfterValidator(plain_lines)] | None = Field(
        default=None, description="CSV with the columns size and region, and if you like count and id."
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="How the VMs are paid for, now and then.")
    before: Day | None = Field(default=None, description="Only sizes that retire before this day need a successor.")
    max_successors: Annotated[int, Field(ge=1, le=20)] = Field(default=3, description="The most successors of an item.")


async def render(request: PageRequest) -> str:
    """Render the form and, with an inventory, the plan."""
    view: PlanView = request.params
    plan = await _plan(request)
    link = request.url() if plan else ""
    return render_page(
        request,
        "retirement_plan.html",
        view=view,
        plan=plan,
        link=link if len(link) <= MAX_URL else "",
        example=EXAMPLE,
        purchases=tuple(PURCHASE_TITLES.items()),
        purchase_title=PURCHASE_TITLES[view.purchase],
        field_title=field_title,
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


async def _plan(request: PageRequest) -> "RetirementPlanOut | None":
    """Return the plan; None without an inventory. Raises BadQuery saying where the inventory is wrong."""
    view: PlanView = request.params
    if request.errors or not view.inventory:
        return None
    from app.converters.inventory import parse_inventory
    from app.schemas.retirement_request import MAX_ITEMS, SuccessorNeedsIn, explain_too_many
    from app.services.retirements import plan_retirements

    try:
        items = parse_inventory(view.inventory, "inventory")
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


PAGE = PageContent(params=PlanView, render=render)
CSV = PageContent(
    params=PlanView, render=render_csv, file_name=lambda _: "retirement-plan.csv", media_type="text/csv; charset=utf-8"
)
