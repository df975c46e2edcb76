"""The partial index of disputed prices.

It is apart from the models because to define it loads the PostgreSQL dialect, which only who creates tables needs.
"""

from sqlalchemy import Index, text

from app.catalog.column_types import table_of
from app.catalog.models import Price

DISPUTED_PRICES = Index(
    "ix_price_disputed",
    *(table_of(Price).c[name] for name in ("size_key", "region", "os", "purchase")),
    sqlite_where=text("disputed is 1"),
    postgresql_where=text("disputed is true"),
)
"""The few prices on which lists disagree, which lists of conflicts look for."""
