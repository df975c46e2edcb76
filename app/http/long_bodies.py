"""Long bodies of POST /fit and POST /estimate, which may hold a `config.json` of megabytes.

They are parsed in a thread by a scanner in Python: one in C would block the event loop for as long as it reads a list.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from json.decoder import scanstring  # type: ignore[attr-defined]  # typeshed lacks it, as the next
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # typeshed lacks it
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from app.errors import Busy
from app.http.canonical import JsonChecker, reject_duplicate_keys
from app.http.headers import MAX_BODY_BYTES, MAX_CACHED_BODY_BYTES, is_json

MAX_LONG_BODY_BYTES = 8 * 1024 * 1024
"""The limit of a body that may hold a `config.json`; that of MiniMax-M3-NVFP4 has 3.1 MB."""

MAX_LONG_BODIES = 4
"""How many bodies of more than MAX_BODY_BYTES a worker holds at once."""

MAX_JSON_VALUES = 250_000
"""The limit of values in a body, counted by what separates them and by what is escaped in strings: the longest lists of
released models have 50,000. Parsing takes up to 1 us and 100 bytes for each."""

MAX_TEXT_CHARACTERS = MAX_BODY_BYTES
"""The limit of a text or a key; a header of a checkpoint may have a history of its training."""

MAX_DIGITS = 1_000
"""A body with as many digits in a whole block is refused: to match a number of megabytes blocks the event loop."""

PATHS = frozenset({"/fit", "/estimate"})
_OTHER_TYPES = ("/ui/", "/mcp")
"""What the paths of forms begin with, and the path whose own checks answer in the form of its protocol."""


def require_json(content_type: str) -> None:
    """Raise 415 for a body of another type than JSON."""
    if not is_json(content_type):
        accepted = "application/json"
        detail = f"Content-Type says {content_type or 'nothing'}; send {accepted}."
        raise HTTPException(415, detail, {"Accept-Post": accepted})


class LimitedBody:
    """The body of a request; it has to be closed when the request ends.

    Reading it raises 413 for one that is too long, at once by Content-Length, else when it is received; Busy where
    MAX_LONG_BODIES are there; 415 for one that is compressed (RFC 9110, section 15.5.16) or of another type than its
    path takes. What the headers tell is raised before anything is read, so that who waits for 100 sends nothing.
    `long_bodies` are those that a worker holds of more than MAX_BODY_BYTES.
    """

    def __init__(self, receive: Receive, scope: Scope, long_bodies: set["LimitedBody"]) -> None:
        sent = dict(scope["headers"])
        content_length = sent.get(b"content-length", b"0")
        self._announced = int(content_length) if content_length.isdigit() else 0
        self._announced = self._announced or int(b"transfer-encoding" in sent)
        self._type = sent.get(b"content-type", b"").decode("latin-1")
        self._takes_json = not scope["path"].startswith(_OTHER_TYPES)
        self._coding = sent.get(b"content-encoding", b"identity").decode("latin-1")
        self._receive, self._long_bodies = receive, long_bodies
        self._max_bytes = MAX_LONG_BODY_BYTES if scope["path"] in PATHS else MAX_BODY_BYTES
        self._received = 0

    async def receive(self) -> Message:
        """Return the next message of the client."""
        self._check(self._announced)
        message = await self._receive()
        self._received += len(message.get("body", b""))
        self._check(self._received)
        return message

    def close(self) -> None:
        """Let another long body take the place of this one."""
        self._long_bodies.discard(self)

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            sent = f"{self._announced:,}" if self._announced > self._max_bytes else "too many"
            detail = f"The body has {sent} bytes; at most {self._max_bytes:,} are allowed."
            raise HTTPException(413, detail + (_SHORTER if self._max_bytes > MAX_BODY_BYTES else ""))
        if size and self._coding.lower() != "identity":
            detail = f"Content-Encoding says {self._coding}; send the body without compression."
            raise HTTPException(415, detail, {"Accept-Encoding": "identity"})
        if size and self._takes_json:
            require_json(self._type)
        if size > MAX_BODY_BYTES and self not in self._long_bodies:
            if len(self._long_bodies) >= MAX_LONG_BODIES:
                raise Busy(
                    f"{MAX_LONG_BODIES} other bodies of more than {MAX_BODY_BYTES:,} bytes are being answered. "
                    "Retry in some seconds."
                )
            self._long_bodies.add(self)


_SHORTER = (
    " Of a config, the list of modules that are not quantized may be cut to those of the language model's layers; "
    "vmsizes estimate --config and vmsizes fit --config read a file of any size."
)


class LongBodyRequest(Request):
    """A request whose body is parsed and checked in a thread if it is long."""

    _invalid: RequestValidationError | None = None

    async def json(self) -> Any:
        """Return the body, parsed once."""
        if len(await self.body()) <= MAX_CACHED_BODY_BYTES:
            return await super().json()
        if not hasattr(self, "_json"):
            self._json = await asyncio.to_thread(self._parse, self._body)
        return self._json

    async def check_keys(self) -> None:
        """Raise what `reject_duplicate_keys` does."""
        body = await self.body()
        if len(body) <= MAX_CACHED_BODY_BYTES:
            reject_duplicate_keys(body)
        elif self._invalid is not None:
            raise self._invalid

    def _parse(self, body: bytes) -> Any:
        if sum(body.count(mark) for mark in (b",", b"[", b"{", b"\\")) > MAX_JSON_VALUES:
            raise HTTPException(413, f"The body has more than {MAX_JSON_VALUES:,} values.{_SHORTER}")
        blocks = range(0, len(body), MAX_DIGITS)
        if any(body[start : start + MAX_DIGITS].isdigit() for start in blocks):
            raise HTTPException(413, f"A number of the body has more than {MAX_DIGITS:,} digits.")
        checker = JsonChecker()

        def to_object(pairs: list[tuple[str, Any]]) -> Any:
            for name, _ in pairs:
                _check_length(name)
            return checker.to_object(pairs)

        decoder = json.JSONDecoder(object_pairs_hook=to_object, parse_constant=checker.to_number)
        decoder.parse_string = _scan_string  # type: ignore[attr-defined]  # typeshed lacks it, as the next
        decoder.scan_once = py_make_scanner(decoder)  # type: ignore[attr-defined]
        whole = decoder.decode(body.decode(json.detect_encoding(body)))
        try:
            checker.check(whole, body)
        except RequestValidationError as error:
            self._invalid = error  # FastAPI would answer 400 if it were raised here
        return whole


def _scan_string(text: str, start: int, strict: bool) -> tuple[str, int]:  # as JSONDecoder calls it
    value, end = scanstring(text, start, strict)
    return _check_length(value), end


def _check_length(text: str) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        raise HTTPException(
            413, f"A name or text of the body has {len(text):,} characters; {MAX_TEXT_CHARACTERS:,} are allowed."
        )
    return text


class LongBodyRoute(APIRoute):
    """The route of an operation whose body may be long."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return FastAPI's handler, which gets a LongBodyRequest."""
        handle = super().get_route_handler()

        async def handle_long_body(request: Request) -> Response:
            return await handle(LongBodyRequest(request.scope, request.receive))

        return handle_long_body
