"""Sizes: search them, look at one, ask who says what of it and what it costs."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from app.api.deps import ReadSession, Today
from app.api.schemas import FactPage, PricePage, SizeOut, SizePage
from app.catalog.ask.paging import Item, Listing
from app.catalog.ask.prices import PriceSearch
from app.catalog.ask.prices import find_prices as prices_of
from app.catalog.ask.provenance import FactSearch, find_facts
from app.catalog.ask.queries import find_sizes, get_size
from app.catalog.ask.search import SizeSearch, Text

router = APIRouter(prefix="/sizes", tags=["sizes"])

Name = Annotated[Text, Path(description="A size's name in any case, with or without `Standard_`, or an alias.")]


@router.get("", response_model=SizePage)
def list_sizes(search: Annotated[SizeSearch, Query()], session: ReadSession, today: Today) -> Listing:
    """Find sizes, each with the price of the asked region, else of the cheapest."""
    return find_sizes(session, search, today=today)


@router.get("/{name}", response_model=SizeOut)
def show_size(name: Name, session: ReadSession, today: Today) -> Item:
    """Show one size, with its cheapest on-demand Linux price."""
    return get_size(session, name, today=today)


@router.get("/{name}/facts", response_model=FactPage)
def list_size_facts(name: Name, search: Annotated[FactSearch, Query()], session: ReadSession) -> Listing:
    """List what every source says of a size, which word was accepted, and why."""
    return find_facts(session, name, search)


@router.get("/{name}/prices", response_model=PricePage)
def list_size_prices(name: Name, search: Annotated[PriceSearch, Query()], session: ReadSession, today: Today) -> Any:
    """List what a size costs: in force on a day, or all there ever was."""
    return prices_of(session, name, search, today=today)
