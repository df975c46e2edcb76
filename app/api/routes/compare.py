"""The endpoint that compares sizes field by field."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, answer, model_of
from app.catalog.queries.params import CompareSearch

router = APIRouter(tags=["sizes"])


@router.get("/compare", response_model=model_of("GET /compare"), responses={404: {}})
async def compare_sizes(search: Annotated[CompareSearch, Query()], executor: Executor) -> Response:
    """Compare sizes field by field: each value with its difference from a baseline, and prices per unit of GPU."""
    return await answer(executor, "GET /compare", search)
