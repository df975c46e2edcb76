"""Facets of a search: what a panel of filters shows, in one answer."""

from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from app.api.schemas.facets import FacetsOut
from app.catalog.queries.facets import find_facets
from app.catalog.queries.params import SizeFilter

router = APIRouter(tags=["sizes"])


@router.get("/facets", response_model=FacetsOut)
async def list_facets(search: Annotated[SizeFilter, Query()], request: Request) -> Any:
    """Count what a search finds by GPU, series, region, standing and flags, and give the ranges of its figures."""
    found = await request.app.state.executor.run_in_thread(partial(find_facets, search))
    told = asdict(found)
    return {"total": told["total"], **told["counts"], **told["ranges"]}
