"""Endpoints for conflicts, series, GPUs, disks, regions, sources and revisions."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.models import Gpu, Region, Revision, Series
from app.catalog.queries.disks import DiskSearch
from app.catalog.queries.params import PageParams, PlainText
from app.catalog.queries.provenance import (
    ConflictSearch,
    RefusedPriceSearch,
    find_conflicts,
    find_refused_prices,
    find_rows,
    find_sources,
    get_series,
)
from app.http.late_models import LateModel

router = APIRouter(tags=["catalog"])
_GPU_PAGE = LateModel("app.schemas.catalog", "GpuPage")
_REGION_PAGE = LateModel("app.schemas.catalog", "RegionPage")
_REVISION_PAGE = LateModel("app.schemas.catalog", "RevisionPage")
_SERIES_DETAIL = LateModel("app.schemas.catalog", "SeriesDetailOut")
_SERIES_PAGE = LateModel("app.schemas.catalog", "SeriesPage")
_SOURCE_PAGE = LateModel("app.schemas.catalog", "SourcePage")
_DISK_PAGE = LateModel("app.schemas.costs", "DiskPage")
_CONFLICT_PAGE = LateModel("app.schemas.sizes", "ConflictPage")
_REFUSED_PAGE = LateModel("app.schemas.sizes", "RefusedPricePage")
PageQuery = Annotated[PageParams, Query()]


@router.get("/conflicts", response_model=_CONFLICT_PAGE)
async def list_conflicts(search: Annotated[ConflictSearch, Query()], executor: Executor) -> Response:
    """List every value of a source that was not accepted, with the value that was, and why."""
    return json_response(await executor.to_json(_CONFLICT_PAGE, partial(find_conflicts, search)))


@router.get("/refused-prices", response_model=_REFUSED_PAGE)
async def list_refused_prices(search: Annotated[RefusedPriceSearch, Query()], executor: Executor) -> Response:
    """List the prices of retail lists that were refused since they are the price of something else, with the reason."""
    return json_response(await executor.to_json(_REFUSED_PAGE, partial(find_refused_prices, search)))


@router.get("/series", response_model=_SERIES_PAGE)
async def list_series(page: PageQuery, executor: Executor) -> Response:
    """List the series."""
    return json_response(await executor.to_json(_SERIES_PAGE, partial(find_rows, Series, page)))


@router.get("/series/{series_id}", response_model=_SERIES_DETAIL)
async def show_series(
    series_id: Annotated[PlainText, Path(description="A series' id, name or alias.", examples=["nd_h100_v5"])],
    executor: Executor,
) -> Response:
    """Show a series: its rack, its benchmarks, its sizes and the features that all of them support."""
    return json_response(await executor.to_json(_SERIES_DETAIL, partial(get_series, series_id)))


@router.get("/gpus", response_model=_GPU_PAGE)
async def list_gpus(page: PageQuery, executor: Executor) -> Response:
    """List the GPU models."""
    return json_response(await executor.to_json(_GPU_PAGE, partial(find_rows, Gpu, page)))


@router.get("/disks", response_model=_DISK_PAGE)
async def list_disks(search: Annotated[DiskSearch, Query()], executor: Executor) -> Response:
    """List the managed disks, each with its price in the requested region, or in the cheapest one."""
    from app.converters.costs import to_disk_page
    from app.services.disks import find_disks

    page = to_disk_page(await executor.run(partial(find_disks, search)))
    return json_response(page.model_dump_json(by_alias=True))


@router.get("/regions", response_model=_REGION_PAGE)
async def list_regions(page: PageQuery, executor: Executor) -> Response:
    """List the regions."""
    return json_response(await executor.to_json(_REGION_PAGE, partial(find_rows, Region, page)))


@router.get("/sources", response_model=_SOURCE_PAGE)
async def list_sources(page: PageQuery, executor: Executor) -> Response:
    """List the sources."""
    freshness = await executor.freshness()
    return json_response(await executor.to_json(_SOURCE_PAGE, partial(find_sources, page, freshness)))


@router.get("/revisions", response_model=_REVISION_PAGE)
async def list_revisions(page: PageQuery, executor: Executor) -> Response:
    """List the ingests that changed the catalog, newest first."""
    return json_response(await executor.to_json(_REVISION_PAGE, partial(find_rows, Revision, page, newest_first=True)))
