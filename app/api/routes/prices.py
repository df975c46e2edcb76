"""Prices of any sizes: what is in force on a day, or all there ever was."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from app.api.schemas.sizes import SizePricePage
from app.catalog.queries.prices import AllPricesSearch, find_all_prices

router = APIRouter(tags=["sizes"])


@router.get("/prices", response_model=SizePricePage)
async def list_prices(search: Annotated[AllPricesSearch, Query()], request: Request) -> Any:
    """List prices by size, region, system and purchase model: in force on a day, or all there ever was."""
    return await request.app.state.executor.run_in_thread(partial(find_all_prices, search))
