"""The outermost room of the API: whole answers are kept as bytes and given again, without asking anybody.

A pure ASGI application around the app. Equal questions share an answer; concurrent misses of one question run it once;
errors are never kept; a new revision empties the shelf.
"""

import asyncio
import hashlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from fastapi import FastAPI
from sqlalchemy.exc import DBAPIError
from starlette.types import Message, Receive

from app.errors import VmsizesError
from app.http.boundary import MAX_HEADER_BYTES, MAX_URL_BYTES, CommonHeadersMiddleware, reject_oversized
from app.http.cache import (
    NO_CACHE,
    NOSNIFF,
    VARY,
    CachedResponse,
    Header,
    Headers,
    ResponseCache,
    cache_control_header,
    digest,
    preferred_encoding,
    validator_headers,
)
from app.http.canonical import (
    CanonicalRequest,
    Endpoint,
    RawRequest,
    canonicalize,
    first_path_segment,
    link_header,
    next_cursor,
)
from app.http.headers import (
    REQUEST_ID,
    RequestHeaders,
    etag_matches,
    if_match_holds,
    is_json,
    parse_headers,
    read_body,
    resolve_request_id,
    with_cors,
)
from app.http.revision import RevisionWatcher
from app.http.streaming import ETAG_KEY, with_validators

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Callable[[Message], Awaitable[None]]], Awaitable[None]]

_log = logging.getLogger(__name__)

CANONICAL_KEY = "vmsizes.canonical_request"
"""Where the question that a request was found to mean stands in its scope."""

_JSON = (b"content-type", b"application/json")
_DROPPED_HEADERS = {b"accept-encoding", b"if-none-match"}


@dataclass(frozen=True, slots=True)
class Rendered:
    """A whole answer with status 200."""

    headers: Headers
    body: bytes


async def render(app: App, scope: Scope, receive: Receive) -> Rendered | list[Message]:
    """Make the answer to a question; what is no whole answer is given as the messages of the app."""
    found: CanonicalRequest | None = scope.get(CANONICAL_KEY)
    made = await _try_fast_path(found) if found is not None else None
    if made is not None and found is not None:
        return _select_fields(made, found)
    start, *rest = messages = await _run_app(app, scope, receive)
    if start["status"] != 200:  # noqa: PLR2004  # only a whole answer is kept
        return messages
    headers = [(name, value) for name, value in start["headers"] if name == b"content-type"]
    whole = Rendered(headers, b"".join(message.get("body", b"") for message in rest))
    return _select_fields(whole, found) if found is not None else whole


def _select_fields(made: Rendered, found: CanonicalRequest) -> Rendered:
    """Keep of each item of a list the fields that are asked for, in their order."""
    fields: Sequence[str] = getattr(found.params, "fields", ())
    if not fields or not found.endpoint.columns:
        return made
    page = orjson.loads(made.body)
    page["items"] = [{name: item[name] for name in fields if name in item} for item in page["items"]]
    return Rendered(made.headers, orjson.dumps(page))


async def _try_fast_path(found: CanonicalRequest) -> Rendered | None:
    """Answer without the framework; None where there is no such way, or where the app has to say what is wrong."""
    if found.endpoint.fast_path is None:
        return None
    try:
        return Rendered([_JSON], (await found.endpoint.fast_path(found.params)).encode())
    except (VmsizesError, DBAPIError):
        return None
    except Exception:  # noqa: BLE001  # logged with its traceback; the app answers, or says 500
        _log.exception("fast path failed for %s; falling back to the app", found.path)
        return None


async def _run_app(app: App, scope: Scope, receive: Receive) -> list[Message]:
    messages: list[Message] = []
    posted = scope["method"] == "POST"
    headers = [(name, value) for name, value in scope["headers"] if name not in _DROPPED_HEADERS]
    plain = {**scope, "method": "POST" if posted else "GET", "headers": headers}

    async def record(message: Message) -> None:
        messages.append(message)

    await app(plain, receive if posted else _empty_body, record)
    return messages


async def _empty_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


STARTS_PER_ITERATION = 8
"""So many requests begin in one iteration: at a millisecond each, others wait for these eight and not for all."""


