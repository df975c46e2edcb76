"""Response cache: complete responses by what is asked, bounded by bytes, least recently used first out.

Also here: content encodings, and the headers by which clients keep and revalidate a copy.
"""

import asyncio
import gzip
import hashlib
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, Protocol

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard
from cachetools import LRUCache
from starlette.types import Message, Send

from app.http.headers import HOME

Header = tuple[bytes, bytes]
Headers = list[Header]

NO_CACHE = (b"cache-control", b"no-cache")
"""Clients may store a copy, but must revalidate it before each use; a 304 costs next to nothing."""
VARY = (b"vary", b"accept-encoding, origin")
VARY_BY_MEDIA_TYPE = (b"vary", b"accept, accept-encoding, origin")
"""For a path that is a page for browsers, and JSON for programs."""


def validator_headers(etag: bytes, cache_control: Header, path: str = "") -> Headers:
    """Return the headers by which clients store and revalidate a copy of what is at a path."""
    return [(b"etag", etag), cache_control, VARY_BY_MEDIA_TYPE if path == HOME else VARY]


MIN_ENCODED_BYTES = 512
"""Shorter bodies are sent unencoded: their headers outweigh what an encoding would save."""


class _Zstd(threading.local):
    """The compressor of a thread, which takes longer to make than to use."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=3)

    def compress(self, body: bytes) -> bytes:
        """Compress; the copy frees what the library reserves for the worst case, which is the size of `body`."""
        return memoryview(self._compressor.compress(body)).tobytes()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "zstd": _Zstd().compress,
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "gzip": lambda body: gzip.compress(body, compresslevel=6, mtime=0),
}
"""By preference. A page of 50 rows, 115 kB, takes 0.06 ms to encode as zstd and has 5.2 kB then; as br it takes 1.3 ms,
as long as finding and rendering it, and has 4.3 kB; as gzip 0.8 ms and 5.3 kB."""

_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.decompress(body)),
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
    "gzip": gzip.decompress,
}
MAX_INLINE_BYTES = 262_144
"""Longer bodies are encoded and decoded in a thread: they would keep the event loop for milliseconds."""

_MAX_PLAIN_BYTES = 16_384
"""Longer bodies are kept plain for the last clients that took no encoding (generated ones often take none), else as
zstd: a page of 50 sizes has 115 kB, 4.5 as zstd, which takes 40 us to encode, and 15 to decode for each of them."""

MAX_ACCEPT_ENCODING_BYTES = 256
"""A longer Accept-Encoding lists unknown encodings; it is ignored, so that no cache stores it."""


def preferred_encoding(accept_encoding: bytes) -> str | None:
    """Return the encoding to send for an Accept-Encoding header (RFC 9110, section 12.5.3); None is identity."""
    return _preferred(accept_encoding) if len(accept_encoding) <= MAX_ACCEPT_ENCODING_BYTES else None


@lru_cache(maxsize=256)
def _preferred(accept_encoding: bytes) -> str | None:
    weights = dict(_weights(accept_encoding.decode("latin-1").lower()))
    default = weights.get("*", 0.0)
    best = max(ENCODERS, key=lambda name: weights.get(name, default))
    return best if weights.get(best, default) > 0 else None


def _weights(header: str) -> list[tuple[str, float]]:
    weights = []
    for part in filter(None, map(str.strip, header.split(","))):
        name, _, parameter = part.partition(";")
        _, _, weight = parameter.partition("q=")
        try:
            weights.append((name.strip(), float(weight) if weight else 1.0))
        except ValueError:
            continue
    return weights


def digest(*parts: bytes | bytearray) -> bytes:
    """Return a 16-byte key for long parts, the same in every worker."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


class EncodedVariant(NamedTuple):
    """A response in one encoding, with the headers that are the same for all who get it."""

    headers: tuple[Header, ...]
    body: bytes


@dataclass(slots=True)
class CachedResponse:
    """A complete response in the encodings that were requested so far.

    `etag` and `validators`, the headers of a 304, are empty where none are sent; `link` is the value of Link; `headers`
    are the others. `length` is that of the body before it is encoded. `series` is where `RequestObserver` counts it.
    """

    key: bytes
    etag: bytes
    validators: Headers
    headers: Headers
    link: bytes
    length: int
    created_at: float
    series: int = 0
    variants: dict[str | None, EncodedVariant] = field(default_factory=dict)

    @property
    def age_seconds(self) -> int:
        """How long ago it was made."""
        return int(time.monotonic() - self.created_at)

    def find_variant(self, encoding: str | None) -> EncodedVariant | None:
        """Return the variant in an encoding that `preferred_encoding` gave, if it was requested before."""
        variant = self.variants.get(encoding if self.length >= MIN_ENCODED_BYTES else None)
        return self.make_variant(None) if variant is None and encoding is None and self.is_decoded else variant

    def make_variant(self, encoding: str | None) -> EncodedVariant:
        """Make the variant in another encoding from one that is there, zstd if it is: the fastest to decode."""
        made_in = "zstd" if "zstd" in self.variants else next(iter(self.variants))
        body = self.variants[made_in].body
        return self.add_variant(_DECODERS[made_in](body) if made_in else body, encoding)

    def add_variant(self, body: bytes, encoding: str | None) -> EncodedVariant:
        """Encode a body, unless it is short, and keep it with its headers."""
        encoding = encoding if self.length >= MIN_ENCODED_BYTES else None
        body = ENCODERS[encoding](body) if encoding else body
        headers = [*self.headers, (b"link", self.link), (b"content-length", b"%d" % len(body))]
        if self.etag:
            headers.append((b"etag", self.etag))
        if encoding:
            headers.append((b"content-encoding", encoding.encode()))
        variant = EncodedVariant(tuple(headers), body)
        if encoding is not None or not self.is_decoded:
            self.variants[encoding] = variant
        return variant

    @property
    def is_decoded(self) -> bool:
        """Whether it is kept as zstd, and decoded for each client that takes no encoding."""
        return _MAX_PLAIN_BYTES < self.length <= MAX_INLINE_BYTES and "zstd" in self.variants

    @property
    def has_long_plain(self) -> bool:
        """Whether a long body of it is kept plain."""
        return self.length > _MAX_PLAIN_BYTES and None in self.variants

    def drop_plain(self) -> None:
        """Keep a long body as zstd only."""
        plain = self.variants.pop(None)
        if "zstd" not in self.variants:
            self.add_variant(plain.body, "zstd")

    @property
    def size_bytes(self) -> int:
        """The memory that all variants take together, but for a long plain one."""
        bodies = sum(
            _VARIANT_OVERHEAD_BYTES + len(variant.body)
            for encoding, variant in self.variants.items()
            if encoding is not None or self.length <= _MAX_PLAIN_BYTES
        )
        return _RESPONSE_OVERHEAD_BYTES + len(self.link) + bodies


