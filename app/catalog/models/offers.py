"""The tables that are derived: what a size costs in a region, and its JSON."""

from datetime import date

from sqlalchemy import Index
from sqlmodel import Field

from app.catalog.column_types import BYTEWISE, WITHOUT_ROWID, CatalogTable


class Offer(CatalogTable, table=True):
    """What a size costs today in a region by each purchase model; derived at ingest.

    The regions of `app.catalog.purchases.ANY_REGION` have every size, with its offer in the region where it is
    cheapest by that purchase model, or with no price.
    There are no foreign keys: offers are made of rows of sizes and prices, and PostgreSQL would take longer to look for
    these again than to write an offer.
    """

    __table_args__ = (
        Index("ix_offer_on_demand", "region", "os", "on_demand_rank_usd", "size_key"),
        Index("ix_offer_spot", "region", "os", "spot_rank_usd", "size_key"),
        WITHOUT_ROWID,
    )

    region: str = Field(sa_type=BYTEWISE, primary_key=True, description="where it was asked for, or one of ANY_REGION")
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    size_key: str = Field(sa_type=BYTEWISE, primary_key=True)
    gpu_memory_gib: float | None = Field(default=None, description="this and the nine below: as in size")
    gpu_count: float | None = None
    gpu_count_numerator: int | None = None
    gpu_count_denominator: int | None = None
    vcpus: int | None = None
    coremark: int | None = None
    memory_gib: float | None = None
    preview: bool | None = None
    withdrawn: bool | None = None
    retirement_date: date | None = None
    on_demand_rank_usd: float = Field(description="USD an hour; infinity where unknown")
    spot_rank_usd: float
    reserved_1y_rank_usd: float | None = Field(default=None, description="null where unknown: no index is by these")
    reserved_3y_rank_usd: float | None = None
    savings_1y_rank_usd: float | None = None
    savings_3y_rank_usd: float | None = None
    priced_in: str | None = Field(sa_type=BYTEWISE, default=None)
    on_demand_as_of: date | None = Field(default=None, description="the day from which the price is known to hold")
    spot_as_of: date | None = None
    reserved_1y_as_of: date | None = None
    reserved_3y_as_of: date | None = None
    savings_1y_as_of: date | None = None
    savings_3y_as_of: date | None = None
    on_demand_approximate_date: bool | None = None
    spot_approximate_date: bool | None = None
    reserved_1y_approximate_date: bool | None = None
    reserved_3y_approximate_date: bool | None = None
    savings_1y_approximate_date: bool | None = None
    savings_3y_approximate_date: bool | None = None
    on_demand_adjustment: str | None = Field(
        sa_type=BYTEWISE, default=None, description="JSON: list price and rules; null where none of Adjustment applies"
    )
    spot_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    on_demand_median_usd: float | None = Field(
        default=None, description="where the price is unusual: the median of the size over all regions"
    )
    spot_median_usd: float | None = None
    reserved_1y_median_usd: float | None = None
    reserved_3y_median_usd: float | None = None
    savings_1y_median_usd: float | None = None
    savings_3y_median_usd: float | None = None
    on_demand_disputed: bool | None = Field(default=None, description="retail lists disagree on the price")
    spot_disputed: bool | None = None
    reserved_1y_disputed: bool | None = None
    reserved_3y_disputed: bool | None = None
    savings_1y_disputed: bool | None = None
    savings_3y_disputed: bool | None = None
    on_demand_formula: str | None = Field(
        sa_type=BYTEWISE, default=None, description="how the price is computed; null where a list states it"
    )
    spot_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_1y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_3y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_1y_formula: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_3y_formula: str | None = Field(sa_type=BYTEWISE, default=None)


class SizeJson(CatalogTable, table=True):
    """A size as a JSON object without status and price, written at ingest, so that searches need not serialize it."""

    __tablename__ = "size_doc"

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    doc: str = Field(sa_type=BYTEWISE)
