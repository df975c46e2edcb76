"""The partial index of offers with a GPU.

It is apart from the models because defining it loads the PostgreSQL dialect, which only those who create tables need.
"""

from sqlalchemy import Index, text

from app.catalog.column_types import table_of
from app.catalog.models import Offer
from app.catalog.projections import MEMORY_INDEX

_WITH_GPU = text("gpu_octave is not null")

OFFERS_BY_MEMORY_BUCKET = Index(
    MEMORY_INDEX,
    *(table_of(Offer).c[name] for name in ("region", "os", "gpu_octave", "on_demand_rank_usd", "size_key")),
    sqlite_where=_WITH_GPU,
    postgresql_where=_WITH_GPU,
)
"""Memory buckets by on-demand price."""
