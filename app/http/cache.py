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


Header = tuple[bytes, bytes]
Headers = list[Header]
_OVERHEAD = 1_700
"""What an answer takes besides its body: objects, names of headers, the digest of its question; measured."""


ASK_FIRST = (b"cache-control", b"no-cache")
"""A copy may be kept, and is used only after the service confirmed it: a 304 costs next to nothing."""
VARY = (b"vary", b"accept-encoding, origin")
NO_SNIFFING = (b"x-content-type-options", b"nosniff")


def lasting(seconds: int) -> Header:
    """How long a copy may be used before the service is asked again; zero: not at all."""
    return (b"cache-control", b"public, max-age=%d" % seconds) if seconds else ASK_FIRST


def marks_of(etag: bytes, lasts: Header) -> Headers:
    """The headers by which a copy is kept and recognised."""
    return [(b"etag", etag), lasts, VARY]


class Form(NamedTuple):
    """An answer in one encoding: its headers, but for those of the moment, and the message with its bytes."""

    headers: Headers
    body: Message


@dataclass(slots=True)
class Answer:
    """A whole answer: its bytes in every encoding that was asked for so far, with the headers of each."""

    etag: bytes
    lasts: Header
    headers: Headers
    body: bytes
    born: float
    forms: dict[str | None, Form] = field(default_factory=dict)

    def form(self, encoding: str | None) -> Form:
        """The form in an encoding that `wanted` gave; made at the first time it is asked for."""
        known = self.forms.get(encoding)
        if known is None:
            small = encoding is not None and len(self.body) < SMALLEST
            known = self.forms[encoding] = self.form(None) if small else self._make(encoding)
        return known

    def _make(self, encoding: str | None) -> Form:
        body = encode(self.body, encoding) if encoding else self.body
        length = (b"content-length", str(len(body)).encode())
        named = [(b"content-encoding", encoding.encode())] if encoding else []
        return Form([*self.headers, length, *named], {"type": "http.response.body", "body": body})

    @property
    def size(self) -> int:
        """How many bytes it takes up, all forms together."""
        made = (form.body["body"] for form in self.forms.values())
        told = sum(len(value) for _, value in self.headers)
        return len(self.body) + _OVERHEAD + told + sum(len(body) for body in made if body is not self.body)


_URL_OVERHEAD = 450
"""What a URL that is remembered takes besides its own bytes: objects, and the key of its question; rounded up."""

_SHORT = 200
"""A URL of more bytes is remembered by a digest: to make one would cost the others more than it saves."""

_URLS = 4
"""URLs take at most this part of the room, so that they never drive out the answers."""


def digest(*parts: bytes) -> bytes:
    """What stands for something long: 16 bytes, the same in every worker."""
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).digest()


class Shelf:
    """The answers of one revision by the digests of their questions, and which URL asks which; both share one bound."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._answers: OrderedDict[bytes, Answer] = OrderedDict()
        self._sizes: dict[bytes, int] = {}
        self._urls: OrderedDict[tuple[str, bytes], bytes] = OrderedDict()
        self._url_bytes = self._answer_bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    @property
    def size(self) -> int:
        """How many bytes all of it takes up."""
        return self._answer_bytes + self._url_bytes

    def clear(self) -> None:
        """Forget every answer; which URL asks what stays known."""
        self._answers.clear()
        self._sizes.clear()
        self._answer_bytes = 0

    def question(self, path: str, query: bytes) -> bytes | None:
        """The question that a URL was found to ask."""
        return self._urls.get((path, query) if len(path) + len(query) <= _SHORT else _by_digest(path, query))

    def learn(self, path: str, query: bytes, question: bytes) -> None:
        """Remember what a URL asks; those that were learnt first make room."""
        url = (path, query) if len(path) + len(query) <= _SHORT else _by_digest(path, query)
        if url not in self._urls:
            self._url_bytes += _size_of(url)
        self._urls[url] = question
        while self._url_bytes > self._most_bytes // _URLS:
            first, _ = self._urls.popitem(last=False)
            self._url_bytes -= _size_of(first)
        self._make_room()

    def get(self, question: bytes) -> Answer | None:
        """The answer to a question, which is then the last to go."""
        answer = self._answers.get(question)
        if answer is not None:
            self._answers.move_to_end(question)
        return answer

    def put(self, question: bytes, answer: Answer) -> None:
        """Keep an answer, or count it anew after it took another form; the oldest make room."""
        self._answer_bytes += answer.size - self._sizes.get(question, 0)
        self._answers[question], self._sizes[question] = answer, answer.size
        self._make_room()

    def _make_room(self) -> None:
        while self.size > self._most_bytes and self._answers:
            oldest, _ = self._answers.popitem(last=False)
            self._answer_bytes -= self._sizes.pop(oldest)


def _by_digest(path: str, query: bytes) -> tuple[str, bytes]:
    return "", digest(path.encode(), query)


def _size_of(url: tuple[str, bytes]) -> int:
    return _URL_OVERHEAD + len(url[0]) + len(url[1])
