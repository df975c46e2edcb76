"""A catalog with a change."""

from datetime import date, timedelta

from sqlalchemy import Engine

from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

NAME = "Standard_NC24ads_A100_v4"


def ingest_a_price_that_rises(engine: Engine) -> None:
    """Ingest a size with a price in West Europe on 2026-08-30, and a higher one on 2026-09-01."""
    first = price(NAME, "3.5", region="westeurope")
    ingest(engine, reading(size(NAME, vcpus=24), regions=["westeurope"], prices=[first]), now=NOW - timedelta(days=2))
    ingest(engine, reading(prices=[price(NAME, "3.673", region="westeurope", valid_from=date(2026, 8, 1))]), now=NOW)
