"""The rest of the catalog: conflicts, series, GPUs, regions, sources, revisions."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from app.api.catalog_schemas import GpuPage, RegionPage, RevisionPage, SeriesDetailOut, SeriesPage, SourcePage
from app.api.deps import ReadSession
from app.api.schemas import ConflictPage
from app.catalog.ask.lists import find_all, get_series
from app.catalog.ask.paging import Item, Listing
from app.catalog.ask.provenance import ConflictSearch, find_conflicts
from app.catalog.ask.search import Page, Text
from app.catalog.models import Gpu, Region, Revision, Series, Source

router = APIRouter(tags=["catalog"])
PageQuery = Annotated[Page, Query()]


@router.get("/conflicts", response_model=ConflictPage)
def list_conflicts(search: Annotated[ConflictSearch, Query()], session: ReadSession) -> Listing:
    """List every word of a source that was not accepted, beside the one that was, and why."""
    return find_conflicts(session, search)


@router.get("/series", response_model=SeriesPage)
def list_series(page: PageQuery, session: ReadSession) -> Listing:
    """List the series."""
    return find_all(session, Series, page)


@router.get("/series/{series_id}", response_model=SeriesDetailOut)
def show_series(
    series_id: Annotated[Text, Path(description="Its id, its name, or another title of it.", examples=["nd_h100_v5"])],
    session: ReadSession,
) -> Item:
    """Show a series by its id or name: its rack, its benchmarks, its sizes and what they all support."""
    return get_series(session, series_id)


@router.get("/gpus", response_model=GpuPage)
def list_gpus(page: PageQuery, session: ReadSession) -> Listing:
    """List the GPU models."""
    return find_all(session, Gpu, page)


@router.get("/regions", response_model=RegionPage)
def list_regions(page: PageQuery, session: ReadSession) -> Listing:
    """List the regions."""
    return find_all(session, Region, page)


@router.get("/sources", response_model=SourcePage)
def list_sources(page: PageQuery, session: ReadSession) -> Listing:
    """List the sources."""
    return find_all(session, Source, page)


@router.get("/revisions", response_model=RevisionPage)
def list_revisions(page: PageQuery, session: ReadSession) -> Listing:
    """List the ingests that changed the catalog, the newest first."""
    return find_all(session, Revision, page, newest_first=True)
