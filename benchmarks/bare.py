"""References without a framework: a database driver and orjson in a bare ASGI application.

They neither parse the question, nor count, nor make a cursor: what follows the rows is taken from the service's own
answer, which makes them a little faster than an honest rival could be.
"""

import asyncio
import csv
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

import orjson
from sqlalchemy.orm import Session

from app.catalog.queries.candidates import machines_query
from app.catalog.queries.sizes import render_size
from app.catalog.queries.snapshot import load_snapshot
from app.db.engines import make_engine
from app.db.statements import convert_rows, to_dicts
from app.fit.formulas.quantities import Assumptions
from app.fit.placement.prepare import prepare
from app.fit.placement.ranking import rank
from app.schemas.fit_request import FitIn
from app.services.fit import to_request, to_scope, to_sizes
from benchmarks.fits import FIT
from benchmarks.page_query import STORED, Rows, open_postgres, open_sqlite, page_sql, parameters, store_offers
from benchmarks.price_query import PriceRows, history_sql, price_parameters, prices_sql
from benchmarks.raw import App, Receive, Scope, Send, http_only, recorded_responses, start_of

POSTGRES_CONNECTIONS = 8
BLOCK_ROWS = 1000
"""How many rows of an export are written at once."""


class _Page:
    """The page that a reference sends to every request: its query, and the bytes after its rows."""

    def __init__(
        self,
        to_sql: Callable[[Sequence[str]], str] = page_sql,
        to_parameters: Callable[[str], dict[str, Any]] = parameters,
        rows: type[Rows] | type[PriceRows] = Rows,
    ) -> None:
        target, self._answer = next(iter(recorded_responses().items()))
        body = self._answer.body
        self.items = json.loads(body)["items"]
        names = list(self.items[0])
        self._tail = body[body.rindex(b"]") :]
        self._rows = rows(names)
        self.sql, self.parameters = to_sql(names), to_parameters(target)

    async def send(self, found: list[Any], send: Send) -> None:
        items = orjson.dumps([self._rows.row(values) for values in found])
        await self.send_items(items[:-1], send)

    async def send_items(self, items: bytes, send: Send) -> None:
        body = b'{"items":' + items + self._tail
        await send(start_of(self._answer, len(body)))
        await send({"type": "http.response.body", "body": body})


_PricePage = partial(_Page, prices_sql, price_parameters, PriceRows)


def sqlite() -> App:
    """Build the application of a page of sizes on the sqlite3 module and orjson."""
    return _on_sqlite(_Page())


def sqlite_prices() -> App:
    """Build the application of a page of prices on the sqlite3 module and orjson."""
    return _on_sqlite(_PricePage())


def _on_sqlite(page: _Page) -> App:
    connection = open_sqlite(os.environ["BENCH_DATABASE"])

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await page.send(connection.execute(page.sql, page.parameters).fetchall(), send)

    return http_only(app)


def csv_history() -> App:
    """Build the application that exports all prices with the sqlite3 and csv modules, in blocks of BLOCK_ROWS."""
    kept, connection = next(iter(recorded_responses().values())), open_sqlite(os.environ["BENCH_DATABASE"])
    head, _, _ = kept.body.partition(b"\r\n")
    sql, today = history_sql(head.decode().split(",")), datetime.now(UTC).date().isoformat()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(start_of(kept, None))
        await send({"type": "http.response.body", "body": head + b"\r\n", "more_body": True})
        cursor = connection.execute(sql, {"today": today})
        while rows := cursor.fetchmany(BLOCK_ROWS):
            text = io.StringIO(newline="")
            csv.writer(text, lineterminator="\r\n").writerows(rows)
            await send({"type": "http.response.body", "body": text.getvalue().encode(), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    return http_only(app)


def documents() -> App:
    """Build the application that joins stored documents of sizes and offers read by the sqlite3 module."""
    page, connection = _Page(), open_sqlite(os.environ["BENCH_DATABASE"])
    store_offers(connection, page.items)
    today = datetime.now(UTC).date()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        found = connection.execute(STORED, page.parameters).fetchall()
        await page.send_items(f"[{','.join(render_size(row, today) for row in found)}".encode(), send)

    return http_only(app)


def placement() -> App:
    """Build the application that runs the service's own query of candidates and its placement arithmetic.

    The body is read once; the answer's bytes are the service's own.
    """
    engine, connection = make_engine(os.environ["BENCH_DATABASE"]), open_sqlite(os.environ["BENCH_DATABASE"])
    body, today, assumptions = FitIn.model_validate(FIT), date.today(), Assumptions()  # noqa: DTZ011  # the server's day
    with Session(engine) as session:
        prepared = prepare(to_request(body, load_snapshot(session).models, assumptions, today), assumptions)
    asked = machines_query(to_scope(body), body.pricing.purchases, today=today, rules=())
    compiled = asked.statement.compiled_for("sqlite")
    parameters = asked.parameters
    kept = next(iter(recorded_responses().values()))

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        found = convert_rows(connection.execute(compiled.sql, parameters).fetchall(), compiled)
        rank(to_sizes(to_dicts(asked, found)), prepared, body.order)
        await send(start_of(kept, len(kept.body)))
        await send({"type": "http.response.body", "body": kept.body})

    return http_only(app)


def postgresql() -> App:
    """Build the application of a page of sizes on psycopg and orjson."""
    return _on_postgresql(_Page())


def postgresql_prices() -> App:
    """Build the application of a page of prices on psycopg and orjson."""
    return _on_postgresql(_PricePage())


def _on_postgresql(page: _Page) -> App:
    """Build the application of a page on a few connections with server-side prepared statements."""
    free = asyncio.Queue[Any]()
    sql = re.sub(r":(\w+)", r"%(\1)s", page.sql)
    opened = 0

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal opened
        if free.empty() and opened < POSTGRES_CONNECTIONS:
            opened += 1
            connection = await open_postgres(os.environ["BENCH_DATABASE"])
        else:
            connection = await free.get()
        try:
            found = await (await connection.execute(sql, page.parameters)).fetchall()
        finally:
            free.put_nowait(connection)
        await page.send(found, send)

    return http_only(app)
