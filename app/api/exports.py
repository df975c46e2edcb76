"""Exports: CSV and NDJSON streamed as rows are read, Parquet written to a file once per query and revision.

A file has a length and an ETag before it is sent, so clients can ask for parts of it (Range) and resume.
"""

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import gettempdir
from threading import Thread

from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from app.catalog.queries.exports import Export
from app.db.databases import Database
from app.db.executors import Stream
from app.errors import Busy
from app.formats.text import Csv, TextFormat
from app.telemetry.counters import OwnFolder

_PREFIX = "vmsizes-exports-"


_log = logging.getLogger(__name__)

MAX_CONCURRENT = 16
"""Exports that run at the same time, at most. Each holds a connection, and on SQLite keeps the WAL from shrinking."""
MAX_WAITING_FILES = 8
"""Parquet files that are being written or wait for that, at most."""

MAX_FILE_READERS = 64
"""Responses that are sent from a Parquet file at the same time, at most; each has the file open."""

_THREADS, _FILE_THREADS = 4, 2
"""Threads for streams, each busy with one block at a time, and for files, each busy with a whole one."""


class ExportStreams:
    """The exports that are running, in threads of their own so that no other query waits for them.

    `database` must have no pool: an export may hold its connection for minutes.
    """

    def __init__(self, database: Database, max_running: int = MAX_CONCURRENT, max_seconds: float = 900) -> None:
        self._database, self._max_running, self.max_seconds = database, max_running, max_seconds
        self.running: set[Stream] = set()
        self.threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="exports")
        self.file_threads = ThreadPoolExecutor(_FILE_THREADS, thread_name_prefix="files")

    def ensure_free(self) -> None:
        """Raise Busy if too many exports are running: before anything is looked for, so that refusing costs little."""
        if len(self.running) >= self._max_running:
            raise Busy(f"{self._max_running} exports are being written; try again in a moment.")

    def open(self, export: Export) -> Stream:
        """Start an export; raises Busy if too many are running."""
        self.ensure_free()
        return Stream(self._database, export.query, self.running)

    def close(self) -> None:
        """Stop the running exports and their threads."""
        for stream in tuple(self.running):
            stream.stop()
        self.threads.shutdown()
        self.file_threads.shutdown(cancel_futures=True)
        self._database.dispose()


class StreamedExport(StreamingResponse):
    """An export that is sent as its rows are read.

    The response starts when the first rows are there, so an error before them still gets a status. An error after
    them breaks the connection, since a truncated export must not look complete, and so does a client that takes longer
    than `ExportStreams.max_seconds`. If the client disconnects, the query is stopped.
    """

    def __init__(
        self,
        streams: ExportStreams,
        export: Export,
        text_format: type[TextFormat],
        *,
        file: str,
        status_code: int = 200,  # FastAPI reads it from the signature, for the OpenAPI document
    ) -> None:
        self._max_seconds = streams.max_seconds
        self._chunks = _chunks(streams, export, text_format(export.columns))
        named = {"content-disposition": f'attachment; filename="{file}"'}
        super().__init__(self._chunks, status_code, named, text_format.media_type)

    async def stream_response(self, send: Send) -> None:
        """Send the start of the response only when the first rows have been read."""
        try:
            async with asyncio.timeout(self._max_seconds):
                first = await anext(self._chunks)
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                await send({"type": "http.response.body", "body": first, "more_body": True})
                async for chunk in self._chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            await self._chunks.aclose()


class CsvResponse(StreamedExport):
    """A CSV export in UTF-8, which the OpenAPI document has as such."""

    media_type = Csv.media_type


async def _chunks(streams: ExportStreams, export: Export, text: TextFormat) -> AsyncGenerator[bytes, None]:
    """Yield the heading with the first block of rows, which may be empty, then the other blocks."""
    stream = streams.open(export)
    loop = asyncio.get_running_loop()

    def read_block() -> bytes | None:
        rows = stream.fetch_block()
        return b"".join(map(text.write, export.blocks(rows))) if rows else None

    try:
        chunk = await loop.run_in_executor(streams.threads, read_block)
        yield text.head + (chunk or b"")
        while chunk is not None:
            chunk = await loop.run_in_executor(streams.threads, read_block)
            if chunk:
                yield chunk
        if end := text.end():
            yield end
    finally:
        if stream in streams.running:  # in a thread: interrupting a query can take a round trip to the database
            Thread(target=stream.stop, name="export-stop").start()


@dataclass(slots=True, eq=False)
class ExportFile:
    """A cached file and the number of responses that are reading it."""

    path: Path
    size_bytes: int
    readers: int = 0


