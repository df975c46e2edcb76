"""Prices of sizes that are found on columns are those that SQL finds, page by page."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries import price_columns
from app.catalog.queries.prices import AllPricesSearch, PriceListing, find_all_prices
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import QueryPlan, run_plan
from app.errors import CursorGone
from app.http.canonical import parse_query
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

TODAY = date(2026, 9, 1)
QUESTIONS = (
    *("gpu=A100", "gpu=A100,H100&region=eastus", "gpu=h*&history=true", "gpu=T4&os=windows&purchase=spot"),
    *("region=eastus", "purchase=reserved_1y", "purchase=savings_3y", "os=windows"),
    *("gpu=A100&as_of=2024-06-01", "region=centralindia&history=true", "gpu=V100&currency=EUR"),
    *(
        "gpu=*",
        "gpu=a*,h*&history=true",
        "gpu=T4,V100&region=eastus,westeurope",
        "gpu=*&purchase=spot&as_of=2026-09-01",
    ),
    *("known_at=2000-01-01", "gpu=A100&known_at=2000-01-01"),
)


@pytest.fixture(scope="module")
def session(seeded_engine: Engine) -> Iterator[Session]:
    with Session(seeded_engine) as session:
        yield session


@pytest.fixture(scope="module")
def large(session: Session) -> CatalogSnapshot:
    """What is known of the catalog, as if it were too large to be looked through."""
    return replace(load_snapshot(session), sizes=100_000)


def find(session: Session, search: AllPricesSearch, snapshot: CatalogSnapshot) -> PriceListing:
    return run_plan(session, find_all_prices(search, snapshot, TODAY))


def load_wanted(session: Session, snapshot: CatalogSnapshot) -> None:
    while (load := snapshot.columns.next_wanted()) is not None:
        run_plan(session, load())


@pytest.mark.parametrize("question", QUESTIONS)
def test_pages_of_prices_by_key_are_those_by_sql(
    session: Session, large: CatalogSnapshot, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_columns, "_FEW", 1.0)
    search = parse_query(f"limit=40&{question}".encode(), AllPricesSearch)
    small, wanted = load_snapshot(session), replace(large)
    find(session, search, wanted)
    load_wanted(session, wanted)
    wanted.totals.clear()
    for _ in range(3):
        page = find(session, search, small)
        assert find(session, search, wanted) == page
        assert (page.total > 0) == ("known_at=2000" not in question)
        assert not wanted.columns.are_wanted
        if page.next_cursor is None:
            break
        search = search.model_copy(update={"cursor": page.next_cursor})


def test_sizes_that_are_many_are_not_looked_up_one_by_one(session: Session, large: CatalogSnapshot) -> None:
    search = AllPricesSearch(region=("eastus",), limit=5)
    snapshot = replace(large)
    first = find(session, search, snapshot)
    load_wanted(session, snapshot)
    assert find(session, search, snapshot) == first


def test_a_page_of_prices_of_a_catalog_that_changed_since_its_columns_were_loaded_is_found_by_sql(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_columns, "_FEW", 1.0)
    sizes = [*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=8)]
    ingest(engine, reading(sizes, regions=["eastus"], prices=[price("Standard_X2", "2")]), now=NOW)
    search = AllPricesSearch(os="linux", limit=1)
    with Session(engine) as session:
        before = replace(load_snapshot(session), sizes=100_000)
        find(session, search, before)
        load_wanted(session, before)
        assert [item["size"] for item in find(session, search, before).items] == ["Standard_X2"]
    ingest(engine, reading(regions=["eastus"], prices=[price("Standard_X1", "1")]), now=NOW)
    with Session(engine) as session:
        page = find(session, search, before)
        assert [item["size"] for item in page.items] == ["Standard_X1"]
        with pytest.raises(CursorGone):
            find(session, search.model_copy(update={"cursor": page.next_cursor}), before)


def test_prices_that_were_looked_for_in_vain_are_not_looked_for_again(session: Session, large: CatalogSnapshot) -> None:
    search, snapshot = AllPricesSearch(known_at=date(2000, 1, 1)), replace(large, totals={}, _kept={})
    assert next(find_all_prices(search, snapshot, TODAY)) is not None  # a statement
    nothing = find(session, search, snapshot)
    assert (nothing.items, nothing.total, nothing.next_cursor) == ([], 0, None)
    with pytest.raises(StopIteration) as end:
        next(find_all_prices(search, snapshot, TODAY))
    assert end.value.value == nothing


def recorded(plan: QueryPlan[PriceListing], statements: list[str], kind: str) -> QueryPlan[PriceListing]:
    """Run a plan and note the SQL of its statements."""
    try:
        bound = next(plan)
        while True:
            statements.append(bound.statement.compiled_for(kind).sql)
            bound = plan.send((yield bound))
    except StopIteration as end:
        found: PriceListing = end.value
        return found


@pytest.mark.parametrize(
    ("known_at", "total", "is_counted"),
    [
        (NOW.date() - timedelta(days=1), 0, False),
        (NOW.date(), 1, True),
        (NOW.date() + timedelta(days=1), 1, True),
        (NOW.date() + timedelta(days=2), 2, False),
        (NOW.date() + timedelta(days=3), 2, False),
    ],
)
def test_prices_are_counted_only_where_some_were_known(
    engine: Engine, known_at: date, total: int, *, is_counted: bool
) -> None:
    sizes = [*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=8)]
    ingest(engine, reading(sizes, regions=["eastus"], prices=[price("Standard_X1", "1")]), now=NOW)
    later = reading(regions=["eastus"], prices=[price("Standard_X2", "2")])
    ingest(engine, later, now=NOW + timedelta(days=2))
    search, today = AllPricesSearch(known_at=known_at, limit=1), NOW.date() + timedelta(days=4)
    with Session(engine) as session:
        snapshot = replace(load_snapshot(session), sizes=100_000)
        by_sql = run_plan(session, find_all_prices(search, snapshot, today))
        load_wanted(session, snapshot)
        snapshot.totals.clear()
        statements: list[str] = []
        plan = recorded(find_all_prices(search, snapshot, today), statements, engine.dialect.name)
        assert run_plan(session, plan) == by_sql
    assert by_sql.total == total
    assert any("count(*)" in sql for sql in statements) == (is_counted and by_sql.next_cursor is not None)
