"""Where prices are known, for a question that has none."""

from datetime import date

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.sizes import NoPrice, explain_no_price
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_snapshot
from app.errors import CatalogChanged
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

pytestmark = pytest.mark.first_database

TODAY = date(2026, 9, 1)
SIZE = size("Standard_X1", vcpus=8)


def note(session: Session, known: CatalogSnapshot, today: date = TODAY) -> NoPrice | None:
    return Catalog(session, known, today).ask(explain_no_price, SizeSearch(region=("westus",)))


def test_a_region_is_known_from_its_first_price_on(engine: Engine) -> None:
    prices = (price("X1", "1"), price("X1", "1", region="westus", valid_from=date(2026, 8, 1)))
    ingest(engine, reading(SIZE, regions=["eastus", "westus"], prices=prices), now=NOW)
    with Session(engine) as session:
        known = load_snapshot(session)
        found = note(session, known, date(2026, 7, 31))
        assert found is not None
        assert found.known_in == ("eastus",)
        assert note(session, known, date(2026, 8, 1)) is None


def test_an_answer_of_an_earlier_revision_is_not_made_of_the_prices_of_a_later_one(engine: Engine) -> None:
    ingest(engine, reading(SIZE, regions=["eastus", "westus"]), now=NOW)
    with Session(engine) as session:
        before = load_snapshot(session)
        found = note(session, before)
    assert found is not None
    assert found.detail == (
        "linux on_demand: no price is known in westus, nor in any other region; "
        "`vmsizes refresh azure-prices` brings them"
    )
    ingest(engine, reading(SIZE, regions=["eastus", "westus"], prices=(price("X1", "1"),)), now=NOW)
    with Session(engine) as session:
        with pytest.raises(CatalogChanged):
            note(session, before)
        later = note(session, load_snapshot(session))
    assert later is not None
    assert later.known_in == ("eastus",)
