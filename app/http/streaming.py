"""Answers that are too long to be kept: marked like others, and encoded while they pass."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard
from starlette.types import Message

from app.http.cache import Header, Headers, marks_of

Send = Callable[[Message], Awaitable[None]]
ETAG = "vmsizes.etag"
"""Where the mark that an answer will have stands in a request's scope: text; that of a file is strong."""

_WHOLE, _PART = 200, 206
_AT_ONCE = 64 * 1024
_SPARED = 4096
"""So many bytes are encoded faster than a thread is asked to do it."""


class _Encoder(Protocol):
    def compress(self, part: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Brotli:
    """Brotli by itself gathers megabytes before it gives any; this gives what came after each 64 KiB."""

    def __init__(self) -> None:
        self._made, self._held = brotli.Compressor(quality=4), 0

    def compress(self, part: bytes, /) -> bytes:
        made = self._made.process(part)
        self._held += len(part)
        if self._held >= _AT_ONCE:
            self._held = 0
            made += self._made.flush()
        return bytes(made)

    def flush(self) -> bytes:
        return bytes(self._made.finish())


_MAKE: dict[str, Callable[[], _Encoder]] = {
    "br": _Brotli,
    "zstd": lambda: zstandard.ZstdCompressor(level=3).compressobj(),
    "gzip": lambda: zlib.compressobj(level=5, wbits=31),
}
_OWN = {b"etag", b"last-modified", b"cache-control", b"vary"}


def marking(send: Send, etag: bytes, lasts: Header, encoding: str | None) -> Send:
    """Send an answer with the marks of a question, and in an encoding where it is a stream of text; else as it is."""
    encoder: _Encoder | None = None

    async def marked(message: Message) -> None:
        nonlocal encoder
        if message["type"] == "http.response.start":
            if message["status"] in (_WHOLE, _PART):
                told = [header for header in message["headers"] if header[0] not in _OWN]
                headers = told + marks_of(etag, lasts)
                if encoding is not None and _is_text_stream(headers):
                    encoder = _MAKE[encoding]()
                    headers.append((b"content-encoding", encoding.encode()))
                message = {**message, "headers": headers}
        elif encoder is not None:
            more = message.get("more_body", False)
            body = await _encoded(encoder, message.get("body", b""), last=not more)
            if not body and more:
                return
            message = {**message, "body": body}
        await send(message)

    return marked


def _is_text_stream(headers: Headers) -> bool:
    told = dict(headers)
    kind = told.get(b"content-type", b"")
    return b"content-length" not in told and (kind.startswith(b"text/") or b"json" in kind)


async def _encoded(encoder: _Encoder, part: bytes, *, last: bool) -> bytes:
    if len(part) > _SPARED:
        made = await asyncio.to_thread(encoder.compress, part)
    else:
        made = encoder.compress(part) if part else b""
    return made + encoder.flush() if last else made
