"""The partial indexes: of offers with a GPU, and of disputed prices.

They are apart from the models because to define one loads the PostgreSQL dialect, which only who creates tables needs.
"""

from sqlalchemy import Index, text

from app.catalog.column_types import table_of
from app.catalog.models import Offer, Price
from app.catalog.projections import MEMORY_INDEX

_WITH_GPU = text("gpu_octave is not null")

OFFERS_BY_MEMORY_BUCKET = Index(
    MEMORY_INDEX,
    *(table_of(Offer).c[name] for name in ("region", "os", "gpu_octave", "on_demand_rank_usd", "size_key")),
    sqlite_where=_WITH_GPU,
    postgresql_where=_WITH_GPU,
)
"""Memory buckets by on-demand price."""

DISPUTED_PRICES = Index(
    "ix_price_disputed",
    *(table_of(Price).c[name] for name in ("size_key", "region", "os", "purchase")),
    sqlite_where=text("disputed is 1"),
    postgresql_where=text("disputed is true"),
)
"""The few prices on which lists disagree, which lists of conflicts look for."""
