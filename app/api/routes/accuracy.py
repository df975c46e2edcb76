"""The endpoint for the accuracy of estimates."""

from fastapi import APIRouter, Response

from app.api.deps import json_response
from app.schemas.accuracy import AccuracyOut

router = APIRouter(tags=["fit"])


@router.get("/accuracy", summary="Show how accurate estimates are", response_model=AccuracyOut)
async def show_accuracy() -> Response:
    """Show how estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.accuracy import read_accuracy

    return json_response(AccuracyOut.model_validate({"items": read_accuracy()}).model_dump_json(by_alias=True))
