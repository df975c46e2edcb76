"""Endpoints for conflicts, series, GPUs, disks, regions, sources and revisions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, answer, model_of
from app.catalog.queries.disks import DiskSearch
from app.catalog.queries.params import PageParams, PlainText, SizeFilter
from app.catalog.queries.provenance import (
    ConflictSearch,
    RefusedPriceSearch,
)
from app.converters.questions import NoParams

router = APIRouter(tags=["catalog"])
PageQuery = Annotated[PageParams, Query()]


@router.get("/conflicts", response_model=model_of("GET /conflicts"))
async def list_conflicts(search: Annotated[ConflictSearch, Query()], executor: Executor) -> Response:
    """List every value of a source that was not accepted, with the value that was, and why."""
    return await answer(executor, "GET /conflicts", search)


@router.get("/coverage", response_model=model_of("GET /coverage"))
async def show_coverage(search: Annotated[SizeFilter, Query()], executor: Executor) -> Response:
    """Show for how many sizes each figure is known, by type, and of which series it is not, with the reason."""
    return await answer(executor, "GET /coverage", search)


@router.get("/refused-prices", response_model=model_of("GET /refused-prices"))
async def list_refused_prices(search: Annotated[RefusedPriceSearch, Query()], executor: Executor) -> Response:
    """List the prices of retail lists that were refused since they are the price of something else, with the reason."""
    return await answer(executor, "GET /refused-prices", search)


@router.get("/series", response_model=model_of("GET /series"))
async def list_series(page: PageQuery, executor: Executor) -> Response:
    """List the series."""
    return await answer(executor, "GET /series", page)


@router.get("/series/{series_id}", response_model=model_of("GET /series/{name}"))
async def show_series(
    series_id: Annotated[PlainText, Path(description="A series' id, name or alias.", examples=["nd_h100_v5"])],
    executor: Executor,
) -> Response:
    """Show a series: its rack, its benchmarks, its sizes and the features that all of them support."""
    return await answer(executor, "GET /series/{name}", series_id, NoParams())


@router.get("/gpus", response_model=model_of("GET /gpus"))
async def list_gpus(page: PageQuery, executor: Executor) -> Response:
    """List the GPU models."""
    return await answer(executor, "GET /gpus", page)


@router.get("/disks", response_model=model_of("GET /disks"))
async def list_disks(search: Annotated[DiskSearch, Query()], executor: Executor) -> Response:
    """List the managed disks, each with its price in the requested region, or in the cheapest one."""
    return await answer(executor, "GET /disks", search)


@router.get("/regions", response_model=model_of("GET /regions"))
async def list_regions(page: PageQuery, executor: Executor) -> Response:
    """List the regions."""
    return await answer(executor, "GET /regions", page)


@router.get("/sources", response_model=model_of("GET /sources"))
async def list_sources(page: PageQuery, executor: Executor) -> Response:
    """List the sources."""
    return await answer(executor, "GET /sources", page, await executor.freshness())


@router.get("/revisions", response_model=model_of("GET /revisions"))
async def list_revisions(page: PageQuery, executor: Executor) -> Response:
    """List the ingests that changed the catalog, newest first."""
    return await answer(executor, "GET /revisions", page)
