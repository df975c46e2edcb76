"""Endpoints about retirements: the list, the same as a calendar, and a plan for an inventory."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, answer, model_of
from app.catalog.queries.retirements import RetirementFilter, RetirementSearch, find_all_retirements
from app.schemas.retirement_request import RetirementPlanIn

router = APIRouter(tags=["retirements"])


class CalendarResponse(Response):
    """An iCalendar in UTF-8."""

    media_type = "text/calendar"


@router.get("/retirements", response_model=model_of("GET /retirements"))
async def list_retirements(search: Annotated[RetirementSearch, Query()], executor: Executor) -> Response:
    """List the sizes that retire, then those that have retired, by date, each with the source of the date."""
    return await answer(executor, "GET /retirements", search)


@router.get("/retirements.ics", response_class=CalendarResponse)
async def export_retirements_ics(search: Annotated[RetirementFilter, Query()], executor: Executor) -> Response:
    """Export retirements as an iCalendar: an event for each series and date, with its sizes."""
    from app.converters.retirement_calendar import to_calendar

    revision = await executor.revision()
    rows = await executor.ask(find_all_retirements, search)
    return CalendarResponse(to_calendar(rows, stamped_at=revision["created_at"]))


@router.post("/retirements", summary="Plan for retirements", response_model=model_of("POST /retirements"))
async def plan_retirements(body: RetirementPlanIn, executor: Executor) -> Response:
    """Find out which sizes of an inventory retire, when, and which sizes can take their place at what cost.

    A size or a region that the catalog does not have is an error of its item; the other items are answered.
    """
    return await answer(executor, "POST /retirements", body)
