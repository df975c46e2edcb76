"""Endpoints for sizes: search, one size, similar sizes, facts, prices, costs and facets."""

from datetime import date
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, json_response
from app.api.executor import QueryExecutor
from app.catalog.queries.availability import AvailabilitySearch, find_availability
from app.catalog.queries.costs import CostSearch
from app.catalog.queries.facets import render_facets
from app.catalog.queries.params import FacetSearch, PlainText, SimilarSearch, SizeParams, SizeSearch
from app.catalog.queries.prices import (
    AllPricesSearch,
    PriceHistorySearch,
    PriceSearch,
    find_all_prices,
    find_price_history,
    find_prices,
    is_quick,
    render_prices,
)
from app.catalog.queries.provenance import FactSearch, find_facts
from app.catalog.queries.sizes import find_size, render_page
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.http.late_models import LateModel

router = APIRouter(tags=["sizes"])
_SIZE_PAGE = LateModel("app.schemas.sizes", "SizePage")
_SIZE_DETAIL = LateModel("app.schemas.sizes", "SizeDetailOut")
_SIMILAR_PAGE = LateModel("app.schemas.compare", "SimilarPage")
_PRICE_PAGE = LateModel("app.schemas.sizes", "PricePage")
_PRICE_HISTORY_PAGE = LateModel("app.schemas.sizes", "PriceHistoryPage")
_FACETS = LateModel("app.schemas.sizes", "FacetsOut")
_SIZE_PRICE_PAGE = LateModel("app.schemas.sizes", "SizePricePage")
_COST = LateModel("app.schemas.costs", "CostOut")
_AVAILABILITY_PAGE = LateModel("app.schemas.sizes", "AvailabilityPage")
_FACT_PAGE = LateModel("app.schemas.sizes", "FactPage")

SizeName = Annotated[
    PlainText,
    Path(
        description="A size's name in any case, with or without `Standard_`, or an alias.",
        examples=["nd96isr_h100_v5"],
    ),
]


async def render_sizes(executor: QueryExecutor, search: SizeSearch) -> str:
    """Return a page of sizes as JSON."""
    return render_page(await executor.find_sizes(search))


@router.get("/sizes", response_model=_SIZE_PAGE)
async def list_sizes(search: Annotated[SizeSearch, Query()], executor: Executor) -> Response:
    """Find sizes, each with its price in the requested region, or in the cheapest one."""
    return json_response(await render_sizes(executor, search))


@router.get("/sizes/{name}", response_model=_SIZE_DETAIL)
async def show_size(name: SizeName, params: Annotated[SizeParams, Query()], executor: Executor) -> Response:
    """Show one size, with its cheapest on-demand Linux price."""
    plan = partial(find_size, name, params)
    return json_response(await (executor.run_in_thread(plan) if params.names_a_day else executor.run(plan)))


@router.get("/sizes/{name}/similar", response_model=_SIMILAR_PAGE)
async def list_similar_sizes(name: SizeName, search: Annotated[SimilarSearch, Query()], executor: Executor) -> Response:
    """List the sizes that are most similar to one, each with the terms that make up its distance."""
    return json_response(await executor.run_in_thread(partial(_render_similar, name, search)))


def _render_similar(name: str, search: SimilarSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.converters.compare import to_similar_page
    from app.services.similar import find_similar

    found = yield from find_similar(name, search, snapshot, today)
    return to_similar_page(found).model_dump_json(by_alias=True)


@router.get("/sizes/{name}/facts", response_model=_FACT_PAGE)
async def list_size_facts(name: SizeName, search: Annotated[FactSearch, Query()], executor: Executor) -> Response:
    """List what each source says about a size, which values were accepted, and why."""
    return json_response(await executor.to_json(_FACT_PAGE, partial(find_facts, name, search)))


@router.get("/sizes/{name}/availability", response_model=_AVAILABILITY_PAGE)
async def list_size_availability(
    name: SizeName, search: Annotated[AvailabilitySearch, Query()], executor: Executor
) -> Response:
    """List the regions and zones that have a size, whether or not a price is known there."""
    return json_response(await executor.to_json(_AVAILABILITY_PAGE, partial(find_availability, name, search)))


@router.get("/sizes/{name}/prices", response_model=_PRICE_PAGE)
async def list_size_prices(name: SizeName, search: Annotated[PriceSearch, Query()], executor: Executor) -> Response:
    """List the prices of a size: those in force on a day, or the whole history."""
    return json_response(_PRICE_PAGE.to_json(await executor.run_in_thread(partial(find_prices, name, search))))


@router.get("/sizes/{name}/cost", response_model=_COST)
async def show_size_cost(name: SizeName, search: Annotated[CostSearch, Query()], executor: Executor) -> Response:
    """Show what VMs of a size cost with their disks: an hour, a month, a year, and by vCPU, GiB and GPU."""
    from app.converters.costs import to_cost_out
    from app.services.costs import compute_costs

    cost = to_cost_out(await executor.run(partial(compute_costs, name, search)))
    return json_response(cost.model_dump_json(by_alias=True))


@router.get("/sizes/{name}/price-history", response_model=_PRICE_HISTORY_PAGE)
async def list_size_price_history(
    name: SizeName, search: Annotated[PriceHistorySearch, Query()], executor: Executor
) -> Response:
    """List what a size cost in a region over time, with the days between which each source has a price."""
    found = await executor.run_in_thread(partial(find_price_history, name, search))
    return json_response(_PRICE_HISTORY_PAGE.to_json(found))


@router.get("/facets", response_model=_FACETS)
async def list_facets(search: Annotated[FacetSearch, Query()], executor: Executor) -> Response:
    """Count what a search finds by GPU, series, region, status and flags, and return the ranges of its figures."""
    return json_response(await executor.run_in_thread(partial(_render_facets, search)))


def _render_facets(search: FacetSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    from app.catalog.queries.facet_counts import find_facets

    return render_facets((yield from find_facets(search, snapshot, today)))


async def render_price_list(executor: QueryExecutor, search: AllPricesSearch) -> str:
    """Return a page of prices as JSON."""
    plan = partial(_render_prices, search)
    if is_quick(search, await executor.snapshot()):
        return await executor.run(plan)
    return await executor.run_in_thread(plan)


def _render_prices(search: AllPricesSearch, snapshot: CatalogSnapshot, today: date) -> QueryPlan[str]:
    return render_prices((yield from find_all_prices(search, snapshot, today)))


@router.get("/prices", response_model=_SIZE_PRICE_PAGE)
async def list_prices(search: Annotated[AllPricesSearch, Query()], executor: Executor) -> Response:
    """List prices by size, region, OS and purchase model: those in force on a day, or the whole history."""
    return json_response(await render_price_list(executor, search))
