"""Response cache: complete responses by request key, bounded by bytes, least recently used first out.

Also here: content encodings, and the headers by which clients keep and revalidate a copy.
"""

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard

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
    """The body of a response in one encoding; `lines` are its headers as bytes, once a server has sent them so."""

    encoding: str | None
    body: bytes
    lines: bytes = b""


@lru_cache(maxsize=256)
def shared(headers: tuple[Header, ...]) -> tuple[Header, ...]:
    """Return one object for equal headers: nearly all responses have one of a few sets."""
    return headers


@dataclass(slots=True)
class CachedResponse:
    """A complete response, with a variant for each encoding that was requested so far.

    `etag` is empty where none is sent; `link` is the value of Link; `headers` are the others, best `shared`. A packed
    response has no `body`, but one encoded variant, which takes a tenth to a twentieth of the memory. `series` is where
    `RequestObserver` counts it. `urls` and `counted_bytes` belong to the cache that keeps it.
    """

    key: bytes
    etag: bytes
    cache_control: Header
    headers: tuple[Header, ...]
    body: bytes | None
    created_at: float
    link: bytes = b""
    series: int = 0
    length: int = 0
    variants: tuple[EncodedVariant, ...] = ()
    urls: tuple[bytes, ...] = ()
    counted_bytes: int = 0

    def __post_init__(self) -> None:
        self.length = len(self.body or b"")

    @property
    def is_packed(self) -> bool:
        """Return whether packing would save nothing: the body is kept in one encoding alone, or is short."""
        return self.body is None or self.length < MIN_ENCODED_BYTES

    def find_variant(self, encoding: str | None) -> EncodedVariant | None:
        """Return the variant in an encoding that `preferred_encoding` gave, if it was requested before."""
        if self.length < MIN_ENCODED_BYTES:
            encoding = None
        for variant in self.variants:
            if variant.encoding == encoding:
                return variant
        return None

    def variant(self, encoding: str | None) -> EncodedVariant:
        """Return the variant in an encoding that `preferred_encoding` gave, encoding it on first use."""
        variant = self.find_variant(encoding)
        if variant is None:
            encoding = encoding if self.length >= MIN_ENCODED_BYTES else None
            variant = EncodedVariant(encoding, self._encode(encoding))
            self.variants = (*self.variants, variant)
        return variant

    def pack(self) -> None:
        """Keep the body in one encoding alone: one that clients accept if any was requested."""
        if self.is_packed or self.length > MAX_INLINE_BYTES:
            return
        requested = {variant.encoding for variant in self.variants}
        encoding = next((name for name in _ENCODERS if name in requested), _PACKED_ENCODING)
        self.variants = (EncodedVariant(encoding, self.variant(encoding).body),)
        self.body = None

    def headers_of(self, variant: EncodedVariant) -> Headers:
        """Return the headers with which a variant is sent."""
        headers = [*self.headers, (b"link", self.link), (b"content-length", b"%d" % len(variant.body))]
        if self.etag:
            headers.append((b"etag", self.etag))
        if variant.encoding:
            headers.append((b"content-encoding", variant.encoding.encode()))
        return headers

    def _encode(self, encoding: str | None) -> bytes:
        if self.body is None:
            (packed,) = self.variants
            self.body = _DECODERS[packed.encoding or ""](packed.body)
        return encode(self.body, encoding) if encoding else self.body

    @property
    def size_bytes(self) -> int:
        """The memory that all variants and URLs take together."""
        size = _RESPONSE_OVERHEAD_BYTES + len(self.link) + len(self.body or b"")
        for variant in self.variants:
            size += len(variant.lines) + (len(variant.body) if variant.body is not self.body else 0)
        for url in self.urls:
            size += _URL_OVERHEAD_BYTES + len(url)
        return size


_RESPONSE_OVERHEAD_BYTES = 600
"""What a response takes besides its body: objects, its key and ETag, its place in a mapping; measured."""

_URL_OVERHEAD_BYTES = 100
"""What a URL takes besides its own bytes: an object, its places in a mapping and in a tuple; measured."""

