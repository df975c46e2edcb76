"""Response cache: complete responses by request key, bounded by bytes, least recently used first out.

Also here: content encodings, and the headers by which clients keep and revalidate a copy.
"""

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard
from starlette.types import Message

Header = tuple[bytes, bytes]
Headers = list[Header]

NO_CACHE = (b"cache-control", b"no-cache")
"""Clients may store a copy, but must revalidate it before each use; a 304 costs next to nothing."""
VARY = (b"vary", b"accept-encoding, origin")
VARY_BY_MEDIA_TYPE = (b"vary", b"accept, accept-encoding, origin")
"""For a path that is a page for browsers, and JSON for programs."""


def cache_control_header(max_age_seconds: int) -> Header:
    """Return the Cache-Control header that lets clients reuse a copy for so long without revalidation."""
    return (b"cache-control", b"public, max-age=%d" % max_age_seconds) if max_age_seconds else NO_CACHE


def header_lines(headers: Iterable[Header]) -> bytes:
    """Return headers as they are sent, each with its end."""
    return b"".join([b"%s: %s\r\n" % header for header in headers])


def validator_headers(etag: bytes, cache_control: Header, vary: Header = VARY) -> Headers:
    """Return the headers by which clients store and revalidate a copy."""
    return [(b"etag", etag), cache_control, vary]


MIN_ENCODED_BYTES = 512
"""Shorter bodies are sent unencoded: their headers outweigh what an encoding would save."""


class _Zstd(threading.local):
    """The compressor of a thread, which takes longer to make than to use."""

    def __init__(self) -> None:
        self._compressor = zstandard.ZstdCompressor(level=3)

    def compress(self, body: bytes) -> bytes:
        """Compress; the copy frees what the library reserves for the worst case, which is the size of `body`."""
        return memoryview(self._compressor.compress(body)).tobytes()


_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": _Zstd().compress,
    "gzip": lambda body: gzip.compress(body, compresslevel=6, mtime=0),
}
"""By preference. At these levels a page of 50 rows takes at most a quarter of a millisecond (docs/performance.md)."""

ENCODINGS = tuple(_ENCODERS)

_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.decompress(body)),
    "zstd": lambda body: zstandard.ZstdDecompressor().decompress(body),
    "gzip": gzip.decompress,
}
_PACKED_ENCODING = "zstd"
"""The encoding to pack a body in of which no encoding was requested: 40 us for 36 kB, and 20 us to decode."""

MAX_INLINE_BYTES = 262_144
"""Longer bodies are encoded and decoded in a thread: they would keep the event loop for milliseconds."""


def encode(body: bytes, encoding: str) -> bytes:
    """Return a body in one of ENCODINGS."""
    return _ENCODERS[encoding](body)


@lru_cache(maxsize=256)
def preferred_encoding(accept_encoding: bytes) -> str | None:
    """Return the encoding to send for an Accept-Encoding header (RFC 9110, section 12.5.3); None is identity."""
    weights = dict(_weights(accept_encoding.decode("latin-1").lower()))
    default = weights.get("*", 0.0)
    best = max(_ENCODERS, key=lambda name: weights.get(name, default))
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


@dataclass(slots=True)
class EncodedVariant:
    """A response in one encoding: its headers, except those of the single request, and the body message.

    `lines` are the headers as bytes, once a server has sent them so.
    """

    headers: Headers
    body: Message
    lines: bytes = b""


@dataclass(slots=True)
class CachedResponse:
    """A complete response, with a variant for each encoding that was requested so far.

    A packed one has no `body`, but one encoded variant, which takes a tenth to a twentieth of the memory. `series` is
    where `RequestObserver` counts it.
    """

    key: bytes
    etag: bytes
    cache_control: Header
    headers: Headers
    body: bytes | None
    created_at: float
    length: int = 0
    series: int = 0
    variants: dict[str | None, EncodedVariant] = field(default_factory=dict)
    _overhead_bytes: int = 0

    def __post_init__(self) -> None:
        self.length = len(self.body or b"")
        self._overhead_bytes = _RESPONSE_OVERHEAD_BYTES + sum(len(value) for _, value in self.headers)

    @property
    def is_packed(self) -> bool:
        """Return whether packing would save nothing: the body is kept in one encoding alone, or is short."""
        return self.body is None or self.length < MIN_ENCODED_BYTES

    def variant(self, encoding: str | None) -> EncodedVariant:
        """Return the variant in an encoding that `preferred_encoding` gave, encoding it on first use."""
        variant = self.variants.get(encoding)
        if variant is None:
            too_short = encoding is not None and self.length < MIN_ENCODED_BYTES
            variant = self.variants[encoding] = self.variant(None) if too_short else self._encode(encoding)
        return variant

    def pack(self) -> None:
        """Keep the body in one encoding alone: one that clients accept if any was requested."""
        if self.is_packed or self.length > MAX_INLINE_BYTES:
            return
        encoding = next((name for name in _ENCODERS if name in self.variants), _PACKED_ENCODING)
        self.variants = {encoding: self.variant(encoding)}
        self.body = None

    def _encode(self, encoding: str | None) -> EncodedVariant:
        if self.body is None:
            ((packed, variant),) = self.variants.items()
            self.body = _DECODERS[packed or ""](variant.body["body"])
        body = encode(self.body, encoding) if encoding else self.body
        length = (b"content-length", str(len(body)).encode())
        content_encoding = [(b"content-encoding", encoding.encode())] if encoding else []
        return EncodedVariant([*self.headers, length, *content_encoding], {"type": "http.response.body", "body": body})

    @property
    def size_bytes(self) -> int:
        """The memory that all variants take together."""
        encoded_bytes = 0
        for variant in self.variants.values():
            body = variant.body["body"]
            encoded_bytes += len(variant.lines) + (len(body) if body is not self.body else 0)
        return len(self.body or b"") + encoded_bytes + self._overhead_bytes


