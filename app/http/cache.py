"""Answers that are kept as bytes: bounded by their size, the one that was not asked for the longest goes first."""

import gzip
import hashlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard
from starlette.types import Message

MIN_ENCODED_BYTES = 512
"""Answers of fewer bytes are sent as they are: their headers outweigh what an encoding would save."""

_ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": lambda body: zstandard.ZstdCompressor(level=3).compress(body),
    "gzip": lambda body: gzip.compress(body, compresslevel=6, mtime=0),
}
"""By preference. Levels: where a page of 50 rows takes a quarter of a millisecond at most (docs/performance.md)."""

ENCODINGS = tuple(_ENCODERS)


def encode(body: bytes, encoding: str) -> bytes:
    """Make the bytes of an encoding that `wanted` gave."""
    return _ENCODERS[encoding](body)


@lru_cache(maxsize=256)
def preferred_encoding(accept_encoding: bytes) -> str | None:
    """The encoding to send for an Accept-Encoding header (RFC 9110, section 12.5.3); None is the bytes as they are."""
    weights = dict(_weights(accept_encoding.decode("latin-1").lower()))
    anything = weights.get("*", 0.0)
    best = max(_ENCODERS, key=lambda name: weights.get(name, anything))
    return best if weights.get(best, anything) > 0 else None


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


Header = tuple[bytes, bytes]
Headers = list[Header]
_RESPONSE_OVERHEAD_BYTES = 1_700
"""What an answer takes besides its body: objects, names of headers, the digest of its question; measured."""


NO_CACHE = (b"cache-control", b"no-cache")
"""A copy may be kept, and is used only after the service confirmed it: a 304 costs next to nothing."""
VARY = (b"vary", b"accept-encoding, origin")
NOSNIFF = (b"x-content-type-options", b"nosniff")


def cache_control_header(seconds: int) -> Header:
    """How long a copy may be used before the service is asked again; zero: not at all."""
    return (b"cache-control", b"public, max-age=%d" % seconds) if seconds else NO_CACHE


def validator_headers(etag: bytes, cache_control: Header) -> Headers:
    """The headers by which a copy is kept and recognised."""
    return [(b"etag", etag), cache_control, VARY]


class EncodedVariant(NamedTuple):
    """An answer in one encoding: its headers, but for those of the moment, and the message with its bytes."""

    headers: Headers
    body: Message


@dataclass(slots=True)
class CachedResponse:
    """A whole answer: its bytes in every encoding that was asked for so far, with the headers of each."""

    key: bytes
    etag: bytes
    cache_control: Header
    headers: Headers
    body: bytes
    created_at: float
    variants: dict[str | None, EncodedVariant] = field(default_factory=dict)

    def variant(self, encoding: str | None) -> EncodedVariant:
        """The form in an encoding that `wanted` gave; made at the first time it is asked for."""
        known = self.variants.get(encoding)
        if known is None:
            small = encoding is not None and len(self.body) < MIN_ENCODED_BYTES
            known = self.variants[encoding] = self.variant(None) if small else self._encode(encoding)
        return known

    def _encode(self, encoding: str | None) -> EncodedVariant:
        body = encode(self.body, encoding) if encoding else self.body
        length = (b"content-length", str(len(body)).encode())
        named = [(b"content-encoding", encoding.encode())] if encoding else []
        return EncodedVariant([*self.headers, length, *named], {"type": "http.response.body", "body": body})

    @property
    def size_bytes(self) -> int:
        """How many bytes it takes up, all forms together."""
        made = (form.body["body"] for form in self.variants.values())
        told = sum(len(value) for _, value in self.headers)
        return (
            len(self.body) + _RESPONSE_OVERHEAD_BYTES + told + sum(len(body) for body in made if body is not self.body)
        )


_URL_OVERHEAD_BYTES = 450
"""What a URL that is remembered takes besides its own bytes: objects, and the key of its question; rounded up."""

_MAX_PLAIN_URL_BYTES = 200
"""A URL of more bytes is remembered by a digest: to make one would cost the others more than it saves."""

_URL_SHARE = 4
"""URLs take at most this part of the room, so that they never drive out the answers."""


def digest(*parts: bytes) -> bytes:
    """What stands for something long: 16 bytes, the same in every worker."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


class ResponseCache:
    """The answers of one revision by the digests of their questions, and which URL asks which; both share one bound."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._responses: OrderedDict[bytes, CachedResponse] = OrderedDict()
        self._sizes: dict[bytes, int] = {}
        self._urls: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._url_bytes = self._response_bytes = 0

    def __len__(self) -> int:
        return len(self._responses)

    @property
    def size_bytes(self) -> int:
        """How many bytes all of it takes up."""
        return self._response_bytes + self._url_bytes

    def clear(self) -> None:
        """Forget every answer; which URL asks what stays known."""
        self._responses.clear()
        self._sizes.clear()
        self._response_bytes = 0

    def find_key(self, path: str, query: bytes) -> bytes | None:
        """The question that a URL was found to ask."""
        return self._urls.get(
            (path, query) if len(path) + len(query) <= _MAX_PLAIN_URL_BYTES else _digested_url(path, query)
        )

    def remember_url(self, path: str, query: bytes, key: bytes) -> None:
        """Remember what a URL asks; those that were learnt first make room."""
        url = (path, query) if len(path) + len(query) <= _MAX_PLAIN_URL_BYTES else _digested_url(path, query)
        if url not in self._urls:
            self._url_bytes += _url_size_bytes(url)
        self._urls[url] = key
        while self._url_bytes > self._max_bytes // _URL_SHARE:
            first, _ = self._urls.popitem(last=False)
            self._url_bytes -= _url_size_bytes(first)
        self._evict()

    def get(self, key: bytes) -> CachedResponse | None:
        """The answer to a question, which is then the last to go."""
        response = self._responses.get(key)
        if response is not None:
            self._responses.move_to_end(key)
        return response

    def put(self, response: CachedResponse) -> None:
        """Store a response; evict the least recently used ones that no longer fit."""
        self._responses[response.key] = response
        self.recount(response)

    def recount(self, response: CachedResponse) -> None:
        """Count a response again that gained a variant, if it is still stored."""
        if self._responses.get(response.key) is response:
            size_bytes = response.size_bytes
            self._response_bytes += size_bytes - self._sizes.get(response.key, 0)
            self._sizes[response.key] = size_bytes
            self._evict()

    def _evict(self) -> None:
        while self.size_bytes > self._max_bytes and self._responses:
            oldest, _ = self._responses.popitem(last=False)
            self._response_bytes -= self._sizes.pop(oldest)


def _digested_url(path: str, query: bytes) -> tuple[str, bytes]:
    return "", digest(path.encode(), query)


def _url_size_bytes(url: tuple[str, bytes]) -> int:
    return _URL_OVERHEAD_BYTES + len(url[0]) + len(url[1])
