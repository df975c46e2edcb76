"""Small catalogs for the faults: a hundred sizes with facts and prices, in a second."""

from datetime import date, timedelta
from decimal import Decimal

from app.db import migrations
from app.db.engines import make_engine
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

SIZES = 120


def fill(url: str, *, usd: str = "1", migrate: bool = True) -> None:
    """Make the schema and a catalog; another `usd` makes another catalog."""
    engine = make_engine(url, pooled=False)
    if migrate:
        migrations.upgrade(engine)
    names = [f"Standard_X{number}" for number in range(1, SIZES + 1)]
    facts = [fact for number, name in enumerate(names, 1) for fact in size(name, vcpus=number, memory_gib=4 * number)]
    prices = [
        price(name, Decimal(usd) + day, valid_from=date(2026, 1, 1) + timedelta(days=day))
        for name in names
        for day in range(8)
    ]
    ingest(engine, reading(facts, regions=["eastus"], prices=prices), now=NOW)
    engine.dispose()
