"""The partial index of offers with a GPU.

It is apart from the models because defining it loads the PostgreSQL dialect, which only those who create tables need.
"""

from sqlalchemy import Index, text

from app.catalog.column_types import table_of
from app.catalog.models import Offer

_WITH_GPU = text("gpu_octave is not null")
_COLUMNS = (
    *("region", "os", "purchase", "gpu_octave", "rank_usd", "size_key", "gpu_memory_gib", "retirement_date"),
    *("preview", "withdrawn", "gpu_count", "doc"),
)

OFFERS_BY_MEMORY_BUCKET = Index(
    "ix_offer_gpu",
    *(table_of(Offer).c[name] for name in _COLUMNS),
    sqlite_where=_WITH_GPU,
    postgresql_where=_WITH_GPU,
)
"""Offers of sizes with a GPU by memory bucket; a covering index of what a page reads of an offer."""
