"""The partial indexes of offers with a GPU, one for each purchase model.

They are apart from the models because defining them loads the PostgreSQL dialect, which only those who create tables
need.
"""

from sqlalchemy import Index, text

from app.catalog.column_types import table_of
from app.catalog.models import Offer
from app.catalog.projections import memory_index
from app.catalog.purchases import PURCHASE_MODELS

_WITH_GPU = text("gpu_octave is not null")
_FILTERED = ("size_key", "gpu_memory_gib", "retirement_date", "preview", "withdrawn", "gpu_count")


def _by_memory_bucket(purchase: str) -> Index:
    """Index memory buckets by price; that of on-demand prices covers all that a page reads of an offer."""
    shown = ("doc",) if purchase == "on_demand" else ()
    columns = ("region", "os", "gpu_octave", f"{purchase}_rank_usd", *_FILTERED, *shown)
    return Index(
        memory_index(purchase),
        *(table_of(Offer).c[name] for name in columns),
        sqlite_where=_WITH_GPU,
        postgresql_where=_WITH_GPU,
    )


OFFERS_BY_MEMORY_BUCKET = tuple(map(_by_memory_bucket, PURCHASE_MODELS))
