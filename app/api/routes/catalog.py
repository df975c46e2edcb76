"""Endpoints for conflicts, series, GPUs, disks, regions, sources and revisions."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.models import Gpu, Region, Revision, Series
from app.catalog.queries.disks import DiskSearch
from app.catalog.queries.params import PageParams, PlainText
from app.catalog.queries.provenance import ConflictSearch, find_conflicts, find_rows, find_sources, get_series
from app.schemas.catalog import GpuPage, RegionPage, RevisionPage, SeriesDetailOut, SeriesPage, SourcePage
from app.schemas.costs import DiskPage
from app.schemas.sizes import ConflictPage

router = APIRouter(tags=["catalog"])
PageQuery = Annotated[PageParams, Query()]


@router.get("/conflicts", response_model=ConflictPage)
async def list_conflicts(search: Annotated[ConflictSearch, Query()], executor: Executor) -> Response:
    """List every value of a source that was not accepted, with the value that was, and why."""
    return json_response(await executor.to_json(ConflictPage, partial(find_conflicts, search)))


@router.get("/series", response_model=SeriesPage)
async def list_series(page: PageQuery, executor: Executor) -> Response:
    """List the series."""
    return json_response(await executor.to_json(SeriesPage, partial(find_rows, Series, page)))


@router.get("/series/{series_id}", response_model=SeriesDetailOut)
async def show_series(
    series_id: Annotated[PlainText, Path(description="A series' id, name or alias.", examples=["nd_h100_v5"])],
    executor: Executor,
) -> Response:
    """Show a series: its rack, its benchmarks, its sizes and the features that all of them support."""
    return json_response(await executor.to_json(SeriesDetailOut, partial(get_series, series_id)))


@router.get("/gpus", response_model=GpuPage)
async def list_gpus(page: PageQuery, executor: Executor) -> Response:
    """List the GPU models."""
    return json_response(await executor.to_json(GpuPage, partial(find_rows, Gpu, page)))


@router.get("/disks")
async def list_disks(search: Annotated[DiskSearch, Query()], executor: Executor) -> DiskPage:
    """List the managed disks, each with its price in the requested region, or in the cheapest one."""
    from app.converters.costs import to_disk_page
    from app.services.disks import find_disks

    return to_disk_page(await executor.run(partial(find_disks, search)))


@router.get("/regions", response_model=RegionPage)
async def list_regions(page: PageQuery, executor: Executor) -> Response:
    """List the regions."""
    return json_response(await executor.to_json(RegionPage, partial(find_rows, Region, page)))


@router.get("/sources", response_model=SourcePage)
async def list_sources(page: PageQuery, executor: Executor) -> Response:
    """List the sources."""
    freshness = await executor.freshness()
    return json_response(await executor.to_json(SourcePage, partial(find_sources, page, freshness)))


@router.get("/revisions", response_model=RevisionPage)
async def list_revisions(page: PageQuery, executor: Executor) -> Response:
    """List the ingests that changed the catalog, newest first."""
    return json_response(await executor.to_json(RevisionPage, partial(find_rows, Revision, page, newest_first=True)))
