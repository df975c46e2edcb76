"""Whole lists of prices, as they are exported, are the pages of the list."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no type information
import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.exports import Export, PriceExport, export_prices
from app.catalog.queries.price_scope import PRICE_KEY
from app.catalog.queries.prices import AllPricesSearch, find_all_prices
from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.db.databases import Database
from app.db.executors import Stream
from app.formats.parquet import write_parquet
from app.http.canonical import parse_query
from app.ingest.run import ingest
from tests.factories import NOW, price, reading, size

TODAY = date(2026, 9, 1)
QUESTIONS = (
    *("os=windows&history=true", "size=nd40rs_v2,standard_nc24ads_a100_v4,standard_d2s_v5&history=true"),
    *("gpu=h*,a*&history=true", "gpu=T4&os=windows&purchase=spot", "gpu=A100&as_of=2024-06-01"),
    *("series=nc_a100_v4&history=true", "series=dsv5,ndv2&region=eastus,westeurope", "known_at=2000-01-01"),
    *("region=centralindia,eastus&os=linux&purchase=on_demand", "region=westeurope&history=true&as_of=2026-09-01"),
)


DAYS = ("valid_from", "seen_until", "known_from")


def exported(session: Session, question: str) -> Export:
    params = parse_query(question.encode(), PriceExport)
    return export_prices(load_catalog(session, TODAY), params)


def rows_of(database: Database, export: Export) -> Iterator[dict[str, Any]]:
    for rows in Stream(database, export.query).blocks():
        for values in export.blocks(rows):
            yield from (dict(zip(export.columns, row, strict=True)) for row in zip(*values, strict=True))


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_export_is_the_pages_of_the_list_in_their_order(
    seeded_engine: Engine, seeded_database: Database, question: str
) -> None:
    listed: list[dict[str, Any]] = []
    cursor: str | None = ""
    with Session(seeded_engine) as session:
        snapshot = load_snapshot(session)
        while cursor is not None:
            search = parse_query(f"{question}&limit=500&cursor={cursor}".encode(), AllPricesSearch)
            page = find_all_prices(Catalog(session, snapshot, TODAY), search)
            listed += page.items
            cursor = page.next_cursor
        export = exported(session, question)
    assert (len(listed) > 0) == ("known_at=2000" not in question)
    assert list(rows_of(seeded_database, export)) == listed


@pytest.mark.first_database
@pytest.mark.parametrize("question", ["", "history=true", *QUESTIONS])
def test_prices_are_exported_in_their_order_which_sqlite_reads_them_in(seeded_engine: Engine, question: str) -> None:
    with Session(seeded_engine) as session:
        export = exported(session, question)
        compiled = export.query.statement.compiled_for(seeded_engine.dialect.name)
        assert compiled.sql.lower().endswith(f"order by {', '.join(f'price.{name} asc' for name in PRICE_KEY)}")
        if seeded_engine.dialect.name == "postgresql":
            return
        plan = session.connection().exec_driver_sql(f"explain query plan {compiled.sql}", export.query.parameters)
        steps = [step for _, parent, _, step in plan if parent == 0]
    assert any(step.startswith(("SCAN price", "SEARCH price")) for step in steps)
    # Of a system in all regions SQLite sorts the prices of each size and region; all others it reads in their order.
    of_a_system = "os=" in question and "region=" not in question
    sorts = ["USE TEMP B-TREE FOR RIGHT PART OF ORDER BY"] if of_a_system else []
    assert [step for step in steps if "TEMP B-TREE" in step] == sorts


@pytest.mark.parametrize("amounts", [("0.123456789", "0"), ("665254580.340503", "0.5", "90071992.547409"), ("3",)])
def test_prices_in_a_parquet_file_are_the_doubles_of_the_list(
    engine: Engine, database: Database, tmp_path: Path, amounts: tuple[str, ...]
) -> None:
    regions = ("eastus", "westeurope", "uksouth")
    rows = [price("Standard_X1", usd, region=region) for usd, region in zip(amounts, regions, strict=False)]
    ingest(engine, reading(size("Standard_X1", vcpus=8), regions=regions, prices=rows), now=NOW)
    with Session(engine) as session:
        export = exported(session, "history=true")
    file = tmp_path / "prices.parquet"
    assert write_parquet(file, export, Stream(database, export.query).blocks()) == len(amounts)
    table = pq.read_table(file)
    assert sorted(table["usd_per_hour"].to_pylist()) == sorted(map(float, amounts))
    listed = [{**row, **{day: date.fromisoformat(row[day]) for day in DAYS}} for row in rows_of(database, export)]
    assert table.to_pylist() == listed
