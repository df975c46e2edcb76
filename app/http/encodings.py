"""The encodings an answer is sent in: which one a client wants, and how the bytes are made, once."""

import gzip
from collections.abc import Callable
from functools import lru_cache

import brotli  # type: ignore[import-untyped]  # has no type information
import zstandard

SMALLEST = 512
"""Answers of fewer bytes are sent as they are: their headers outweigh what an encoding would save."""

_MAKE: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=5)),
    "zstd": lambda body: zstandard.ZstdCompressor(level=3).compress(body),
    "gzip": lambda body: gzip.compress(body, compresslevel=6, mtime=0),
}
"""By preference. Levels: where a page of 50 rows takes a quarter of a millisecond at most (docs/performance.md)."""

ENCODINGS = tuple(_MAKE)


def encode(body: bytes, encoding: str) -> bytes:
    """Make the bytes of an encoding that `wanted` gave."""
    return _MAKE[encoding](body)


@lru_cache(maxsize=256)
def wanted(accept_encoding: bytes) -> str | None:
    """The encoding to send for an Accept-Encoding header (RFC 9110, section 12.5.3); None is the bytes as they are."""
    weights = dict(_weights(accept_encoding.decode("latin-1").lower()))
    anything = weights.get("*", 0.0)
    best = max(_MAKE, key=lambda name: weights.get(name, anything))
    return best if weights.get(best, anything) > 0 else None


def _weights(header: str) -> list[tuple[str, float]]:
    found = []
    for part in filter(None, map(str.strip, header.split(","))):
        name, _, parameter = part.partition(";")
        _, _, weight = parameter.partition("q=")
        try:
            found.append((name.strip(), float(weight) if weight else 1.0))
        except ValueError:
            continue
    return found