class ExportFileCache:
    """The Parquet files of a worker, in a folder of its own, at most `max_bytes` large together.

    The least recently used are evicted, except for files that are being read and the newest one.
    """

    def __init__(self, streams: ExportStreams, max_bytes: int) -> None:
        self._streams, self._max_bytes = streams, max_bytes
        self._folder: OwnFolder | None = None
        OwnFolder.remove_abandoned(_PREFIX)
        self._files: OrderedDict[str, ExportFile] = OrderedDict()
        self._pending: dict[str, asyncio.Task[ExportFile]] = {}

    def __iter__(self) -> Iterator[ExportFile]:
        return iter(tuple(self._files.values()))

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(file.size_bytes for file in self._files.values())

    async def get(self, name: str, export: Export) -> ExportFile:
        """Return the file of an export; concurrent calls for one that is missing wait for the same write.

        Raises Busy if too many files are being written or sent, or the file cannot be written.
        """
        if sum(export_file.readers for export_file in self._files.values()) >= MAX_FILE_READERS:
            raise Busy(f"{MAX_FILE_READERS} Parquet files are being sent; try again in a moment.")
        file = self._files.get(name)
        if file is not None:
            self._files.move_to_end(name)
            return file
        pending = self._pending.get(name)
        if pending is None:
            if len(self._pending) >= MAX_WAITING_FILES:
                raise Busy(f"{MAX_WAITING_FILES} Parquet files are being written; try again in a moment.")
            pending = self._pending[name] = asyncio.create_task(self._create(name, export))
            pending.add_done_callback(lambda _: self._pending.pop(name, None))
        return await asyncio.shield(pending)  # a client that disconnects must not cancel it for the others

    def close(self) -> None:
        """Delete all files."""
        self._files.clear()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    async def _create(self, name: str, export: Export) -> ExportFile:
        loop, threads = asyncio.get_running_loop(), self._streams.file_threads
        try:
            if self._folder is None:
                self._folder = OwnFolder(_PREFIX)
            path = self._folder.path / f"{name}.parquet"
            size_bytes = await loop.run_in_executor(threads, _write_parquet, path, export, self._streams)
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
            _log.error("cannot write a Parquet file below %s: %s", gettempdir(), reason)
            no_room = "The service cannot write a Parquet file in its folder for temporary files"
            raise Busy(f"{no_room}: {reason}. CSV and NDJSON need no file.") from error
        file = self._files[name] = ExportFile(path, size_bytes)
        over = self.size_bytes - self._max_bytes
        for other_name, other in list(self._files.items())[:-1]:
            if over > 0 and not other.readers:
                other.path.unlink(missing_ok=True)
                del self._files[other_name]
                over -= other.size_bytes
        return file


class ParquetResponse(FileResponse):
    """A Parquet file or the requested ranges of it; generated clients return bytes for its media type."""

    media_type = "application/octet-stream"
    chunk_size = 256 * 1024  # a thread reads each: Starlette's 64 KiB take a twentieth of writing the file

    def __init__(self, file: ExportFile, *, file_name: str, etag: str, status_code: int = 200) -> None:
        self._file = file
        file.readers += 1  # counted now, since the file could be evicted before it is sent
        super().__init__(file.path, status_code, {"etag": etag}, self.media_type, filename=file_name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the file and release it; raises HTTPException for a range that it does not have."""

        async def checked(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] in _RANGE_ERRORS:
                headers = (
                    {"Content-Range": f"bytes */{self._file.size_bytes}"}
                    if message["status"] == _RANGE_NOT_SATISFIABLE
                    else None
                )
                raise HTTPException(message["status"], _RANGE_ERRORS[message["status"]], headers)
            await send(message)

        try:
            # A Range that is not in bytes must be ignored (RFC 9110, section 14.2).
            sent = [(name, value) for name, value in scope["headers"] if name != b"range" or value[:6] == b"bytes="]
            await super().__call__({**scope, "headers": sent}, receive, checked)
        finally:
            self._file.readers -= 1

    @classmethod
    def _parse_ranges(cls, range_: str, file_size: int) -> list[tuple[int, int]]:
        """Leave out ranges after the file's end, unless all are: others can be sent (RFC 9110, section 15.5.17)."""
        ranges = super()._parse_ranges(range_, file_size)
        return [(start, end) for start, end in ranges if start < file_size] or ranges


_RANGE_NOT_SATISFIABLE = 416
_RANGE_ERRORS = {
    400: "Range cannot be read; write it as bytes=0-1023.",
    _RANGE_NOT_SATISFIABLE: "The file ends before the requested range; Content-Range says how long it is.",
}


def _write_parquet(path: Path, export: Export, streams: ExportStreams) -> int:
    from app.formats.parquet import write_parquet  # noqa: PLC0415  # pyarrow is large, and most workers never need it

    write_parquet(path, export, streams.open(export).blocks())
    return path.stat().st_size
