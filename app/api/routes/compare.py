"""The endpoint that compares sizes field by field."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import Executor
from app.catalog.queries.params import CompareSearch
from app.schemas.compare import ComparisonOut

router = APIRouter(tags=["sizes"])


@router.get("/compare", responses={404: {}})
async def compare_sizes(search: Annotated[CompareSearch, Query()], executor: Executor) -> ComparisonOut:
    """Compare sizes field by field: each value with its difference from a baseline, and prices per unit of GPU."""
    from app.converters.compare import to_comparison_out
    from app.services.compare import compare

    run = executor.run_in_thread if search.names_a_day else executor.run
    return to_comparison_out(await run(partial(compare, search)))
