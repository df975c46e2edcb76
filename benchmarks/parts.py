"""Where the microseconds of one cold request go: `python -m benchmarks.parts` times each part by itself.

Each figure is CPU time of the least of several rounds, on the small catalog on SQLite; parts are run as the service
runs them, one after another in a loop of their own.
"""

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import make_url
from sqlalchemy.orm import Session

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.size_sets import SizeQuestion
from app.catalog.queries.sizes import JsonPage, render_page, render_size
from app.catalog.queries.snapshot import Catalog, load_snapshot
from app.db.engines import make_engine
from app.http.canonical import parse_query
from app.main import create_asgi_app
from app.settings import Settings
from benchmarks.build import sqlite_catalog
from benchmarks.catalogs import SMALL, TODAY
from benchmarks.page_query import PRICED_TARGET

ROUNDS, TIMES = 7, 300


def microseconds(work: Callable[[], object]) -> float:
    """Return the CPU time of one call in microseconds, the minimum of several rounds."""
    return min(_round(work) for _ in range(ROUNDS))


def _round(work: Callable[[], object]) -> float:
    started = time.process_time()
    for _ in range(TIMES):
        work()
    return (time.process_time() - started) / TIMES * 1e6


def parts(url: str) -> Iterator[tuple[str, float]]:
    """Yield each part of the response to PRICED_TARGET, and its microseconds."""
    _, _, query = PRICED_TARGET.partition("?")
    with Session(make_engine(url)) as session:
        known = load_snapshot(session)
        search = parse_query(query.encode(), SizeSearch)
        question = SizeQuestion(Catalog(session, known, TODAY), search)
        asked = question.rows_of([question.sets.keys[at] for at in question.order(("name",))[: search.limit]])
    compiled = asked.statement.compiled_for("sqlite")
    parameters = asked.parameters
    connection = sqlite3.connect(make_url(url).database or "", isolation_level=None)
    rows = connection.execute(compiled.sql, parameters).fetchall()
    page = rows[: search.limit]
    items = [render_size(row, TODAY) for row in page]
    yield "read the query as one model", microseconds(lambda: parse_query(query.encode(), SizeSearch))
    keys = question.sets.keys[: search.limit]
    yield "find the statement of its shape", microseconds(lambda: question.rows_of(keys))
    yield (
        "SQLite: 51 offers merged, 51 documents",
        microseconds(lambda: connection.execute(compiled.sql, parameters).fetchall()),
    )
    yield (
        "write 50 sizes: their documents and standing",
        microseconds(lambda: [render_size(row, TODAY) for row in page]),
    )
    rendered = JsonPage(items=items, next_cursor="x", total=1)
    yield "join the page, encode it", microseconds(lambda: render_page(rendered).encode())
    yield "all of it, in front of the framework", microseconds(_whole(url, query))


def _whole(url: str, query: str) -> Callable[[], object]:
    service = create_asgi_app(Settings(_env_file=None, database_url=url, cache_mib=0), today=lambda: TODAY)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "path": "/sizes",
        "raw_path": b"/sizes",
        "query_string": query.encode(),
        "headers": [(b"host", b"x")],
        "scheme": "http",
    }
    loop = asyncio.new_event_loop()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(_message: Any) -> None:
        return None

    return lambda: loop.run_until_complete(service(dict(scope), receive, send))


if __name__ == "__main__":
    for part, took in parts(sqlite_catalog(SMALL, print, Path("data/benchmarks"))):
        print(f"{took:6.0f} us  {part}")