_MAX_PLAIN_URL_BYTES = 200
"""Longer URLs are kept as a digest; for shorter ones it would take more time than it saves memory."""

_MAX_URLS = 8
"""How many spellings of a request lead straight to its response; others find it by its key."""

_UNPACKED_SHARE = 4
"""The least share of the cache that unpacked responses keep, as a divisor; they take all of it while there is room."""


class ResponseCache:
    """Responses of one generation of the catalog, by the key of their request and by the URLs that ask for it.

    To make room the least recently used responses are packed; once only a share of the cache is not, they are evicted,
    and their URLs with them.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._unpacked: OrderedDict[bytes, None] = OrderedDict()
        self._by_url: dict[bytes, CachedResponse] = {}
        self._response_bytes = self._unpacked_bytes = 0

    def __len__(self) -> int:
        return len(self._responses)

    @property
    def size_bytes(self) -> int:
        """The memory that responses and their URLs take."""
        return self._response_bytes

    def clear(self) -> None:
        """Remove every response."""
        self._responses.clear()
        self._unpacked.clear()
        self._by_url.clear()
        self._response_bytes = self._unpacked_bytes = 0

    def find(self, path: str, query: bytes) -> CachedResponse | None:
        """Return the response to a URL that was remembered, which then becomes the most recently used."""
        response = self._by_url.get(_url_key(path, query))
        if response is not None:
            self._use(response.key)
        return response

    def get(self, key: bytes) -> CachedResponse | None:
        """Return the response to a request, which then becomes the most recently used."""
        response = self._responses.get(key)
        if response is not None:
            self._use(key)
        return response

    def put(self, response: CachedResponse) -> None:
        """Store a response, and make room for it."""
        self._remove(response.key)
        self._responses[response.key] = response
        self.recount(response)

    def remember_url(self, path: str, query: bytes, response: CachedResponse) -> None:
        """Find a response, if it is stored, by one more URL; that which was remembered first makes room."""
        url = _url_key(path, query)
        if url in self._by_url or self._responses.get(response.key) is not response:
            return
        self._by_url[url] = response
        response.urls = (*response.urls, url)
        if len(response.urls) > _MAX_URLS:
            first, *_ = response.urls
            del self._by_url[first]
            response.urls = response.urls[1:]
        self.recount(response)

    def recount(self, response: CachedResponse) -> None:
        """Count a response again that gained a variant, if it is still stored."""
        if self._responses.get(response.key) is response:
            self._count(response)
            self._make_room()

    def _use(self, key: bytes) -> None:
        self._responses.move_to_end(key)
        if key in self._unpacked:
            self._unpacked.move_to_end(key)

    def _count(self, response: CachedResponse) -> None:
        self._uncount(response)
        response.counted_bytes = response.size_bytes
        self._response_bytes += response.counted_bytes
        if not response.is_packed:
            self._unpacked[response.key] = None
            self._unpacked_bytes += response.counted_bytes

    def _uncount(self, response: CachedResponse) -> None:
        self._response_bytes -= response.counted_bytes
        if response.key in self._unpacked:
            del self._unpacked[response.key]
            self._unpacked_bytes -= response.counted_bytes
        response.counted_bytes = 0

    def _remove(self, key: bytes) -> None:
        response = self._responses.pop(key, None)
        if response is not None:
            self._uncount(response)
            for url in response.urls:
                del self._by_url[url]
            response.urls = ()

    def _make_room(self) -> None:
        while self._response_bytes > self._max_bytes and self._responses:
            if self._unpacked_bytes <= self._max_bytes // _UNPACKED_SHARE:
                self._remove(next(iter(self._responses)))
                continue
            response = self._responses[next(iter(self._unpacked))]
            response.pack()
            if response.is_packed:
                self._count(response)
            else:  # too long to be packed
                self._remove(response.key)


def _url_key(path: str, query: bytes) -> bytes:
    """Return a URL as one object; no server lets a NUL into the query of a request, so the parts are told apart."""
    if len(path) + len(query) <= _MAX_PLAIN_URL_BYTES:
        return b"%s\0%s" % (path.encode(), query)
    return digest(path.encode(), query)
