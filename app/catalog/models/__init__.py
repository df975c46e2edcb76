"""The tables of the catalog, without those of webhooks; docs/catalog.md describes each, and how values are resolved."""

from app.catalog.models.language_models import Benchmark, LanguageModel
from app.catalog.models.offers import Offer, SizeJson
from app.catalog.models.prices import (
    Adjustment,
    CompleteList,
    Disk,
    DiskPrice,
    ExchangeRate,
    Price,
    PriceDay,
    PriceFile,
    PriceTotal,
    PriceTracking,
    RefusedPrice,
)
from app.catalog.models.revisions import Change, FeedRun, IngestedFile, Revision, TableSum
from app.catalog.models.sizes import Availability, Correction, Fact, Gpu, Region, Series, Size, SizeAlias, Source

__all__ = [
    "Adjustment",
    "Availability",
    "Benchmark",
    "Change",
    "CompleteList",
    "Correction",
    "Disk",
    "DiskPrice",
    "ExchangeRate",
    "Fact",
    "FeedRun",
    "Gpu",
    "IngestedFile",
    "LanguageModel",
    "Offer",
    "Price",
    "PriceDay",
    "PriceFile",
    "PriceTotal",
    "PriceTracking",
    "RefusedPrice",
    "Region",
    "Revision",
    "Series",
    "Size",
    "SizeAlias",
    "SizeJson",
    "Source",
    "TableSum",
]