_RESPONSE_OVERHEAD_BYTES = 1_000
"""What a response takes besides its bodies: objects, its key and ETag, its place in a mapping; measured."""

_VARIANT_OVERHEAD_BYTES = 400
"""What a variant takes besides its body; measured."""

_URL_BYTES = 250
"""What a URL of usual length takes, with its places in mappings; measured."""

_MAX_PLAIN_URL_BYTES = 200
"""Longer URLs are kept as a digest; for shorter ones it would take more time than it saves memory."""

_URLS_SHARE = 8
"""The part of the cache that URLs may take, as a divisor."""

_PLAIN_SHARE = 8
"""The part of the cache that long plain bodies may take, as a divisor."""


class _PlainBodies(LRUCache[bytes, CachedResponse]):
    """Responses with a long plain body by their key; the least recently used make room, and keep it as zstd."""

    def __init__(self, max_bytes: int, recount: Callable[[CachedResponse], None]) -> None:
        super().__init__(max_bytes, getsizeof=attrgetter("length"))
        self._recount = recount

    def popitem(self) -> tuple[bytes, CachedResponse]:
        """Remove the least recently used."""
        key, response = super().popitem()
        response.drop_plain()
        self._recount(response)
        return key, response


class ResponseCache:
    """Responses of one generation of the catalog by the key of their request, which URLs lead to without parsing."""

    def __init__(self, max_bytes: int) -> None:
        max_urls = max_bytes // _URLS_SHARE // _URL_BYTES
        self._keys: LRUCache[bytes, bytes] = LRUCache(max_urls)
        self._responses: LRUCache[bytes, CachedResponse] = LRUCache(
            max_bytes - max_urls * _URL_BYTES - max_bytes // _PLAIN_SHARE,
            getsizeof=attrgetter("size_bytes"),
        )
        self._plain = _PlainBodies(max_bytes // _PLAIN_SHARE, self.recount)

    def __len__(self) -> int:
        return len(self._responses)

    @property
    def size_bytes(self) -> int:
        """The memory that responses and URLs take."""
        return int(self._responses.currsize + self._plain.currsize) + len(self._keys) * _URL_BYTES

    def clear(self) -> None:
        """Remove every response."""
        self._responses.clear()
        self._keys.clear()
        while self._plain:
            LRUCache.popitem(self._plain)

    def find(self, url: bytes) -> CachedResponse | None:
        """Return the response to a URL that was remembered, which then becomes the most recently used."""
        key = self._keys.get(url)
        return self.get(key) if key is not None else None

    def get(self, key: bytes) -> CachedResponse | None:
        """Return the response to a request, which then becomes the most recently used."""
        response = self._responses.get(key)
        if response is not None and response.has_long_plain:
            self._plain.get(key)
        return response

    def put(self, response: CachedResponse) -> None:
        """Store a response, and make room for it; one that is longer than the cache is not stored."""
        try:
            self._responses[response.key] = response
            if response.has_long_plain:
                if response.length > self._plain.maxsize:
                    response.drop_plain()
                    self._responses[response.key] = response
                else:
                    self._plain[response.key] = response
        except ValueError:
            self._responses.pop(response.key, None)

    def remember_url(self, url: bytes, response: CachedResponse) -> None:
        """Find a response, if it is stored, by one more URL."""
        if self._responses.get(response.key) is response:
            self._keys[url] = response.key

    def recount(self, response: CachedResponse) -> None:
        """Count a response again that gained a variant, if it is still stored."""
        if self._responses.get(response.key) is response:
            self.put(response)


def url_key(method: str, path: str, query: bytes, body: bytes | bytearray = b"") -> bytes:
    """Return a request as one object; no server lets a NUL into a query, so the parts of a URL stay distinct."""
    if method == "GET" and len(path) + len(query) <= _MAX_PLAIN_URL_BYTES:
        return b"%s\0%s" % (path.encode(), query)
    return digest(path.encode(), query, *([body] if method == "POST" else []))


# Streamed responses: too long to be kept, but sent with validators, and encoded chunk by chunk

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


_STREAM_ENCODERS: dict[str, Callable[[], _Encoder]] = {
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
                sent = dict(headers)
                content_type = sent.get(b"content-type", b"")
                is_text = content_type.startswith(b"text/") or b"json" in content_type
                if encoding is not None and is_text and b"content-length" not in sent:
                    encoder = _STREAM_ENCODERS[encoding]()
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
