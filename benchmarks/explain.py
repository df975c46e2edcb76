"""What the databases do for each kind of list: where they read it from, how many rows, and how long.

`python -m benchmarks.explain sqlite:///seeds.db postgresql:///seeds` prints a table for docs/explain.md; with
`--columns` of lists after columns were loaded. A synthetic catalog is asked for names that it has.
"""

import re
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import orjson
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from app.catalog.queries.column_lists import load_list_columns
from app.catalog.queries.column_needs import ColumnNeeds
from app.catalog.queries.params import SizeSearch
from app.catalog.queries.prices import AllPricesSearch, find_all_prices
from app.catalog.queries.sizes import find_sizes, normalize
from app.catalog.queries.snapshot import load_snapshot
from app.db.engines import make_engine
from app.db.statements import BoundStatement, QueryPlan, convert_rows, run_plan
from app.http.canonical import parse_query
from benchmarks.catalogs import TODAY

SIZES = (
    *("", "region=eastus", "region=eastus&sort=usd_per_hour", "region=eastus&sort=-usd_per_hour"),
    *("region=eastus,westeurope", "region=eastus,westeurope&sort=usd_per_hour", "region=eastus&sort=-vcpus"),
    *("region=eastus&sort=-network_mbps", "q=h100", "q=nothing", "min_vcpus=400", "available_in=eastus,westeurope"),
    *("as_of=2024-06-01", "as_of=2026-07-01&sort=usd_per_hour", "region=eastus&as_of=2026-07-01"),
)
PRICES = (
    *("", "region=westeurope", "purchase=spot", "purchase=reserved_1y", "os=windows", "size=nd40rs_v2", "gpu=A100"),
    *("series=ndv2", "history=true", "as_of=2024-06-01", "region=westeurope&os=windows&purchase=spot"),
)
"""Queries of `GET /sizes` and `GET /prices`."""

IN_SYNTHETIC = {
    "westeurope": "region05",
    "h100": "made-up",
    "A100": "Made-up 80GB",
    "nd40rs_v2": "s000500_v2",
    "ndv2": "series00007",
}
"""Names of a synthetic catalog for those of the seeds."""
REPEATED = 5
_HEAD = {"sqlite": "SQLite reads", "postgresql": "PostgreSQL reads | rows"}


def main() -> int:
    """Print the table of the databases whose URLs are given."""
    on_columns = "--columns" in sys.argv
    databases = [make_engine(url).connect() for url in sys.argv[1:] if url != "--columns"]
    if not databases:
        print(__doc__, file=sys.stderr)
        return 2
    names = [connection.dialect.name for connection in databases]
    print("| list | part |", " | ".join(f"{_HEAD[name]} | ms" for name in names), "|")
    print("|---|---|", "|".join("---|" * _HEAD[name].count("|") + "---|--:" for name in names), "|", sep="")
    for path, queries in (("/sizes", SIZES), ("/prices", PRICES)):
        for query in queries:
            answers = [list(_parts(connection, path, query, on_columns=on_columns)) for connection in databases]
            for part, figures in zip(("page", "total"), zip(*answers, strict=True), strict=False):
                print(f"| `{path}{query and '?'}{query}` | {part} |", " | ".join(figures), "|")
    return 0


def _parts(connection: Connection, path: str, query: str, *, on_columns: bool) -> Iterator[str]:
    """Yield what is told of the page of a list, and of its total; a list that fits on a page is not counted."""
    statements = list(_statements(connection, path, query, on_columns=on_columns))
    none = " | ".join("–" for _ in f"{_HEAD[connection.dialect.name]} | ms".split("|"))
    for number in range(2):
        yield _figures(connection, statements[number]) if number < len(statements) else none


def _statements(connection: Connection, path: str, query: str, *, on_columns: bool) -> Iterator[BoundStatement]:
    """Yield the page of a list and its total, but nothing that names are looked up by."""
    with Session(connection) as session:
        snapshot = load_snapshot(session)
    if "westeurope" not in snapshot.regions:
        for name, other in IN_SYNTHETIC.items():
            query = query.replace(name, other)
    raw, is_page_read = query.encode(), False

    def make_plan() -> QueryPlan[Any]:
        if path == "/sizes":
            return find_sizes(parse_query(raw, SizeSearch), snapshot, TODAY)
        return find_all_prices(parse_query(raw, AllPricesSearch), snapshot, TODAY)

    if on_columns:
        with Session(connection) as session:
            if path == "/sizes":
                search = normalize(parse_query(raw, SizeSearch), snapshot)
                run_plan(session, load_list_columns(ColumnNeeds.of(search), snapshot))
            run_plan(session, make_plan())
            while (load := snapshot.columns.next_wanted()) is not None:
                run_plan(session, load())
            snapshot.totals.clear()
    plan = make_plan()
    with suppress(StopIteration):
        bound = next(plan)
        while True:
            is_page_read = is_page_read or not {"doc", "usd_per_hour"}.isdisjoint(bound.statement.names)
            if is_page_read and "digest" not in bound.statement.names:
                yield bound
            compiled = bound.statement.compiled_for(connection.dialect.name)
            rows = connection.exec_driver_sql(compiled.sql, {**compiled.constants, **bound.parameters})
            bound = plan.send(convert_rows([tuple(row) for row in rows], compiled))


def _figures(connection: Connection, bound: BoundStatement) -> str:
    """Return what a statement reads from, how many rows (on PostgreSQL, which tells), and the least time in ms."""
    compiled = bound.statement.compiled_for(connection.dialect.name)
    sql, parameters = compiled.sql, {**compiled.constants, **bound.parameters}
    least = min(_time(connection, sql, parameters) for _ in range(REPEATED))
    if connection.dialect.name == "sqlite":
        lines = [row[-1] for row in connection.exec_driver_sql(f"explain query plan {sql}", parameters)]
        return f"{_join(_sqlite_sources(lines))} | {least:.1f}"
    explained = connection.exec_driver_sql(f"explain (analyze, format json) {sql}", parameters).scalar_one()
    tree = explained if isinstance(explained, list) else orjson.loads(explained)
    scans = [node for node in _nodes(tree[0]["Plan"]) if "Relation Name" in node and node["Actual Loops"]]
    sources = (node.get("Index Name") or f"all of {node['Relation Name']}" for node in scans)
    rows = sum((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"] for node in scans)
    return f"{_join(sources)} | {rows:,.0f} | {least:.1f}"


def _time(connection: Connection, sql: str, parameters: dict[str, Any]) -> float:
    started = time.perf_counter()
    connection.exec_driver_sql(sql, parameters).all()
    return (time.perf_counter() - started) * 1000


_LINE = re.compile(r"(SCAN|SEARCH) (\w+)(?: USING (?:COVERING )?(?:INDEX (\w+)|(PRIMARY KEY)))?")
_MADE_BY_QUERY = ("price_list", "page", "chosen", "json_each", "these", "cheapest", "rival", "anon", "bucket")


def _sqlite_sources(lines: list[str]) -> Iterator[str]:
    for line in lines:
        found = _LINE.match(line)
        if found and not found[2].startswith(_MADE_BY_QUERY):
            table = re.sub(r"_\d+$", "", found[2])
            key = found[3] if found[3] and not found[3].startswith("sqlite_") else "key" if found[3] or found[4] else ""
            yield f"{table} by {key}" if key else f"all of {table}"


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for inner in node.get("Plans", ()):
        yield from _nodes(inner)


def _join(sources: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(sources))


if __name__ == "__main__":
    sys.exit(main())
