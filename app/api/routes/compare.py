"""Compare: several sizes side by side, field by field."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import Executor
from app.api.schemas.compare import ComparisonOut
from app.catalog.queries.fit_params import CompareSearch

router = APIRouter(tags=["sizes"])


@router.get("/compare", responses={404: {}})
async def compare_sizes(search: Annotated[CompareSearch, Query()], executor: Executor) -> ComparisonOut:
    """Lay sizes side by side: every field with its difference from one of them, and what a unit of each GPU costs."""
    from app.api.converters.compare import to_comparison_out
    from app.services.compare import compare

    return to_comparison_out(await executor.run(partial(compare, search)))
