"""Exports that are text: written while they are read, never gathered."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import ClassVar

from sqlalchemy import Engine
from starlette.responses import StreamingResponse
from starlette.types import Send

from app.catalog.queries.exports import Export
from app.db.statements import Ask
from app.db.streams import Stream
from app.errors import Busy
from app.formats.text import Csv, Ndjson, TextFormat

MOST = 16
"""So many exports run at once; each holds a connection, and on SQLite a view of the past that the log is kept for."""
_THREADS = 4


class Streams:
    """The exports that a server is writing; they have threads of their own, so that no other question waits for them.

    `engine` must have no pool.
    """

    def __init__(self, engine: Engine, most: int = MOST) -> None:
        self._engine, self._most = engine, most
        self.running: set[Stream] = set()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="exports")

    def open(self, asked: Ask) -> Stream:
        """Begin an export; raises Busy where too many run."""
        if len(self.running) >= self._most:
            raise Busy(f"{self._most} exports are being written; try again in a minute.")
        return Stream(self._engine, asked, self.running)

    def close(self) -> None:
        """Stop whatever runs."""
        for stream in tuple(self.running):
            stream.stop()
        self.threads.shutdown()
        self._engine.dispose()


class Streamed(StreamingResponse):
    """An export that is written as it is read.

    The answer begins with the first rows, so that what fails before them is a problem with a status; what fails after
    breaks the connection, since a part must not look like the whole. A client that goes away stops the query.
    """

    form: ClassVar[type[TextFormat]]

    def __init__(self, streams: Streams, export: Export, *, file: str, status_code: int = 200) -> None:
        self._chunks = _chunks(streams, export, self.form(export.columns))
        named = {"content-disposition": f'attachment; filename="{file}"'}
        super().__init__(self._chunks, status_code, named)  # FastAPI takes the status of the document from here

    async def stream_response(self, send: Send) -> None:
        """Send the first rows together with the start."""
        try:
            first = await anext(self._chunks)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": first, "more_body": True})
            async for chunk in self._chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await self._chunks.aclose()


class CsvResponse(Streamed):
    """CSV in UTF-8."""

    media_type = "text/csv"
    form = Csv


class NdjsonResponse(Streamed):
    """A JSON object a line."""

    media_type = "application/x-ndjson"
    form = Ndjson


async def _chunks(streams: Streams, export: Export, text: TextFormat) -> AsyncGenerator[bytes, None]:
    """The head with the first rows, which may be none, then the others."""
    stream = streams.open(export.asked)
    loop = asyncio.get_running_loop()

    def block() -> bytes:
        rows = stream.more()
        return text.write(map(export.values, rows)) if rows else b""

    try:
        chunk = await loop.run_in_executor(streams.threads, block)
        yield text.head + chunk
        while chunk:
            chunk = await loop.run_in_executor(streams.threads, block)
            if chunk:
                yield chunk
    finally:
        if stream in streams.running:  # in a thread: to interrupt a query may take a round trip
            Thread(target=stream.stop, name="export-stop").start()
