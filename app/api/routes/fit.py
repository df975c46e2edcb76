"""Endpoints that find sizes for resources or a model, and estimate what a model needs."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, answer, json_response, model_of
from app.api.executor import QueryExecutor
from app.catalog.queries.language_models import ModelsByKey
from app.catalog.queries.params import FitSearch
from app.http.long_bodies import LongBodyRoute
from app.late_models import LateModel
from app.schemas.estimate_request import EstimateIn
from app.schemas.fit_request import FitIn

router = APIRouter(tags=["fit"], route_class=LongBodyRoute)
_ESTIMATE = LateModel("app.schemas.estimate_response", "EstimateOut")


@router.get("/fit", summary="Find sizes for raw needs", response_model=model_of("GET /fit"))
async def fit_resources(search: Annotated[FitSearch, Query()], executor: Executor) -> Response:
    """Find the sizes that have the given resources, with their cost; if none has, return the nearest misses."""
    return await answer(executor, "GET /fit", search)


@router.post("/fit", summary="Find sizes for a model", response_model=model_of("POST /fit"))
async def fit_workload(body: FitIn, executor: Executor) -> Response:
    """Find the sizes that can serve or train a model, or have given resources: how, how fast and at what cost.

    Sizes that do not fit are returned with every constraint that they fail, and with changes that would make them fit.
    """
    return await answer(executor, "POST /fit", body)


@router.post("/estimate", summary="Estimate what a model needs", response_model=_ESTIMATE)
async def estimate_workload(workload: EstimateIn, executor: Executor) -> Response:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    return json_response(await render_estimate(executor, workload))


async def render_estimate(executor: QueryExecutor, workload: EstimateIn) -> str:
    """Return the response to POST /estimate as JSON, computed in a thread; without a preset it needs no catalog."""
    if workload.model is None:
        return await executor.compute(_render_estimate, workload, {})
    return await executor.compute(_render_estimate, workload, (await executor.snapshot()).models)


def _render_estimate(workload: EstimateIn, models: ModelsByKey) -> str:
    from app.converters.fit_request import estimate_body

    return estimate_body(workload, models).model_dump_json(by_alias=True)
