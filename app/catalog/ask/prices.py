"""Prices of a size: those in force on a day, or all there ever were."""

from datetime import date

from pydantic import Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.ask.lookups import check_regions, region_codes, size_key_of
from app.catalog.ask.paging import Listing, Term, take_page
from app.catalog.ask.search import Day, Os, Page, Purchase, Regions
from app.catalog.models import Price
from app.catalog.tables import table_of


class PriceSearch(Page):
    """Which prices of a size."""

    region: Regions = Field(default=(), description="In this region; in any of several.", examples=[["eastus"]])
    os: Os | None = Field(default=None, description="Of this operating system.")
    purchase: Purchase | None = Field(default=None, description="Of this purchase model.")
    as_of: Day | None = Field(
        default=None, description="In force on this day; default: today.", examples=["2026-07-01"]
    )
    history: bool = Field(
        default=False, description="Every price up to that day, not only the one in force.", examples=[False]
    )


def find_prices(session: Session, name: str, search: PriceSearch, *, today: date) -> Listing:
    """Find a size's prices by region, system and purchase model; raises NotFound, or BadQuestion for a region."""
    key = size_key_of(session, name)
    check_regions(region_codes(session), "region", search.region)
    price = table_of(Price).c
    newest = func.row_number().over(
        partition_by=(price.region, price.os, price.purchase), order_by=price.valid_from.desc()
    )
    until = select(*price, newest.label("age")).where(
        price.size_key == key, price.valid_from <= (search.as_of or today)
    )
    kept = until.subquery().c
    shown = ("region", "os", "purchase", "valid_from", "usd_per_hour", "approximate_date", "source_id")
    query = select(*(kept[column] for column in shown))
    if not search.history:
        query = query.where(kept.age == 1)
    if search.region:
        query = query.where(kept.region.in_(search.region))
    for column, value in (("os", search.os), ("purchase", search.purchase)):
        if value is not None:
            query = query.where(kept[column] == value)
    terms = [Term(name=column, expression=kept[column], nullable=False) for column in shown[:4]]
    question = f"{key} {search.model_dump_json(exclude={'limit', 'cursor'})} {today}"
    return take_page(session, query, terms, question=question, limit=search.limit, cursor=search.cursor)
