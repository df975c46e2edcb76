"""What the service is measured against: bare ASGI applications that give the same bytes with no framework at all.

`raw` sends bytes that were made beforehand: the limit of the server itself. `bare_sqlite` and `bare_postgres` ask the
database anew and encode the rows with orjson; they neither parse the question, nor count, nor make a cursor: the end of
the page is taken from the service's own answer, which makes them a little faster than an honest rival could be.
"""

import asyncio
import base64
import json
import os
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import orjson

from benchmarks.question import Rows, open_postgres, open_sqlite, page_sql, parameters
from benchmarks.servers import Answer

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

NOT_FOUND = Answer(status=404, headers=(), body=b"")
POSTGRES_CONNECTIONS = 8


def save_answers(answers: Mapping[str, Answer], file: Path) -> None:
    """Keep the answers of the service where a bare side finds them."""
    kept = {
        target: {"status": answer.status, "headers": answer.headers, "body": base64.b64encode(answer.body).decode()}
        for target, answer in answers.items()
    }
    file.write_text(json.dumps(kept))


def load_answers(file: Path) -> dict[str, Answer]:
    """Read kept answers, by their targets."""
    told = json.loads(file.read_text())
    return {
        target: Answer(
            status=answer["status"],
            headers=tuple((name, value) for name, value in answer["headers"]),
            body=base64.b64decode(answer["body"]),
        )
        for target, answer in told.items()
    }


def _answers() -> dict[str, Answer]:
    return load_answers(Path(os.environ["BENCH_ANSWERS"]))


def _start_of(answer: Answer, length: int) -> Message:
    told = [(name.encode(), value.encode()) for name, value in answer.headers]
    headers = [*told, (b"content-length", str(length).encode())]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


def raw() -> App:
    """Bytes made beforehand."""
    ready = {
        target.encode(): (_start_of(answer, len(answer.body)), {"type": "http.response.body", "body": answer.body})
        for target, answer in _answers().items()
    }
    missing = (_start_of(NOT_FOUND, 0), {"type": "http.response.body", "body": b""})

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        target = scope["raw_path"] + b"?" + query if query else scope["raw_path"]
        start, body = ready.get(target, missing)
        await send(start)
        await send(body)

    return _http_only(app)


class _Page:
    """The one page that a bare side answers with: its query, and the bytes around its rows."""

    def __init__(self) -> None:
        ((target, self._answer),) = _answers().items()
        body = self._answer.body
        names = list(json.loads(body)["items"][0])
        self._tail = body[body.rindex(b"]") :]
        self._rows = Rows(names)
        self.sql, self.parameters = page_sql(names), parameters(target)

    async def send(self, found: list[Any], send: Send) -> None:
        items = orjson.dumps([self._rows.row(values) for values in found])
        body = b'{"items":' + items[:-1] + self._tail
        await send(_start_of(self._answer, len(body)))
        await send({"type": "http.response.body", "body": body})


def bare_sqlite() -> App:
    """The sqlite3 module and orjson."""
    page, connection = _Page(), open_sqlite(os.environ["BENCH_DATABASE"])

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await page.send(connection.execute(page.sql, page.parameters).fetchall(), send)

    return _http_only(app)


def bare_postgres() -> App:
    """psycopg, a few connections, statements prepared by the server, and orjson."""
    page, free = _Page(), asyncio.Queue[Any]()
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

    return _http_only(app)


def _http_only(app: App) -> App:
    """Let uvicorn see that there is nothing to do at its start and end."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        await app(scope, receive, send)

    return checked
