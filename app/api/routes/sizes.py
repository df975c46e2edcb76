"""Endpoints for sizes: search, one size, similar sizes, facts, prices, costs and facets."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, answer, model_of
from app.catalog.queries.availability import AvailabilitySearch
from app.catalog.queries.costs import CostSearch
from app.catalog.queries.params import FacetSearch, PlainText, SimilarSearch, SizeParams, SizeSearch
from app.catalog.queries.prices import (
    AllPricesSearch,
    PriceHistorySearch,
    PriceSearch,
)
from app.catalog.queries.provenance import FactSearch

router = APIRouter(tags=["sizes"])

SizeName = Annotated[
    PlainText,
    Path(
        description="A size's name in any case, with or without `Standard_`, or an alias.",
        examples=["nd96isr_h100_v5"],
    ),
]


@router.get("/sizes", response_model=model_of("GET /sizes"))
async def list_sizes(search: Annotated[SizeSearch, Query()], executor: Executor) -> Response:
    """Find sizes, each with its price in the requested region, or in the cheapest one."""
    return await answer(executor, "GET /sizes", search)


@router.get("/sizes/{name}", response_model=model_of("GET /sizes/{name}"))
async def show_size(name: SizeName, params: Annotated[SizeParams, Query()], executor: Executor) -> Response:
    """Show one size, with its cheapest on-demand Linux price."""
    return await answer(executor, "GET /sizes/{name}", name, params)


@router.get("/sizes/{name}/similar", response_model=model_of("GET /sizes/{name}/similar"))
async def list_similar_sizes(name: SizeName, search: Annotated[SimilarSearch, Query()], executor: Executor) -> Response:
    """List the sizes that are most similar to one, each with the terms that make up its distance."""
    return await answer(executor, "GET /sizes/{name}/similar", name, search)


@router.get("/sizes/{name}/facts", response_model=model_of("GET /sizes/{name}/facts"))
async def list_size_facts(name: SizeName, search: Annotated[FactSearch, Query()], executor: Executor) -> Response:
    """List what each source says about a size, which values were accepted, and why."""
    return await answer(executor, "GET /sizes/{name}/facts", name, search)


@router.get("/sizes/{name}/availability", response_model=model_of("GET /sizes/{name}/availability"))
async def list_size_availability(
    name: SizeName, search: Annotated[AvailabilitySearch, Query()], executor: Executor
) -> Response:
    """List the regions and zones that have a size, whether or not a price is known there."""
    return await answer(executor, "GET /sizes/{name}/availability", name, search)


@router.get("/sizes/{name}/prices", response_model=model_of("GET /sizes/{name}/prices"))
async def list_size_prices(name: SizeName, search: Annotated[PriceSearch, Query()], executor: Executor) -> Response:
    """List the prices of a size: those in force on a day, or the whole history."""
    return await answer(executor, "GET /sizes/{name}/prices", name, search)


@router.get("/sizes/{name}/cost", response_model=model_of("GET /sizes/{name}/cost"))
async def show_size_cost(name: SizeName, search: Annotated[CostSearch, Query()], executor: Executor) -> Response:
    """Show what VMs of a size cost with their disks: an hour, a month, a year, and by vCPU, GiB and GPU."""
    return await answer(executor, "GET /sizes/{name}/cost", name, search)


@router.get("/sizes/{name}/price-history", response_model=model_of("GET /sizes/{name}/price-history"))
async def list_size_price_history(
    name: SizeName, search: Annotated[PriceHistorySearch, Query()], executor: Executor
) -> Response:
    """List what a size cost in a region over time, with the days between which each source has a price."""
    return await answer(executor, "GET /sizes/{name}/price-history", name, search)


@router.get("/facets", response_model=model_of("GET /facets"))
async def list_facets(search: Annotated[FacetSearch, Query()], executor: Executor) -> Response:
    """Count what a search finds by GPU, series, region, status and flags, and return the ranges of its figures."""
    return await answer(executor, "GET /facets", search)


@router.get("/prices", response_model=model_of("GET /prices"))
async def list_prices(search: Annotated[AllPricesSearch, Query()], executor: Executor) -> Response:
    """List prices by size, region, OS and purchase model: those in force on a day, or the whole history."""
    return await answer(executor, "GET /prices", search)
