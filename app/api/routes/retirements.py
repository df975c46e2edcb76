"""Endpoints about retirements: the list, the same as a calendar, and a plan for an inventory."""

from datetime import date
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.queries.retirements import RetirementFilter, RetirementSearch, find_all_retirements, find_retirements
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.http.late_models import LateModel
from app.schemas.retirement_request import RetirementPlanIn

router = APIRouter(tags=["retirements"])
_RETIREMENT_PAGE = LateModel("app.schemas.retirements", "RetirementPage")
_RETIREMENT_PLAN = LateModel("app.schemas.retirements", "RetirementPlanOut")


class CalendarResponse(Response):
    """An iCalendar in UTF-8."""

    media_type = "text/calendar"


@router.get("/retirements", response_model=_RETIREMENT_PAGE)
async def list_retirements(search: Annotated[RetirementSearch, Query()], executor: Executor) -> Response:
    """List the sizes that retire, then those that have retired, by date, each with the source of the date."""
    return json_response(_RETIREMENT_PAGE.to_json(await executor.run_in_thread(partial(find_retirements, search))))


@router.get("/retirements.ics", response_class=CalendarResponse)
async def export_retirements_ics(search: Annotated[RetirementFilter, Query()], executor: Executor) -> Response:
    """Export retirements as an iCalendar: an event for each series and date, with its sizes."""
    from app.converters.retirement_calendar import to_calendar

    revision = await executor.revision()
    rows = await executor.run_in_thread(partial(find_all_retirements, search))
    return CalendarResponse(to_calendar(rows, stamped_at=revision["created_at"]))


@router.post("/retirements", summary="Plan for retirements", response_model=_RETIREMENT_PLAN)
async def plan_retirements(body: RetirementPlanIn, executor: Executor) -> Response:
    """Find out which sizes of an inventory retire, when, and which sizes can take their place at what cost.

    A size or a region that the catalog does not have is an error of its item; the other items are answered.
    """
    return json_response(await executor.run_cpu_bound(lambda snapshot, today: _render_plan(body, snapshot, today)))


def _render_plan(body: RetirementPlanIn, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.converters.retirements import plan_body

    answer = yield from plan_body(body, snapshot, today)
    return answer.model_dump_json(by_alias=True)
