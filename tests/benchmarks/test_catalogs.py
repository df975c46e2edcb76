import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Offer, Price, Revision, Size, SizeJson
from app.catalog.money import NANO_USD
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.store.offers import save_derived
from app.db.engines import make_engine
from app.main import create_app
from app.settings import Settings
from benchmarks.build import postgres_catalog, sqlite_catalog
from benchmarks.catalogs import PRICE_COLUMNS, TODAY, Scale, TableRow, prices_of, sizes
from benchmarks.page_query import PRICED_TARGET
from tests.databases import Databases, is_migrated
from tests.servers import get, server

FEW = Scale(sizes=300, prices=30_000)


@pytest.fixture(scope="module")
def catalog_url(databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> str:
    url = databases.create()
    if url.startswith("sqlite"):
        return sqlite_catalog(FEW, lambda _: None, tmp_path_factory.mktemp("catalogs"))
    postgres_catalog(url, FEW, lambda _: None)
    return url


def test_the_same_number_makes_the_same_catalog() -> None:
    first, again = list(sizes(FEW)), list(sizes(FEW))
    assert first == again
    assert list(prices_of(first[0], 100)) == list(prices_of(again[0], 100))


def test_sizes_and_prices_come_in_the_order_of_their_keys() -> None:
    keys = [size["key"] for size in sizes(FEW)]
    assert keys == sorted(set(keys))
    for size in list(sizes(FEW))[:20]:
        prices = [price[:6] for price in prices_of(size, 100)]
        assert prices == sorted(set(prices))


def test_rows_have_the_columns_of_the_tables() -> None:
    derived = {"median_nano_usd", "disputed", "listed_until", "ends_on"}
    of_a_list = [
        column.name for column in table_of(Price).columns if column.name not in {"file_id", *derived}
    ]  # made-up prices have no file
    assert tuple(of_a_list) == PRICE_COLUMNS
    assert list(next(sizes(FEW))) == [column.name for column in table_of(Size).columns]


def test_there_are_a_few_dozen_gpu_memories_and_more_of_it_costs_more() -> None:
    made = list(sizes(Scale(sizes=2_000, prices=2_000)))
    memories = {size["gpu_memory_gib"] for size in made} - {None}
    assert 24 <= len(memories) <= 72
    cheap = [next(prices_of(size, 60))[8] for size in made if size["gpu_memory_gib"] is not None
             and size["gpu_memory_gib"] < 24]  # fmt: skip
    dear = [next(prices_of(size, 60))[8] for size in made if (size["gpu_memory_gib"] or 0) > 600]
    assert sum(cheap) / len(cheap) < sum(dear) / len(dear) / 3


@pytest.mark.takes_seconds
def test_a_catalog_has_the_rows_it_was_asked_for_and_what_an_ingest_derives_from_them(catalog_url: str) -> None:
    engine = make_engine(catalog_url)
    assert is_migrated(engine)
    with Session(engine) as session:
        counts = [session.execute(select(func.count()).select_from(table_of(model))).scalar_one()
                  for model in (Size, Price, Revision, SizeJson)]  # fmt: skip
        before = docs(session)
        derived = save_derived(session, TODAY)
        assert docs(session) == before
    engine.dispose()
    assert counts == [300, 30_000, 1, 300]
    assert (derived.has_changes, derived.unchanged > 10_000) == (False, True)


def docs(session: Session) -> dict[str, str]:
    return {row.size_key: row.doc for row in session.execute(select(table_of(SizeJson)))}


@pytest.mark.first_database
def test_offers_follow_from_the_prices_in_force(catalog_url: str) -> None:
    engine = make_engine(catalog_url)
    with Session(engine) as session:
        found = {
            (row.region, row.os, row.size_key): (
                row.priced_in,
                *(rank_of(row, purchase) for purchase in PURCHASE_MODELS),
            )
            for row in session.execute(select(table_of(Offer)))
        }
    engine.dispose()
    expected = dict(offer for size in sizes(FEW) for offer in offers_of(size))
    assert found == expected


def rank_of(offer: Row[Any], purchase: str) -> float:
    rank: float | None = getattr(offer, f"{purchase}_rank_usd")
    return math.inf if rank is None else rank


def offers_of(size: TableRow) -> Iterator[tuple[tuple[str, ...], tuple[Any, ...]]]:
    """The offers of one size: of each kind of price the last, because prices come oldest first."""
    now: dict[tuple[str, str], dict[str, float]] = {}
    for _, region, os, purchase, *_, nano, _ in prices_of(size, 100):
        now.setdefault((region, os), dict.fromkeys(PURCHASE_MODELS, math.inf))[purchase] = nano / NANO_USD
    for (region, os), usd_by in now.items():
        yield (region, os, size["key"]), (region, *usd_by.values())
    for purchase in PURCHASE_MODELS:
        for system in ("linux", "windows"):
            there = ((usd_by[purchase], region) for (region, os), usd_by in now.items() if os == system)
            _, region = min(there)
            yield (ANY_REGION[purchase], system, size["key"]), (region, *now[region, system].values())


@pytest.mark.first_database
def test_the_service_serves_a_synthetic_catalog(catalog_url: str) -> None:
    app = create_app(Settings(_env_file=None, database_url=catalog_url))
    with server(app) as base_url:
        page = get(base_url + PRICED_TARGET).raise_for_status().json()
    app.state.database.dispose()
    prices = [row["usd_per_hour"] for row in page["items"]]
    assert page["total"] > 20
    assert prices == sorted(prices)


def test_a_finished_catalog_is_cached(tmp_path: Path) -> None:
    tiny = Scale(sizes=2, prices=20)
    url = sqlite_catalog(tiny, lambda _: None, tmp_path)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert sqlite_catalog(tiny, lambda _: None, tmp_path) == url
    assert {file: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == before
    assert len(before) == 1
