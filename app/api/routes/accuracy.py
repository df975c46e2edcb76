"""The endpoint for the accuracy of estimates."""

from fastapi import APIRouter, Response

from app.api.deps import json_response
from app.late_models import LateModel

router = APIRouter(tags=["fit"])
_ACCURACY = LateModel("app.schemas.accuracy", "AccuracyOut")


@router.get("/accuracy", summary="Show how accurate estimates are", response_model=_ACCURACY)
async def show_accuracy() -> Response:
    """Show how estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.accuracy import read_accuracy

    return json_response(_ACCURACY.to_json({"items": read_accuracy()}))
