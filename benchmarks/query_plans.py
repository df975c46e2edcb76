"""What a database says of how it will answer the hot questions: no full scan, and no sort of more than a page.

`python -m benchmarks.query_plans` asks SQLite and PostgreSQL at the largest scale and writes docs/plans.md.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.fit_params import FitSearch
from app.catalog.queries.params import SizeSearch
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.engines import make_engine
from app.db.statements import BoundStatement
from app.services.resource_fit import TRAITS
from benchmarks.build import PROJECT, postgres_catalog, sqlite_catalog
from benchmarks.catalogs import LARGE, TODAY
from tests.postgres import postgres_running

PAGE = PROJECT / "docs" / "plans.md"
SEARCHES = (
    SizeSearch(),
    SizeSearch(sort=("usd_per_hour",)),
    SizeSearch(region=("eastus",)),
    SizeSearch(region=("eastus",), sort=("usd_per_hour",)),
    SizeSearch(region=("eastus",), sort=("usd_per_hour",), min_gpu_mem=80),
    SizeSearch(region=("eastus",), sort=("usd_per_hour",), min_gpu_mem=80, max_usd_per_hour=Decimal(100)),
    SizeSearch(sort=("usd_per_hour",), min_gpu_mem=80, os="windows"),
)
"""Lists by name and by price, with and without a region and a least GPU memory."""


def statements_of(
    engine: Engine, search: SizeSearch, known: CatalogSnapshot, today: date
) -> tuple[BoundStatement, BoundStatement, BoundStatement]:
    """What a search asks the database: its first page, its length, and its second page."""
    question = find_sizes(search, known, today)
    first = next(question)
    compiled = first.statement.compiled_for(engine.dialect.name)
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(compiled.sql, {**compiled.constants, **first.parameters}).all()
    count = question.send([tuple(row) for row in rows])
    try:
        question.send([(0,)])
    except StopIteration as end:
        cursor = end.value.next_cursor
    known.totals.clear()
    return first, count, next(find_sizes(search.model_copy(update={"cursor": cursor}), known, today))


def plan_of(engine: Engine, asked: BoundStatement, *first: str) -> str:
    """The database's own words on how it will answer; `first` is run before."""
    compiled = asked.statement.compiled_for(engine.dialect.name)
    return explain(engine, compiled.sql, {**compiled.constants, **asked.parameters}, *first)


def explain(engine: Engine, sql: str, parameters: Mapping[str, Any], *first: str) -> str:
    """The plan of any SQL."""
    word = "explain query plan" if engine.dialect.name == "sqlite" else "explain"
    with engine.connect() as connection:
        for statement in first:
            connection.exec_driver_sql(statement)
        return "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{word} {sql}", dict(parameters)))


def full_scans(plan: str) -> list[str]:
    """The lines of a plan that read all of offer or price, whatever alias they have in the query."""
    names = r"(offer|priced|price)\b"
    scans = (rf"^SCAN {names}", rf"Seq Scan on {names}")
    return [line for line in plan.splitlines() if any(re.search(scan, line) for scan in scans)]


def sorts(plan: str) -> int:
    """How often a plan sorts; the page itself, at most 501 rows, is sorted once when its documents are there."""
    return len(re.findall(r"USE TEMP B-TREE FOR|\bSort  \(", plan))


def main() -> int:
    """Ask both databases, write the page; gives 1 where a plan scans or sorts too much."""
    bad = False
    told = [_HEAD]
    for name, engine in _engines():
        told.append(f"## {name}, {LARGE.name}")
        for title, plan, most_sorts in _plans(engine):
            wrong = full_scans(plan) or sorts(plan) > most_sorts
            bad = bad or bool(wrong)
            print(f"{name}: {title}: {'NOT as it should be' if wrong else 'as it should be'}", file=sys.stderr)
            told.append(f"### {title}\n\n```text\n{plan}\n```")
    PAGE.write_text("\n\n".join(told) + "\n")
    return int(bad)


_HEAD = """# Plans

How the databases answer the hot questions at the largest scale, in their own words; written by
`python -m benchmarks.query_plans`, which fails where a plan reads all of `offer` or `price`, or sorts more than a page.
[`tests/plans`](../tests/plans/test_plans.py) holds the same in small."""


def _engines() -> Iterator[tuple[str, Engine]]:
    yield "SQLite", make_engine(sqlite_catalog(LARGE, _say))
    with postgres_running() as url:
        postgres_catalog(url, LARGE, _say)
        yield "PostgreSQL", make_engine(url)


def _plans(engine: Engine) -> Iterator[tuple[str, str, int]]:
    with Session(engine) as session:
        known = load_snapshot(session)
    for search in SEARCHES:
        asked = search.model_dump_json(exclude_defaults=True)
        for part, ask in zip(("page", "length", "next page"), statements_of(engine, search, known, TODAY), strict=True):
            yield f"{part} of GET /sizes {asked}", plan_of(engine, ask), int(part != "length")
    fit = candidates_query(FitSearch(region=("eastus",)), TRAITS, today=TODAY)
    yield "candidates of GET /fit in a region", plan_of(engine, fit), 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
