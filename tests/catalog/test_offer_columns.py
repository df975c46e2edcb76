"""Columns of offers have the very prices that are stored, whether all are loaded at once or a region in steps."""

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.projections import RANK_COLUMNS
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries import offer_columns
from app.catalog.queries.column_needs import offers_key
from app.catalog.queries.columns import SizeColumns, load_sizes
from app.catalog.queries.offer_columns import RegionOffers, load_offers
from app.catalog.queries.snapshot import SMALL_CATALOG, CatalogSnapshot, load_snapshot
from app.db.statements import run_plan
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

SYSTEMS = ("linux", "windows")
Columns = dict[str, list[tuple[Any, ...]]]


def as_of_size(snapshot: CatalogSnapshot, *, small: bool) -> CatalogSnapshot:
    return replace(snapshot, sizes=1 if small else SMALL_CATALOG + 1)


def as_rows(sizes: SizeColumns, offers: RegionOffers) -> list[tuple[Any, ...]]:
    keys = [sizes.keys[position] for position in offers.sizes.tolist()]
    return list(zip(keys, *(offers.usd[purchase].tolist() for purchase in PURCHASE_MODELS), strict=True))


def loaded(session: Session, snapshot: CatalogSnapshot, os: str) -> Columns:
    sizes = run_plan(session, load_sizes(snapshot))
    regions = (*sorted(snapshot.regions), *ANY_REGION.values())
    offers = run_plan(session, load_offers(snapshot, sizes, os, "on_demand", regions))
    return {region: as_rows(sizes, one) for region, one in offers.regions.items()}


def stored(session: Session, snapshot: CatalogSnapshot, os: str) -> Columns:
    rows = session.connection().exec_driver_sql(
        f"select region, size_key, {', '.join(RANK_COLUMNS)} from offer where os = '{os}' order by region, size_key"
    )
    found: Columns = {region: [] for region in (*sorted(snapshot.regions), *ANY_REGION.values())}
    for region, key, *ranks in rows:
        found[region].append((key, *(inf if usd is None else usd for usd in ranks)))
    return found


@pytest.mark.parametrize("small", [True, False], ids=["at once", "in steps"])
def test_columns_of_offers_are_the_rows_of_their_regions(
    seeded_engine: Engine, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    monkeypatch.setattr(offer_columns, "_ROWS", 7)
    offer_columns._region_statement.cache_clear()
    try:
        with Session(seeded_engine) as session:
            snapshot = as_of_size(load_snapshot(session), small=small)
            for os in SYSTEMS:
                rows = stored(session, snapshot, os)
                assert max(map(len, rows.values())) > 7
                assert loaded(session, snapshot, os) == rows
    finally:
        offer_columns._region_statement.cache_clear()


@pytest.mark.parametrize("small", [True, False], ids=["at once", "in steps"])
def test_every_price_is_the_double_that_is_stored(engine: Engine, small: bool) -> None:
    small_amounts = ("0", "0.000000001", "0.1", "0.123456789", "3", "8388607.99999999")
    amounts = (*small_amounts, "8388608", "90071992.547409", "12345678.9012345", "665254580.340503", "999999999.999999")
    rows = [price(f"Standard_X{number}", usd) for number, usd in enumerate(amounts)]
    facts = [fact for number in range(len(amounts) + 1) for fact in size(f"Standard_X{number}", vcpus=8)]
    rows.append(price(f"Standard_X{len(amounts)}", "1", purchase="spot"))
    ingest(engine, reading(facts, regions=["eastus"], prices=rows), now=NOW)
    with Session(engine) as session:
        snapshot = as_of_size(load_snapshot(session), small=small)
        found = loaded(session, snapshot, "linux")
        assert found == stored(session, snapshot, "linux")
    assert {row[1] for row in found["eastus"]} == {*map(float, amounts), inf}


def test_the_first_list_of_a_small_catalog_loads_the_offers_of_all_regions(seeded_engine: Engine) -> None:
    with Session(seeded_engine) as session:
        snapshot = as_of_size(load_snapshot(session), small=True)
        sizes = run_plan(session, load_sizes(snapshot))
        run_plan(session, load_offers(snapshot, sizes, "linux", "spot", ("eastus",)))
    scopes = [(os, region) for os in SYSTEMS for region in (*snapshot.regions, *ANY_REGION.values())]
    assert snapshot.columns.has(offers_key(os, region) for os, region in scopes)
    kept = snapshot.columns.nbytes
    with Session(seeded_engine) as session:
        again = run_plan(session, load_offers(snapshot, sizes, "windows", "spot", ("eastus",)))
    assert np.isfinite(again.regions["eastus"].usd["on_demand"]).any()
    assert snapshot.columns.nbytes == kept
