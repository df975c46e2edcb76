"""Streamed responses: too long to be cached, but sent with validators, and encoded chunk by chunk."""

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
"""The key in a request's scope of the ETag that its response will have, as text; strong for a file."""

_OK, _PARTIAL_CONTENT = 200, 206
_FLUSH_BYTES = 64 * 1024
_INLINE_BYTES = 4096
"""Chunks up to this are encoded on the event loop: handing them to a thread would take longer."""


class _Encoder(Protocol):
    def compress(self, chunk: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


class _Brotli:
    """Flushes after each 64 KiB of input; Brotli alone buffers megabytes before it emits anything."""

    def __init__(self) -> None:
        self._compressor, self._buffered_bytes = brotli.Compressor(quality=4), 0

    def compress(self, chunk: bytes, /) -> bytes:
        encoded = self._compressor.process(chunk)
        self._buffered_bytes += len(chunk)
        if self._buffered_bytes >= _FLUSH_BYTES:
            self._buffered_bytes = 0
            encoded += self._compressor.flush()
        return bytes(encoded)

    def flush(self) -> bytes:
        return bytes(self._compressor.finish())


_ENCODERS: dict[str, Callable[[], _Encoder]] = {
    "br": _Brotli,
    "zstd": lambda: zstandard.ZstdCompressor(level=3).compressobj(),
    "gzip": lambda: zlib.compressobj(level=5, wbits=31),
}
_REPLACED_HEADERS = {b"etag", b"last-modified", b"cache-control", b"vary"}


def with_validators(send: Send, etag: bytes, cache_control: Header, encoding: str | None) -> Send:
    """Wrap `send` to add validators to a successful response, and to encode it if it is a stream of text."""
    encoder: _Encoder | None = None

    async def send_with_validators(message: Message) -> None:
        nonlocal encoder
        if message["type"] == "http.response.start":
            if message["status"] in (_OK, _PARTIAL_CONTENT):
                kept = [header for header in message["headers"] if header[0] not in _REPLACED_HEADERS]
                headers = kept + validator_headers(etag, cache_control)
                if encoding is not None and _is_text_stream(headers):
                    encoder = _ENCODERS[encoding]()
                    headers.append((b"content-encoding", encoding.encode()))
                message = {**message, "headers": headers}
        elif encoder is not None:
            more = message.get("more_body", False)
            chunk = message.get("body", b"")
            if len(chunk) > _INLINE_BYTES:
                encoded = await asyncio.to_thread(encoder.compress, chunk)
            else:
                encoded = encoder.compress(chunk) if chunk else b""
            body = encoded if more else encoded + encoder.flush()
            if not body and more:
                return  # still in the encoder's buffer
            message = {**message, "body": body}
        await send(message)

    return send_with_validators


def _is_text_stream(headers: Headers) -> bool:
    values = dict(headers)
    content_type = values.get(b"content-type", b"")
    return b"content-length" not in values and (content_type.startswith(b"text/") or b"json" in content_type)
