"""The endpoint that compares sizes field by field."""

from datetime import date
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.queries.params import CompareSearch
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.http.late_models import LateModel

router = APIRouter(tags=["sizes"])
_COMPARISON = LateModel("app.schemas.compare", "ComparisonOut")


@router.get("/compare", response_model=_COMPARISON, responses={404: {}})
async def compare_sizes(search: Annotated[CompareSearch, Query()], executor: Executor) -> Response:
    """Compare sizes field by field: each value with its difference from a baseline, and prices per unit of GPU."""
    return json_response(await executor.run_in_thread(partial(_render_comparison, search)))


def _render_comparison(search: CompareSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.converters.compare import to_comparison_out
    from app.services.compare import compare

    return to_comparison_out((yield from compare(search, snapshot, today))).model_dump_json(by_alias=True)
