"""Answers that are kept as bytes: bounded by their size, the one that was not asked for the longest goes first."""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from app.api.door.bodies import Message
from app.api.door.encodings import SMALLEST, encode, wanted

Header = tuple[bytes, bytes]
Headers = list[Header]
_OVERHEAD = 1_700
"""What an answer takes besides its body: objects, headers and its question, bytes; measured, rounded up."""


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
    accepted: dict[bytes, Form] = field(default_factory=dict)

    def form(self, accepts: bytes) -> Form:
        """The form for an Accept-Encoding header; made at the first time it is asked for."""
        known = self.accepted.get(accepts)
        if known is None:
            encoding = wanted(accepts) if len(self.body) >= SMALLEST else None
            known = self.forms[encoding] = self.forms.get(encoding) or self._make(encoding)
            if len(self.accepted) < _MOST_WAYS:
                self.accepted[accepts] = known
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
        return len(self.body) + _OVERHEAD + sum(len(body) for body in made if body is not self.body)


_MOST_WAYS = 16
"""So many spellings of Accept-Encoding are remembered with an answer; browsers and libraries share a handful."""


class Shelf:
    """The answers of one revision by question, and the questions by URL; both bounded."""

    def __init__(self, most_bytes: int, most_urls: int = 20_000) -> None:
        self._most_bytes, self._most_urls = most_bytes, most_urls
        self._answers: OrderedDict[str, Answer] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._urls: OrderedDict[tuple[str, bytes], str] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._answers)

    def clear(self) -> None:
        """Forget every answer; which URL asks what stays known."""
        self._answers.clear()
        self._sizes.clear()
        self.bytes = 0

    def question(self, url: tuple[str, bytes]) -> str | None:
        """The question that a URL was found to ask."""
        return self._urls.get(url)

    def learn(self, url: tuple[str, bytes], question: str) -> None:
        """Remember what a URL asks."""
        self._urls[url] = question
        if len(self._urls) > self._most_urls:
            self._urls.popitem(last=False)

    def get(self, question: str) -> Answer | None:
        """The answer to a question, which is then the last to go."""
        answer = self._answers.get(question)
        if answer is not None:
            self._answers.move_to_end(question)
        return answer

    def put(self, question: str, answer: Answer) -> None:
        """Keep an answer, or count it anew after it took another form; the oldest make room."""
        self.bytes += answer.size - self._sizes.get(question, 0)
        self._answers[question], self._sizes[question] = answer, answer.size
        while self.bytes > self._most_bytes and self._answers:
            oldest, _ = self._answers.popitem(last=False)
            self.bytes -= self._sizes.pop(oldest)
