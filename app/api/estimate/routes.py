"""Estimate: what a model needs of memory, time and money, from the workload alone."""

from fastapi import APIRouter

from app.api.deps import ReadSession
from app.api.estimate.answers import EstimateOut
from app.api.estimate.schemas import EstimateIn

router = APIRouter(tags=["fit"])


@router.post("/estimate", summary="Estimate what a model needs")
def estimate_workload(workload: EstimateIn, session: ReadSession) -> EstimateOut:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    from app.api.estimate.asking import to_workload
    from app.estimating import estimate

    return EstimateOut.model_validate(estimate(session, to_workload(workload)))
