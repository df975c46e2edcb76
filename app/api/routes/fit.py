"""Endpoints that find sizes for resources or a model, and estimate what a model needs."""

import asyncio
from datetime import date
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, json_response
from app.api.executor import QueryExecutor
from app.catalog.queries.language_models import ModelsByKey
from app.catalog.queries.params import FitSearch
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.http.late_models import LateModel
from app.http.long_bodies import LongBodyRoute
from app.schemas.estimate_request import EstimateIn
from app.schemas.fit_request import FitIn

router = APIRouter(tags=["fit"], route_class=LongBodyRoute)
_FIT = LateModel("app.schemas.fit_response", "FitOut")
_FIT_ANSWER = LateModel("app.schemas.fit_response", "FitAnswerOut")
_ESTIMATE = LateModel("app.schemas.estimate_response", "EstimateOut")


@router.get("/fit", summary="Find sizes for raw needs", response_model=_FIT)
async def fit_resources(search: Annotated[FitSearch, Query()], executor: Executor) -> Response:
    """Find the sizes that have the given resources, with their cost; if none has, return the nearest misses."""
    return json_response(
        await executor.run_cpu_bound(lambda snapshot, today: _render_resource_fit(search, snapshot, today))
    )


@router.post("/fit", summary="Find sizes for a model", response_model=_FIT_ANSWER)
async def fit_workload(body: FitIn, executor: Executor) -> Response:
    """Find the sizes that can serve or train a model, or have given resources: how, how fast and at what cost.

    Sizes that do not fit are returned with every constraint that they fail, and with changes that would make them fit.
    """
    return json_response(await render_workload_fit(executor, body))


async def render_workload_fit(executor: QueryExecutor, body: FitIn) -> str:
    """Return the response to POST /fit as JSON, computed in a thread: it takes milliseconds of arithmetic."""
    return await executor.run_cpu_bound(lambda snapshot, today: _render_workload_fit(body, snapshot, today))


def _render_resource_fit(search: FitSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.converters.resource_fit import to_fit_out
    from app.services.resource_fit import plan_resource_fit

    rejected = "rejected" in search.include
    recommendation = yield from plan_resource_fit(search, snapshot, today, rejected=rejected)
    return to_fit_out(recommendation).model_dump_json(by_alias=True)


def _render_workload_fit(body: FitIn, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.converters.fit_request import plan_fit

    answer = yield from plan_fit(body, snapshot, today)
    return answer.model_dump_json(by_alias=True)


@router.post("/estimate", summary="Estimate what a model needs", response_model=_ESTIMATE)
async def estimate_workload(workload: EstimateIn, executor: Executor) -> Response:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    return json_response(await render_estimate(executor, workload))


async def render_estimate(executor: QueryExecutor, workload: EstimateIn) -> str:
    """Return the response to POST /estimate as JSON, computed in a thread; without a preset it needs no catalog."""
    if workload.model is None:
        return await asyncio.to_thread(_render_estimate, workload, {})
    models = (await executor.snapshot()).models
    return await executor.run_in_session(lambda _: _render_estimate(workload, models))


def _render_estimate(workload: EstimateIn, models: ModelsByKey) -> str:
    from app.converters.fit_request import estimate_body

    return estimate_body(workload, models).model_dump_json(by_alias=True)
