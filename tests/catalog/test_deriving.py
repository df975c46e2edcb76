"""Offers and size documents: deriving those of dirty sizes gives the same as deriving all."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from math import isinf
from typing import Any

import pytest
from sqlalchemy import Engine, String, delete, func, literal_column, select, text

from app.catalog.column_types import table_of
from app.catalog.in_force import MAX_SPOT_AGE_DAYS
from app.catalog.models import Offer, SizeJson
from app.catalog.projections import OFFER_JSON_FIELDS, UNKNOWN_PRICE_RANK, offer_json
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries.prices import AllPricesSearch, find_all_prices
from app.catalog.queries.snapshot import load_catalog
from app.catalog.readings import Reading
from app.catalog.store.offers import is_derived, save_derived
from app.db.engines import read_session as reads
from app.db.functions import ratio
from app.db.writing import write_session
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size, source
from tests.sql import dialect_of

TODAY = NOW.date()
TOMORROW = TODAY + timedelta(days=1)


def offered(engine: Engine, key: str, region: str = "eastus", purchase: str = "on_demand") -> Any:
    """Return the offer of a size in a region."""
    offer = table_of(Offer).c
    usd = func.nullif(offer[f"{purchase}_rank_usd"], UNKNOWN_PRICE_RANK)
    query = select(usd, offer.priced_in).where(offer.size_key == key, offer.region == region, offer.os == "linux")
    with reads(engine) as session:
        row = session.execute(query).first()
    return tuple(row) if row else None


def document(engine: Engine, key: str) -> dict[str, Any]:
    doc = table_of(SizeJson).c
    with reads(engine) as session:
        return dict(json.loads(session.execute(select(doc.doc).where(doc.size_key == key)).scalar_one()))


@contextmanager
def derived_rows_complete(engine: Engine, today: date = TODAY) -> Iterator[None]:
    """Check that an ingest derives all that deriving every size would."""
    yield
    with write_session(engine) as session:
        before = {row.size_key: row.doc for row in session.execute(select(table_of(SizeJson)))}
        assert not save_derived(session, today).has_changes
        assert {row.size_key: row.doc for row in session.execute(select(table_of(SizeJson)))} == before


def offers(engine: Engine) -> list[Any]:
    with reads(engine) as session:
        return list(session.execute(select(table_of(Offer))).all())


@pytest.mark.parametrize("fields", [{"gpu_count": Decimal("0.125")}, {"gpu_model": "T4"}, {"gpu_count": 0}, {}])
def test_a_size_with_gpus_is_of_the_type_for_that_whatever_its_series_is(
    engine: Engine, fields: dict[str, Any]
) -> None:
    stated = size("n1", kind="series", category="general_purpose") + size("n1-t4", series="n1", vcpus=4, **fields)
    ingest(engine, reading(stated), now=NOW)
    has_gpu = any(fields.values())
    assert document(engine, "n1-t4")["category"] == ("gpu_accelerated" if has_gpu else "general_purpose")


FIRST = reading(
    size("Standard_X1", vcpus=8, gpu_memory_gib=Decimal(80)) + size("Standard_X2", vcpus=4),
    regions=["eastus", "westus"],
    prices=(
        price("x1", "3"),
        price("x1", "2", region="westus"),
        price("x1", "1", purchase="spot"),
        price("x1", "2.5", valid_from=TOMORROW),
    ),
)


@pytest.mark.first_database
@pytest.mark.parametrize(
    "then",
    [
        reading(prices=(price("x1", "1.5"),)),
        reading(prices=(price("x1", "9", region="westus"),)),
        reading(prices=(price("x2", "1.5", os="windows"), price("x3", "1"))),
        reading(size("Standard_X1", vcpus=8, gpu_memory_gib=Decimal(160))),
        reading(size("Standard_X4", vcpus=8)),
        reading(regions=["mars"]),
        reading(prices=(price("x1", "1", purchase="spot", approximate_date=True),)),
    ],
    ids=[
        "a price",
        "the cheapest price",
        "first prices",
        "a figure",
        "a size",
        "a region",
        "a price of an undated source",
    ],
)
def test_deriving_the_dirty_sizes_gives_what_deriving_all_would(engine: Engine, then: Reading) -> None:
    with derived_rows_complete(engine):
        ingest(engine, FIRST, now=NOW)
    with derived_rows_complete(engine):
        ingest(engine, then, now=NOW)


@pytest.mark.parametrize("purchase", PURCHASE_MODELS)
def test_the_document_of_an_offer_says_what_its_columns_say(seeded_engine: Engine, purchase: str) -> None:
    table = table_of(Offer)
    regions = (ANY_REGION[purchase], "westeurope")  # of every size: where it is cheapest, and in one region
    with reads(seeded_engine) as session:
        written = literal_column(offer_json(dialect_of(session), "offer", purchase), String).label("written")
        found = session.execute(select(table, written).where(table.c.region.in_(regions))).all()
    assert {offer.region for offer in found} == set(regions)
    for offer in found:
        ranks = {str(one): getattr(offer, f"{one}_rank_usd") for one in PURCHASE_MODELS}
        usd = {one: None if rank is None or isinf(rank) else rank for one, rank in ranks.items()}
        days = {one: getattr(offer, f"{one}_as_of") for one in usd}
        as_of = {one: day.isoformat() if day else None for one, day in days.items()}
        gpus, one_of = offer.gpu_count_numerator, offer.gpu_count_denominator
        expected = {
            "region": offer.priced_in,
            "usd_per_hour": usd[purchase],
            "usd_per_vcpu_hour": ratio(usd[purchase], 1, offer.vcpus),
            "usd_per_1000_coremark_hour": ratio(usd[purchase], 1000, offer.coremark),
            "usd_per_memory_gib_hour": ratio(usd[purchase], 1, offer.memory_gib),
            "usd_per_gpu_hour": ratio(usd[purchase], one_of, gpus),
            "usd_per_gpu_gib_hour": ratio(usd[purchase], 1, offer.gpu_memory_gib),
            "on_demand_usd_per_hour": usd["on_demand"],
            "on_demand_as_of": as_of["on_demand"],
            "on_demand_approximate_date": offer.on_demand_approximate_date,
            "spot_usd_per_hour": usd["spot"],
            "spot_as_of": as_of["spot"],
            "spot_approximate_date": offer.spot_approximate_date,
            **{f"{one}_usd_per_hour": usd[one] for one in PURCHASE_MODELS[2:]},
            "price_unusual": None if usd[purchase] is None else getattr(offer, f"{purchase}_median_usd") is not None,
            "median_usd_per_hour": getattr(offer, f"{purchase}_median_usd"),
            "price_disputed": None if usd[purchase] is None else bool(getattr(offer, f"{purchase}_disputed")),
            "price_as_of": as_of[purchase],
        }
        assert json.loads(offer.written) == expected
        assert list(expected) == list(json.loads(offer.written)) == list(OFFER_JSON_FIELDS)


@pytest.mark.first_database
def test_an_offer_is_updated_not_replaced(engine: Engine) -> None:
    ingest(engine, FIRST, now=NOW)
    change = ingest(engine, reading(prices=(price("x1", "1.5"),)), now=NOW).summary.changes["offer"]
    # In eastus, and in the cheapest region by each purchase model, which shows its other prices, too.
    assert (change.added, change.changed, change.removed) == (0, 1 + len(PURCHASE_MODELS), 0)
    assert offered(engine, "x1") == (Decimal("1.5"), "eastus")
    assert offered(engine, "x1", "*") == (Decimal("1.5"), "eastus")
    assert offered(engine, "x2", "*") == (None, None)


@pytest.mark.first_database
def test_a_price_that_comes_into_force_is_offered_at_the_next_ingest_of_anything(engine: Engine) -> None:
    ingest(engine, FIRST, now=NOW)
    assert offered(engine, "x1") == (3, "eastus")
    with derived_rows_complete(engine, TOMORROW):
        ingest(engine, reading(regions=["mars"]), now=NOW + timedelta(days=1))
    assert offered(engine, "x1") == (Decimal("2.5"), "eastus")


@pytest.mark.first_database
@pytest.mark.parametrize(
    "history",
    [
        {"approximate_date": True},
        {"valid_from": TODAY - timedelta(days=MAX_SPOT_AGE_DAYS + 1)},
    ],
    ids=["of an undated source", "of over a year ago"],
)
def test_a_spot_price_is_history_and_no_offer(engine: Engine, history: dict[str, Any]) -> None:
    spot = price("x1", "1", purchase="spot", **history)
    there = price("x1", "2", purchase="spot", region="westus")
    ingest(engine, reading(size("x1", vcpus=8), regions=["eastus", "westus"], prices=(spot, there)), now=NOW)
    assert offered(engine, "x1", purchase="spot") is None
    assert offered(engine, "x1", "*", purchase="spot") == (2, "westus")
    with reads(engine) as session:
        kept = find_all_prices(load_catalog(session, TODAY), AllPricesSearch(region=("eastus",)))
    assert [(row["usd_per_hour"], row["price_age_days"]) for row in kept.items] == [(1, (TODAY - spot.valid_from).days)]


@pytest.mark.first_database
def test_an_on_demand_price_is_an_offer_however_old_it_is(engine: Engine) -> None:
    old = price("x1", "3", approximate_date=True, valid_from=date(2020, 1, 1))
    ingest(engine, reading(size("x1", vcpus=8), regions=["eastus"], prices=(old,)), now=NOW)
    assert offered(engine, "x1") == (3, "eastus")


@pytest.mark.first_database
def test_a_spot_price_that_was_an_offer_is_none_a_year_later(engine: Engine) -> None:
    last = price("x1", "1", purchase="spot", valid_from=TODAY - timedelta(days=MAX_SPOT_AGE_DAYS))
    ingest(engine, reading(size("x1", vcpus=8), regions=["eastus"], prices=(last,)), now=NOW)
    assert offered(engine, "x1", purchase="spot") == (1, "eastus")
    with derived_rows_complete(engine, TOMORROW):
        ingest(engine, reading(regions=["mars"]), now=NOW + timedelta(days=1))
    assert offered(engine, "x1", purchase="spot") is None


def test_a_spot_price_of_an_exact_day_counts_before_a_newer_one_of_an_undated_source(engine: Engine) -> None:
    exact = price("x1", "2", purchase="spot", valid_from=TODAY - timedelta(days=30))
    undated = price("x1", "1", purchase="spot", valid_from=TODAY, approximate_date=True)
    ingest(engine, reading(size("x1", vcpus=8), regions=["eastus"], prices=(exact, undated)), now=NOW)
    assert offered(engine, "x1", purchase="spot") == (2, "eastus")


@pytest.mark.first_database
def test_an_ingest_of_an_earlier_day_derives_for_that_day(engine: Engine) -> None:
    ingest(engine, FIRST, now=NOW + timedelta(days=1))
    with derived_rows_complete(engine):
        ingest(engine, reading(regions=["mars"]), now=NOW)
    assert offered(engine, "x1") == (3, "eastus")


def test_a_source_whose_url_changes_is_shown_with_the_new_one(engine: Engine) -> None:
    ingest(engine, FIRST, now=NOW)
    assert document(engine, "x1")["source_url"] == "https://example.org/page"
    with derived_rows_complete(engine):
        ingest(engine, reading(sources=[replace(source("page"), url="https://example.org/2")]), now=NOW)
    assert document(engine, "x1")["source_url"] == "https://example.org/2"


def test_what_a_migration_emptied_is_derived_by_the_next_ingest(engine: Engine) -> None:
    ingest(engine, FIRST, now=NOW)
    with write_session(engine) as session:
        for model in (Offer, SizeJson):
            session.execute(delete(table_of(model)))
    with reads(engine) as session:
        assert not is_derived(session)
    with derived_rows_complete(engine):
        ingest(engine, reading(regions=["mars"]), now=NOW)
    assert offered(engine, "x1") == (3, "eastus")


def test_a_first_ingest_writes_offers_in_the_order_in_which_they_are_read(engine: Engine) -> None:
    prices = [price(name, "1", region=region) for region in ("westus", "eastus") for name in ("x9", "x10", "x1")]
    sizes = [fact for name in ("x9", "x10", "x1") for fact in size(f"Standard_{name}", vcpus=8)]
    ingest(engine, reading(sizes, regions=["eastus", "westus"], prices=prices), now=NOW)
    keys = table_of(Offer).primary_key.columns.keys()
    stored = select(*(table_of(Offer).c[name] for name in keys))
    if engine.dialect.name == "postgresql":
        stored = stored.order_by(text("ctid"))
    with reads(engine) as session:
        rows = [tuple(row) for row in session.execute(stored)]
    assert rows == sorted(rows)