class LoopPacer:
    """Lets a bounded number of requests begin in each iteration of the event loop, in the order in which they came."""

    def __init__(self, per_iteration: int = STARTS_PER_ITERATION) -> None:
        self._per_iteration = per_iteration
        self._started = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once where this iteration has room, else in a later one."""
        loop = asyncio.get_running_loop()
        if self._started == 0:
            loop.call_soon(self._next_iteration, loop)
        if self._started < self._per_iteration:
            self._started += 1
            return
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        self._started = 0
        while self._waiting and self._started < self._per_iteration:
            following = self._waiting.popleft()
            if not following.done():  # its client may have gone away meanwhile
                following.set_result(None)
                self._started += 1
        if self._started:
            loop.call_soon(self._next_iteration, loop)


Send = Callable[[Message], Awaitable[None]]


class CacheMiddleware:
    """Serves an app, and keeps its answers; `hits` and `misses` count how often that helped.

    With room for no bytes every question is asked anew. Copies elsewhere may be used for `max_age_seconds` without
    asking, but for pages that have a next one: their cursors end with the revision.
    """

    def __init__(
        self,
        app: FastAPI,
        endpoints: list[Endpoint],
        watcher: RevisionWatcher,
        *,
        max_bytes: int,
        public_url: str = "",
        max_age_seconds: int = 0,
    ) -> None:
        self.app, self._endpoints, self._enabled, self._public_url = app, endpoints, max_bytes > 0, public_url
        self._inner = CommonHeadersMiddleware(app, public_url)
        self._cache_control = cache_control_header(max_age_seconds)
        self._oversized = with_cors(CommonHeadersMiddleware(reject_oversized, public_url))
        self._handle_with_cors = with_cors(self._handle)
        self._watcher, self._cache = watcher, ResponseCache(max_bytes)
        self._pacer = LoopPacer()
        self._first_segments = {endpoint.first_segment for endpoint in endpoints}
        self._generation: str | None = None
        self._in_flight: dict[
            bytes, asyncio.Task[CachedResponse | list[Message]]
        ] = {}  # by ETag: a revision has runs of its own
        self.hits = self.misses = 0

    @property
    def cached_responses(self) -> int:
        """How many answers are kept."""
        return len(self._cache)

    @property
    def cached_bytes(self) -> int:
        """How many bytes they take up, with the URLs that are remembered."""
        return self._cache.size_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the shelf, else by the app."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        says = scope[_HEADERS_KEY] = parse_headers(scope["headers"])
        if says.total_bytes > MAX_HEADER_BYTES or len(scope["path"]) + len(scope["query_string"]) > MAX_URL_BYTES:
            await self._oversized(scope, receive, send)
            return
        kept = self._lookup_url(scope) if not says.origin else None
        if kept is not None:
            await self._send_cached(*kept, says, scope, send)
        elif says.origin:
            await self._handle_with_cors(scope, receive, send)
        else:
            await self._handle(scope, receive, send)

    def _lookup_url(self, scope: Scope) -> tuple[bytes, CachedResponse] | None:
        """The answer to a URL that was asked before, where nothing has to be looked at first."""
        if scope["method"] != "GET" or not self._watcher.is_fresh or self._watcher.generation != self._generation:
            return None
        asked = self._cache.find_key(scope["path"], scope["query_string"])
        answer = self._cache.get(asked) if asked is not None else None
        return (asked, answer) if asked is not None and answer is not None else None

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out what is asked, and answer it by what is kept, or by the app."""
        says: RequestHeaders = scope[_HEADERS_KEY]
        # What is not of the contract does not wait until the revision was looked at: probes, above all.
        method = _METHODS.get(scope["method"]) if first_path_segment(scope["path"]) in self._first_segments else None
        body: bytes | None = b""
        if method == "POST":
            body, receive = (
                await read_body(receive) if is_json(says.content_type.decode("latin-1")) else (None, receive)
            )
        asked, answer = None, None
        if method is not None and body is not None:
            asked, answer = await self._lookup(method, scope, body)
        if asked is not None and answer is not None:
            await self._send_cached(asked, answer, says, scope, send)
            return
        scope[REQUEST_ID] = resolve_request_id(says.request_id)
        says = says._replace(request_id=scope[REQUEST_ID])
        found: CanonicalRequest | None = scope.get(CANONICAL_KEY)
        if asked is None:
            await self._inner(scope, receive, send)
        elif found is not None and found.endpoint.streams:
            await self._send_stream(asked, says, scope, receive, send)
        else:
            await self._send_fresh(asked, says, scope, receive, send)

    async def _send_cached(
        self, asked: bytes, answer: CachedResponse, says: RequestHeaders, scope: Scope, send: Send
    ) -> None:
        """Give an answer that is kept, or say that the client's copy of it still holds."""
        if (
            says.if_none_match
            and scope["method"] != "POST"
            and etag_matches(says.if_none_match, answer.etag, exists=True)
        ):
            await self._send_not_modified(answer.etag, answer.cache_control, says, send)
            return
        self.hits += 1
        encoding = preferred_encoding(says.accept_encoding)
        form = answer.variants.get(encoding)
        if form is None:
            form = answer.variant(encoding)
            self._cache.put(asked, answer)  # it may have taken up more room
        told = (b"cache-status", b'vmsizes; hit; detail="age %d s"' % (time.monotonic() - answer.created_at))
        headers = [*form.headers, (b"x-request-id", resolve_request_id(says.request_id)), told]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(form.body if scope["method"] != "HEAD" else _NO_BODY)

    async def _send_not_modified(self, etag: bytes, lasts: Header, says: RequestHeaders, send: Send) -> None:
        headers = [*validator_headers(etag, lasts), (b"x-request-id", resolve_request_id(says.request_id))]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send(_NO_BODY)

    async def _send_stream(
        self, asked: bytes, says: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Confirm a client's copy of an answer that is never kept, or have it made and mark it.

        The mark of a file is strong. A condition that it does not meet is refused by who makes the file.
        """
        etag, found = self._etag(asked), scope[CANONICAL_KEY]
        if found.endpoint.is_file:
            etag = etag.removeprefix(b"W/")
        refused = found.endpoint.is_file and not if_match_holds(says.if_match, etag)
        if says.if_none_match and not refused and etag_matches(says.if_none_match, etag, exists=True):
            await self._send_not_modified(etag, self._cache_control, says, send)
            return
        scope[ETAG_KEY] = etag.decode()
        await self._inner(
            scope, receive, with_validators(send, etag, self._cache_control, preferred_encoding(says.accept_encoding))
        )

    async def _send_fresh(self, asked: bytes, says: RequestHeaders, scope: Scope, receive: Receive, send: Send) -> None:
        """Confirm a client's copy, which needs no answer, or have the answer made."""
        etag, copies = self._etag(asked), bool(says.if_none_match) and scope["method"] != "POST"
        if copies and etag_matches(says.if_none_match, etag, exists=False):
            await self._send_not_modified(etag, NO_CACHE, says, send)  # whether a page follows is not known here
            return
        self.misses += 1
        made = await (self._single_flight if self._enabled else self._render_and_store)(asked, etag, scope, receive)
        if not isinstance(made, CachedResponse):
            for message in made:
                await send(message)
        elif copies and etag_matches(says.if_none_match, etag, exists=True):
            await self._send_not_modified(etag, made.cache_control, says, send)
        else:
            form = made.variant(preferred_encoding(says.accept_encoding))
            headers = [*form.headers, (b"x-request-id", says.request_id), _MISS if self._enabled else _BYPASS]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(form.body if scope["method"] != "HEAD" else _NO_BODY)

    async def _lookup(self, method: str, scope: Scope, body: bytes) -> tuple[bytes | None, CachedResponse | None]:
        """The question of a request whose answer may be kept, and the answer if it is."""
        stamp = (await self._watcher.refresh()).generation
        if stamp != self._generation:
            self._generation = stamp
            self._cache.clear()
        if stamp is None:
            return None, None
        url = scope["path"], scope["query_string"] if method == "GET" else digest(scope["query_string"], body)
        asked = self._cache.find_key(*url)
        answer = self._cache.get(asked) if asked is not None else None
        if answer is None:
            await self._pacer.wait()
            found = canonicalize(RawRequest(method, scope["path"], scope["query_string"], body), self._endpoints)
            if found is None:
                return None, None
            asked, scope[CANONICAL_KEY] = digest(found.key_text.encode()), found
            self._cache.remember_url(*url, asked)
            answer = self._cache.get(asked)
        return asked, answer

    def _etag(self, asked: bytes) -> bytes:
        """Equal in every worker, so that a client's copy can be confirmed without asking the database."""
        mark = hashlib.blake2s(f"{self._generation} ".encode() + asked, digest_size=12).hexdigest()
        return f'W/"{mark}"'.encode()

    async def _single_flight(
        self, asked: bytes, etag: bytes, scope: Scope, receive: Receive
    ) -> CachedResponse | list[Message]:
        """Run a question once, however many ask it at the same time, and whoever of them stays.

        An error is the answer to one request, whose id it names: the others ask for themselves.
        """
        running = self._in_flight.get(etag)
        if running is not None:
            made = await asyncio.shield(running)
            return (
                made if isinstance(made, CachedResponse) else await self._render_and_store(asked, etag, scope, receive)
            )
        running = self._in_flight[etag] = asyncio.create_task(self._render_and_store(asked, etag, scope, receive))
        running.add_done_callback(lambda _: self._in_flight.pop(etag, None))
        return await asyncio.shield(running)

    async def _render_and_store(
        self, asked: bytes, etag: bytes, scope: Scope, receive: Receive
    ) -> CachedResponse | list[Message]:
        stamp, found = self._generation, scope.get(CANONICAL_KEY)
        made = await render(self._inner, scope, receive)
        if not isinstance(made, Rendered):
            return made
        lasts = NO_CACHE if next_cursor(made.body) else self._cache_control
        marked: Headers = [VARY] if scope["method"] == "POST" else validator_headers(etag, lasts)
        where = (b"link", link_header(self._public_url, found, made.body))
        headers = [*made.headers, *marked, NOSNIFF, where]
        answer = CachedResponse(
            etag=etag, cache_control=lasts, headers=headers, body=made.body, created_at=time.monotonic()
        )
        if stamp == self._generation and self._enabled:
            self._cache.put(asked, answer)
        return answer


_MISS = (b"cache-status", b"vmsizes; fwd=miss; stored")
_BYPASS = (b"cache-status", b"vmsizes; fwd=bypass")
_NO_BODY: Message = {"type": "http.response.body", "body": b""}
_HEADERS_KEY = "vmsizes.headers"
"""Where the values of the headers stand in a request's scope."""
_METHODS = {"GET": "GET", "HEAD": "GET", "POST": "POST"}
"""What a method asks as: HEAD is a GET without the body of its answer."""
