"""Query plans of frequent searches: checks that none scans a whole table or sorts more than a page.

`python -m benchmarks.query_plans` runs EXPLAIN on SQLite and PostgreSQL at the middle scale and writes docs/plans.md.
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
from app.catalog.queries.params import FitSearch, SizeSearch
from app.catalog.queries.size_statements import INDEXED_PRICES
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.engines import make_engine
from app.db.statements import BoundStatement
from app.services.resource_fit import TRAITS
from benchmarks.build import PROJECT, postgres_catalog, sqlite_catalog
from benchmarks.catalogs import MIDDLE, TODAY
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
    SizeSearch(region=("eastus",), sort=("usd_per_hour",), min_vcpus=64, max_gpus=4),
    SizeSearch(sort=("usd_per_hour",), purchase="spot"),
    SizeSearch(region=("eastus",), sort=("usd_per_hour",), purchase="savings_3y"),
)
"""Lists by name and by price, with and without a region and a minimum GPU memory, by several purchase models.

The last one has no index: the offers of the region are sorted.
"""


def statements_of(
    engine: Engine, search: SizeSearch, known: CatalogSnapshot, today: date
) -> tuple[BoundStatement, BoundStatement, BoundStatement]:
    """Return the statements of a search: its first page, its count, and its second page.

    Pages are small, because a list that fits on one is not counted, and then there is nothing but its page.
    """
    search = search.model_copy(update={"limit": 3})
    question = find_sizes(search, known, today)
    statements = [next(question)]
    try:
        with engine.connect() as connection:
            while True:
                compiled = statements[-1].statement.compiled_for(engine.dialect.name)
                values = {**compiled.constants, **statements[-1].parameters}
                rows = connection.exec_driver_sql(compiled.sql, values).all()
                statements.append(question.send([tuple(row) for row in rows]))
    except StopIteration as end:
        cursor = end.value.next_cursor
    known.totals.clear()
    second = next(find_sizes(search.model_copy(update={"cursor": cursor}), known, today))
    return statements[0], statements[min(1, len(statements) - 1)], second


def plan_of(engine: Engine, bound: BoundStatement, *first: str) -> str:
    """Return the database's plan of a statement; the statements in `first` are run before."""
    compiled = bound.statement.compiled_for(engine.dialect.name)
    return explain(engine, compiled.sql, {**compiled.constants, **bound.parameters}, *first)


def explain(engine: Engine, sql: str, parameters: Mapping[str, Any], *first: str) -> str:
    """Return the plan of any SQL."""
    word = "explain query plan" if engine.dialect.name == "sqlite" else "explain"
    with engine.connect() as connection:
        for statement in first:
            connection.exec_driver_sql(statement)
        return "\n".join(str(row[-1]) for row in connection.exec_driver_sql(f"{word} {sql}", dict(parameters)))


def full_scans(plan: str) -> list[str]:
    """Return the lines of a plan that scan all of offer or price, whatever alias these have in the query."""
    names = r"(offer|priced|price)\b"
    scans = (rf"^SCAN {names}", rf"Seq Scan on {names}")
    return [line for line in plan.splitlines() if any(re.search(scan, line) for scan in scans)]


def sorts(plan: str) -> int:
    """Return how often a plan sorts; the page itself, at most 501 rows, may be sorted once."""
    return len(re.findall(r"USE TEMP B-TREE FOR|\bSort  \(", plan))


def main() -> int:
    """Explain the searches on both databases and write the page; return 1 where a plan scans or sorts too much."""
    bad = False
    sections = [_HEAD]
    for name, engine in _engines():
        sections.append(f"## {name}, {MIDDLE.name}")
        for title, plan, most_sorts in _plans(engine):
            wrong = full_scans(plan) or sorts(plan) > most_sorts
            bad = bad or bool(wrong)
            print(f"{name}: {title}: {'scans or sorts too much' if wrong else 'ok'}", file=sys.stderr)
            sections.append(f"### {title}\n\n```text\n{plan}\n```")
    PAGE.write_text("\n\n".join(sections) + "\n")
    return int(bad)


_HEAD = """# Query plans

The plans that SQLite and PostgreSQL choose for frequent searches of the middle benchmark catalog, as EXPLAIN prints
them. `python -m benchmarks.query_plans` writes this page; it fails if a plan reads all of `offer` or `price`, or sorts
more than a page where an index has the order. PostgreSQL is told not to sort, as it would the few hundred rows that a
scan finds here rather than merge scans. [`tests/plans`](../tests/plans/test_plans.py) checks the same on a
small catalog."""


def _engines() -> Iterator[tuple[str, Engine]]:
    yield "SQLite", make_engine(sqlite_catalog(MIDDLE, _say))
    with postgres_running() as url:
        postgres_catalog(url, MIDDLE, _say)
        yield "PostgreSQL", make_engine(url)


def _plans(engine: Engine) -> Iterator[tuple[str, str, int]]:
    with Session(engine) as session:
        known = load_snapshot(session)
    first = ("set local enable_sort = off",) if engine.dialect.name == "postgresql" else ()
    for search in SEARCHES:
        shown = search.model_dump_json(exclude_defaults=True)
        for part, statement in zip(
            ("page", "total", "next page"), statements_of(engine, search, known, TODAY), strict=True
        ):
            most = 0 if part == "total" else 1 + (search.purchase not in INDEXED_PRICES)
            yield f"{part} of GET /sizes {shown}", plan_of(engine, statement, *first), most
    fit = candidates_query(FitSearch(region=("eastus",)), ("on_demand", "spot"), TRAITS, today=TODAY, rules=())
    yield "candidates of GET /fit in a region", plan_of(engine, fit, *first), 1


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