_RESPONSE_OVERHEAD_BYTES = 1_700
"""What a response takes besides its body: objects, header names, its key; measured."""

_URL_OVERHEAD_BYTES = 450
"""What a remembered URL takes besides its own bytes: objects, and the key of its request; rounded up."""

_MAX_PLAIN_URL_BYTES = 200
"""Longer URLs are remembered by a digest; for shorter ones it would take more time than it saves memory."""

_URL_SHARE = 4
"""URLs take at most one part in so many of the cache, so that they never evict the responses."""


_UNPACKED_SHARE = 4
"""Unpacked responses keep at least one part in so many of the cache; all of it while there is room."""


class ResponseCache:
    """Responses of one generation of the catalog, and which URL means which request; one bound for both.

    To make room the least recently used responses are packed; once only a share of the cache is not, they are evicted.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._sizes: dict[bytes, int] = {}
        self._unpacked: OrderedDict[bytes, None] = OrderedDict()
        self._urls: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._url_bytes = self._response_bytes = self._unpacked_bytes = 0

    def __len__(self) -> int:
        return len(self._responses)

    @property
    def size_bytes(self) -> int:
        """The memory that responses and URLs take."""
        return self._response_bytes + self._url_bytes

    def clear(self) -> None:
        """Remove every response; what a URL means stays known."""
        self._responses.clear()
        self._sizes.clear()
        self._unpacked.clear()
        self._response_bytes = self._unpacked_bytes = 0

    def find_key(self, path: str, query: bytes) -> bytes | None:
        """Return the key of the request that a URL means, if it is remembered."""
        return self._urls.get(_url_key(path, query))

    def remember_url(self, path: str, query: bytes, key: bytes) -> None:
        """Remember the key of the request that a URL means; the URLs remembered first make room."""
        url = _url_key(path, query)
        if url not in self._urls:
            self._url_bytes += _url_size_bytes(url)
        self._urls[url] = key
        while self._url_bytes > self._max_bytes // _URL_SHARE:
            first, _ = self._urls.popitem(last=False)
            self._url_bytes -= _url_size_bytes(first)
        self._make_room()

    def get(self, key: bytes) -> CachedResponse | None:
        """Return the response to a request, which then becomes the most recently used."""
        response = self._responses.get(key)
        if response is not None:
            self._responses.move_to_end(key)
            if key in self._unpacked:
                self._unpacked.move_to_end(key)
        return response

    def put(self, response: CachedResponse) -> None:
        """Store a response, and make room for it."""
        self._responses[response.key] = response
        self.recount(response)

    def recount(self, response: CachedResponse) -> None:
        """Count a response again that gained a variant, if it is still stored."""
        if self._responses.get(response.key) is response:
            self._count(response)
            self._make_room()

    def _count(self, response: CachedResponse) -> None:
        self._uncount(response.key)
        self._sizes[response.key] = size_bytes = response.size_bytes
        self._response_bytes += size_bytes
        if not response.is_packed:
            self._unpacked[response.key] = None
            self._unpacked_bytes += size_bytes

    def _uncount(self, key: bytes) -> None:
        size_bytes = self._sizes.pop(key, 0)
        self._response_bytes -= size_bytes
        if key in self._unpacked:
            del self._unpacked[key]
            self._unpacked_bytes -= size_bytes

    def _make_room(self) -> None:
        while self.size_bytes > self._max_bytes and self._responses:
            if self._unpacked_bytes > self._max_bytes // _UNPACKED_SHARE:
                response = self._responses[next(iter(self._unpacked))]
                response.pack()
                if response.is_packed:
                    self._count(response)
                    continue
                oldest = response.key  # too long to be packed
                del self._responses[oldest]
            else:
                oldest, _ = self._responses.popitem(last=False)
            self._uncount(oldest)


def _url_key(path: str, query: bytes) -> tuple[str, bytes]:
    if len(path) + len(query) <= _MAX_PLAIN_URL_BYTES:
        return path, query
    return "", digest(path.encode(), query)


def _url_size_bytes(url: tuple[str, bytes]) -> int:
    return _URL_OVERHEAD_BYTES + len(url[0]) + len(url[1])
