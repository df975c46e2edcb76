"""The tables that are derived: what a size costs in a region, and its JSON."""

from datetime import date

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from app.catalog.column_types import BYTEWISE
from app.catalog.purchases import PURCHASE_MODELS

_FILTERED = ("retirement_date", "withdrawn", "preview", "gpu_memory_gib", "gpu_count", "vcpus", "memory_gib")
"""Columns of an offer that one index covers, so that totals and facets are counted without reading whole offers."""


class Offer(SQLModel, table=True):
    """What a size costs today in a region by each purchase model, on demand in the order of price; derived at ingest.

    The regions of `app.catalog.purchases.ANY_REGION` have every size, with its offer in the region where it is
    cheapest by that purchase model, or with no price. The indexes of sizes with a GPU are in app.catalog.indexes.
    """

    __table_args__ = (
        Index("ix_offer_size", "region", "os", "size_key", unique=True),
        *(
            Index(f"ix_offer_{purchase}", "region", "os", f"{purchase}_rank_usd", "size_key", *covered)
            for purchase in PURCHASE_MODELS[1:]
            for covered in [_FILTERED if purchase == "spot" else ()]
        ),
        {"sqlite_with_rowid": False},
    )

    region: str = Field(sa_type=BYTEWISE, primary_key=True, description="where it was asked for, or one of ANY_REGION")
    os: str = Field(sa_type=BYTEWISE, primary_key=True)
    on_demand_rank_usd: float = Field(primary_key=True, description="USD an hour; infinity where unknown")
    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    gpu_octave: int | None = Field(default=None, description="GPU memory by powers of two: app.catalog.projections")
    gpu_memory_gib: float | None = Field(default=None, description="this and the six below: as in size")
    gpu_count: float | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    preview: bool | None = None
    withdrawn: bool | None = None
    retirement_date: date | None = None
    spot_rank_usd: float
    reserved_1y_rank_usd: float
    reserved_3y_rank_usd: float
    savings_1y_rank_usd: float
    savings_3y_rank_usd: float
    priced_in: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="region.code")
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
    on_demand_usd_per_vcpu_hour: float | None = Field(default=None, description="exact, rounded once: app.db.functions")
    spot_usd_per_vcpu_hour: float | None = None
    reserved_1y_usd_per_vcpu_hour: float | None = None
    reserved_3y_usd_per_vcpu_hour: float | None = None
    savings_1y_usd_per_vcpu_hour: float | None = None
    savings_3y_usd_per_vcpu_hour: float | None = None
    on_demand_usd_per_memory_gib_hour: float | None = None
    spot_usd_per_memory_gib_hour: float | None = None
    reserved_1y_usd_per_memory_gib_hour: float | None = None
    reserved_3y_usd_per_memory_gib_hour: float | None = None
    savings_1y_usd_per_memory_gib_hour: float | None = None
    savings_3y_usd_per_memory_gib_hour: float | None = None
    on_demand_usd_per_gpu_hour: float | None = None
    spot_usd_per_gpu_hour: float | None = None
    reserved_1y_usd_per_gpu_hour: float | None = None
    reserved_3y_usd_per_gpu_hour: float | None = None
    savings_1y_usd_per_gpu_hour: float | None = None
    savings_3y_usd_per_gpu_hour: float | None = None
    on_demand_usd_per_gpu_gib_hour: float | None = None
    spot_usd_per_gpu_gib_hour: float | None = None
    reserved_1y_usd_per_gpu_gib_hour: float | None = None
    reserved_3y_usd_per_gpu_gib_hour: float | None = None
    savings_1y_usd_per_gpu_gib_hour: float | None = None
    savings_3y_usd_per_gpu_gib_hour: float | None = None
    doc: str | None = Field(
        sa_type=BYTEWISE,
        default=None,
        description="what is shown of it by the on-demand price: app.catalog.projections; null where that is not read",
    )
    on_demand_adjustment: str | None = Field(
        sa_type=BYTEWISE, default=None, description="JSON: list price and rules; null where none of Adjustment applies"
    )
    spot_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    reserved_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_1y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)
    savings_3y_adjustment: str | None = Field(sa_type=BYTEWISE, default=None)


class SizeJson(SQLModel, table=True):
    """A size as a JSON object without status and price, written at ingest, so that searches need not serialize it."""

    __tablename__ = "size_doc"

    size_key: str = Field(sa_type=BYTEWISE, primary_key=True, foreign_key="size.key")
    doc: str = Field(sa_type=BYTEWISE)
