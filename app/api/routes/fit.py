"""Fit: which sizes hold a job, on how many VMs, at what cost, and why the others do not."""

from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, json_response
from app.api.executor import QueryExecutor
from app.api.schemas.estimate_request import EstimateIn
from app.api.schemas.estimate_response import EstimateOut
from app.api.schemas.fit_request import FitIn
from app.api.schemas.fit_response import FitAnswerOut, FitOut
from app.catalog.queries.fit_params import FitSearch
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan

router = APIRouter(tags=["fit"])


@router.get("/fit", summary="Find sizes for raw needs", response_model=FitOut)
async def fit_resources(search: Annotated[FitSearch, Query()], executor: Executor) -> Response:
    """Say which sizes meet the needs and what they cost; nothing fits: an empty list and the nearest misses."""
    return json_response(await executor.run_cpu_bound(lambda known, today: _render_resource_fit(search, known, today)))


@router.post("/fit", summary="Find sizes for a model", response_model=FitAnswerOut)
async def fit_workload(body: FitIn, executor: Executor) -> Response:
    """Say which sizes hold a model that is served or trained, or have raw amounts: how, how fast and at what cost.

    Sizes that do not fit come with every constraint that they fail, and with changes after which they would.
    """
    return json_response(await render_workload_fit(executor, body))


async def render_workload_fit(executor: QueryExecutor, body: FitIn) -> str:
    """Answer a body with JSON text, beside the event loop: it takes milliseconds of arithmetic."""
    return await executor.run_cpu_bound(lambda known, today: _render_workload_fit(body, known, today))


def _render_resource_fit(search: FitSearch, known: CatalogSnapshot, today: date) -> QueryPlan[str]:
    """Answer raw needs with JSON text."""
    from app.api.converters.resource_fit import to_fit_out
    from app.services.resource_fit import plan_resource_fit

    found = yield from plan_resource_fit(search, known, today)
    return to_fit_out(found, rejected="rejected" in search.include).model_dump_json(by_alias=True)


def _render_workload_fit(body: FitIn, known: CatalogSnapshot, today: date) -> QueryPlan[str]:
    """Answer a body with JSON text."""
    from app.api.converters.fit_request import plan_fit

    answered = yield from plan_fit(body, known, today)
    return answered.model_dump_json(by_alias=True)


@router.post("/estimate", summary="Estimate what a model needs", response_model=EstimateOut)
async def estimate_workload(workload: EstimateIn, executor: Executor) -> Response:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    from app.api.converters.fit_request import to_workload
    from app.services.estimate import estimate

    return json_response(await executor.to_json(EstimateOut, estimate, to_workload(workload)))
