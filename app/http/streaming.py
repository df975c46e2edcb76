"""Answers that are too long to be kept: marked like others, and encoded while they pass."""

import asyncio
import zlib
from collections.abc import Awaitable, Callable
from typing import Protocol

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard
from starlette.types import Message

from app.http.cache import Header, Headers, validator_headers

Send = Callable[[Message], Awaitable[None]]
ETAG_KEY = "vmsizes.etag"
"""Where the mark that an answer will have stands in a request's scope: text; that of a file is strong."""

_WHOLE, _PART = 200, 206
_FLUSH_BYTES = 64 * 1024
_INLINE_BYTES = 4096
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
        if self._held >= _FLUSH_BYTES:
            self._held = 0
            made += self._made.flush()
        return bytes(made)

    def flush(self) -> bytes:
        return bytes(self._made.finish())


_ENCODERS: dict[str, Callable[[], _Encoder]] = {
    "br": _Brotli,
    "zstd": lambda: zstandard.ZstdCompressor(level=3).compressobj(),
    "gzip": lambda: zlib.compressobj(level=5, wbits=31),
}
_REPLACED_HEADERS = {b"etag", b"last-modified", b"cache-control", b"vary"}


def with_validators(send: Send, etag: bytes, cache_control: Header, encoding: str | None) -> Send:
    """Send an answer with the marks of a question, and in an encoding where it is a stream of text; else as it is."""
    encoder: _Encoder | None = None

    async def send_with_validators(message: Message) -> None:
        nonlocal encoder
        if message["type"] == "http.response.start":
            if message["status"] in (_WHOLE, _PART):
                told = [header for header in message["headers"] if header[0] not in _REPLACED_HEADERS]
                headers = told + validator_headers(etag, cache_control)
                if encoding is not None and _is_text_stream(headers):
                    encoder = _ENCODERS[encoding]()
                    headers.append((b"content-encoding", encoding.encode()))
                message = {**message, "headers": headers}
        elif encoder is not None:
            more = message.get("more_body", False)
            body = await _encode(encoder, message.get("body", b""), last=not more)
            if not body and more:
                return
            message = {**message, "body": body}
        await send(message)

    return send_with_validators


def _is_text_stream(headers: Headers) -> bool:
    told = dict(headers)
    kind = told.get(b"content-type", b"")
    return b"content-length" not in told and (kind.startswith(b"text/") or b"json" in kind)


async def _encode(encoder: _Encoder, part: bytes, *, last: bool) -> bytes:
    if len(part) > _INLINE_BYTES:
        made = await asyncio.to_thread(encoder.compress, part)
    else:
        made = encoder.compress(part) if part else b""
    return made + encoder.flush() if last else made
