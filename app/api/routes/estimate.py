"""Estimate: what a model needs of memory, time and money, from the workload alone."""

from fastapi import APIRouter, Response

from app.api.deps import Executor, as_json
from app.api.schemas.estimate_request import EstimateIn
from app.api.schemas.estimate_response import EstimateOut

router = APIRouter(tags=["fit"])


@router.post("/estimate", summary="Estimate what a model needs", response_model=EstimateOut)
async def estimate_workload(workload: EstimateIn, executor: Executor) -> Response:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    from app.api.converters.estimate_request import to_workload
    from app.services.estimate import estimate

    return as_json(await executor.to_json(EstimateOut, estimate, to_workload(workload)))
