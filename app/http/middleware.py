"""ASGI middleware around the FastAPI app: a cache of complete responses.

`CacheMiddleware` is the outermost application. Equal requests share one stored response, concurrent misses of one
request run it once, errors are never stored, and a new catalog revision empties the cache.
"""

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from time import perf_counter

import orjson
from fastapi import FastAPI
from starlette.types import Message, Receive

from app.db.errors import DatabaseError
from app.errors import Busy, VmsizesError
from app.http.cache import (
    ETAG_KEY,
    MAX_INLINE_BYTES,
    NO_CACHE,
    VARY,
    CachedResponse,
    Header,
    Headers,
    ResponseCache,
    preferred_encoding,
    url_key,
    validator_headers,
    with_validators,
)
from app.http.canonical import (
    PARSED,
    CacheableEndpoint,
    CanonicalRequest,
    RawRequest,
    canonicalize,
    contract_link,
    next_cursor,
    next_link,
)
from app.http.common_headers import (
    DATA_HEADERS,
    NO_BODY,
    NO_STORE,
    App,
    CommonHeadersMiddleware,
    ProblemPage,
    Scope,
    Send,
    missing_from,
    reject_oversized,
)
from app.http.headers import (
    HOME,
    MAX_CACHED_BODY_BYTES,
    MAX_HEADER_BYTES,
    MAX_URL_BYTES,
    REQUEST_ID,
    accepts_html,
    client_has,
    if_match_holds,
    is_json,
    parse_headers,
    read_body,
    resolve_request_id,
    with_cors,
)
from app.http.observer import RECORD, RequestObserver, note_problem
from app.http.problems import DOMAIN_PROBLEMS
from app.http.revision import RevisionWatcher
from app.http.runs import ClientGone, LoopPacer, RunTooLong, SharedRuns, TooManyRuns

_log = logging.getLogger(__name__)

RequestHeaders = Mapping[bytes, bytes]

_JSON = (b"content-type", b"application/json")
_HIT = b"vmsizes; hit"
_MISS = (b"cache-status", b"vmsizes; fwd=miss; stored")
_BYPASS = (b"cache-status", b"vmsizes; fwd=bypass")

_CACHED_METHODS = {"GET": "GET", "HEAD": "GET", "POST": "POST"}
"""The method whose response answers a method: HEAD is sent the headers of GET."""

_CLIENT = "vmsizes.client"
"""The key in a request's scope of the connection's own `receive`, where the body is replayed."""

_REFUSED = [(b"content-type", b"application/problem+json"), (b"retry-after", b"5"), NO_STORE]

_KEPT_HEADERS = {
    *(b"content-type", b"content-disposition"),
    *(b"content-security-policy", b"referrer-policy", b"cross-origin-opener-policy"),
}
"""Headers of the app's response that are stored with it."""

_CONDITIONAL_HEADERS = {b"accept-encoding", b"if-none-match"}
"""Headers that this module evaluates; the app must render a full, unencoded response."""


class CacheMiddleware:
    """ASGI response cache: stores complete encoded responses and replays them without calling the app.

    `observer` counts and logs every request. With `max_bytes` 0 nothing is stored. Clients may reuse a response for
    `max_age_seconds` without revalidation, except a page that has a next one: its cursor ends with the revision.
    """

    def __init__(
        self,
        app: FastAPI,
        endpoints: list[CacheableEndpoint],
        watcher: RevisionWatcher,
        observer: RequestObserver,
        *,
        max_bytes: int,
        public_url: str = "",
        max_age_seconds: int = 0,
        security_headers: Headers = DATA_HEADERS,
        problem_page: ProblemPage | None = None,
        max_requests: int = 256,
        request_seconds: float = 30,
    ) -> None:
        self.app, self._endpoints, self._watcher, self._public_url = app, endpoints, watcher, public_url
        self.observer = observer
        self._inner = CommonHeadersMiddleware(app, public_url, security_headers, problem_page)
        self._reject = CommonHeadersMiddleware(reject_oversized, public_url, security_headers, problem_page)
        self._security_headers = security_headers
        self._cache_control = NO_CACHE
        if max_age_seconds:
            self._cache_control = (b"cache-control", b"public, max-age=%d" % max_age_seconds)
        self._first_segments = {endpoint.path.split("/")[1] for endpoint in endpoints}
        self._enabled, self.responses = max_bytes > 0, ResponseCache(max_bytes)
        self._generation: str | None = None
        # By ETag, which differs between generations: a request never joins a run that reads an older revision.
        self._runs = SharedRuns[CachedResponse | list[Message]](max_requests, request_seconds)
        self._pacer = LoopPacer()
        self._paced: Counter[RawRequest] = Counter()  # those that wait to start, equal ones together

    def find_stored(self, scope: Scope, body: bytes | bytearray) -> tuple[int, Headers, bytes] | None:
        """Return what `__call__` would send for a request, and count it, if that is stored in the right encoding.

        The server calls it for each request (app.lifespan). None leaves to `__call__` what waits or is unusual.
        """
        started, method, headers = perf_counter(), scope["method"], parse_headers(scope["headers"])
        if method == "POST":
            is_plain = len(body) <= MAX_CACHED_BODY_BYTES and _sends_json(headers)
        else:
            is_plain = method == "GET" and scope["path"] != HOME
        if not is_plain or b"origin" in headers or sum(map(len, headers.values())) > MAX_HEADER_BYTES:
            return None
        if self._watcher.state.unavailable or not self._watcher.is_fresh:
            return None
        response = self._lookup(url_key(method, scope["path"], scope["query_string"], body))
        if response is None:
            return None
        request_id = scope[REQUEST_ID] = resolve_request_id(headers)
        if response.etag and client_has(response.etag, headers):
            status, content, sent = 304, b"", [*response.validators, (b"x-request-id", request_id)]
        else:
            variant = response.find_variant(preferred_encoding(headers.get(b"accept-encoding", b"")))
            if variant is None:
                return None
            status, content = 200, variant.body
            sent = [*variant.headers, (b"x-request-id", request_id), _hit_status(response.age_seconds)]
        self.observer.count_hit(response.series, started, scope, status)
        return status, sent, content

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stored response, or run the app."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started, path, query = perf_counter(), scope["path"], scope["query_string"]
        headers = parse_headers(scope["headers"])
        scope[REQUEST_ID] = resolve_request_id(headers)
        if headers.get(b"origin"):
            send = with_cors(send)
        if sum(map(len, headers.values())) > MAX_HEADER_BYTES or len(path) + len(query) > MAX_URL_BYTES:
            await self.observer.observe(self._reject, started, scope, receive, send)
            return
        # Probes and the documentation are not cached; they must not wait for the database.
        method = _CACHED_METHODS.get(scope["method"]) if path[1:].partition("/")[0] in self._first_segments else None
        if path == HOME and not accepts_html(headers.get(b"accept", b"")):
            method = None  # the same links for every program, without the database
        body: bytes | None = b""
        if method == "POST":
            scope[_CLIENT] = receive
            body, receive = await read_body(receive) if _may_be_kept(headers) else (None, receive)
        if method is None or body is None:
            answer = self._run_bounded if scope["method"] == "POST" else self._inner
            await self.observer.observe(answer, started, scope, receive, send)
            return
        if not self._watcher.is_fresh:
            await self._watcher.refresh_soon()
        response = self._lookup(url_key(method, path, query, body))
        if response is not None:
            status = await self._send_response(response, headers, scope, send)
            self.observer.count_hit(response.series, started, scope, status)
        else:
            answer = partial(self._handle_miss, RawRequest(method, path, query, body), headers)
            await self.observer.observe(answer, started, scope, receive, send)

    async def _run_bounded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the app for a body whose answer is not kept: a long one, a form, or a call of a tool.

        It counts among the runs, and its time begins, with the end of the body: what is sent slowly takes no place.
        """
        has_begun, loop = False, asyncio.get_running_loop()
        reason: TooManyRuns | RunTooLong = RunTooLong()

        async def receive_in_time() -> Message:
            nonlocal reason
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body"):
                try:
                    place.enter_context(self._runs.count())
                except TooManyRuns as full:
                    reason = full
                    deadline.reschedule(loop.time())
                else:
                    deadline.reschedule(loop.time() + self._runs.max_seconds)
            return message

        async def send_once_begun(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            with ExitStack() as place:
                async with asyncio.timeout(None) as deadline:
                    await self._inner(scope, receive_in_time, send_once_begun)
        except TimeoutError:
            if has_begun or not deadline.expired():
                raise
            await self._refuse(reason, scope, send)

    def _lookup(self, url: bytes) -> CachedResponse | None:
        """Return the response stored for a URL in this spelling; empty the cache if the catalog has changed."""
        generation = self._watcher.state.generation
        if generation != self._generation:
            self._generation = generation
            self.responses.clear()
        return self.responses.find(url)

    async def _handle_miss(
        self, request: RawRequest, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Find out what a request means, and answer it as any other spelling of it would be."""
        canonical = None
        if self._generation is not None:
            if not self._pacer.start_now() and not await self._wait_to_start(request):
                await self._refuse(TooManyRuns(), scope, send)
                return
            canonical = canonicalize(request, self._endpoints)
        if canonical is None:  # no catalog, or an invalid request: the app says what is wrong
            await self._inner(scope, receive, send)
            return
        endpoint, record = canonical.endpoint, scope[RECORD]
        record.route = (endpoint.method, endpoint.path)
        response = self.responses.get(canonical.key)
        if response is not None:
            record.cache = "hit"
            self.responses.remember_url(url_key(*request), response)
            await self._send_response(response, headers, scope, send)
        elif endpoint.streams:
            await self._send_stream(canonical, headers, scope, receive, send)
        else:
            await self._send_fresh(canonical, headers, scope, receive, send)

    async def _wait_to_start(self, request: RawRequest) -> bool:
        """Wait until a later iteration of the event loop starts a request; False if too many wait already."""
        if request not in self._paced and len(self._paced) + len(self._runs) >= self._runs.max_runs:
            return False
        self._paced[request] += 1
        try:
            await self._pacer.wait()
        finally:
            self._paced[request] -= 1
            if not self._paced[request]:
                del self._paced[request]
        return True

    async def _send_response(
        self,
        response: CachedResponse,
        headers: RequestHeaders,
        scope: Scope,
        send: Send,
        cache_status: Header | None = None,
    ) -> int:
        """Send a response, or 304 if the client has it; return the status. `cache_status` is None for a stored one."""
        if response.etag and client_has(response.etag, headers):
            await self._send_not_modified(response.validators, scope, send)
            return 304
        encoding = preferred_encoding(headers.get(b"accept-encoding", b""))
        variant = response.find_variant(encoding)
        if variant is None:
            if response.length > MAX_INLINE_BYTES:
                variant = await asyncio.to_thread(response.make_variant, encoding)
            else:
                variant = response.make_variant(encoding)
            self.responses.recount(response)
        sent = [*variant.headers, (b"x-request-id", scope[REQUEST_ID])]
        if cache_status is not None:
            sent.append(cache_status)
        elif self._watcher.state.unavailable:
            sent.extend(self._unconfirmed_headers())
        else:
            sent.append(_hit_status(response.age_seconds))
        await send({"type": "http.response.start", "status": 200, "headers": sent})
        await send({"type": "http.response.body", "body": variant.body} if scope["method"] != "HEAD" else NO_BODY)
        return 200

    async def _send_fresh(
        self, canonical: CanonicalRequest, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Send 304 if the client has the current response, which needs no rendering; else render and send it."""
        etag = self._etag(canonical)
        # Only rendering shows whether there is a response, which `*` needs, or a next page, which forbids max-age.
        if scope["method"] != "POST" and client_has(etag, headers, exists=False):
            scope[RECORD].cache = "hit"
            await self._send_not_modified(validator_headers(etag, NO_CACHE, scope["path"]), scope, send)
            return
        scope[RECORD].cache = "miss"
        try:
            # Equal requests share a run, as long as one of their clients is there. An error names its request's id,
            # so it is sent to that request only; the others run themselves.
            key = etag if self._enabled else object()
            start, client = partial(self._render, canonical, etag, headers, scope, receive), scope.get(_CLIENT, receive)
            is_shared = key in self._runs
            response = await self._runs.run(key, start, client)
            if is_shared and not isinstance(response, CachedResponse):
                response = await self._runs.run(object(), start, client)
        except ClientGone:
            return
        except (TooManyRuns, RunTooLong) as reason:
            await self._refuse(reason, scope, send)
            return
        if not isinstance(response, CachedResponse):
            for message in response:
                await send(message)
            return
        self.responses.remember_url(url_key(*canonical.request), response)
        stored = self._enabled and not canonical.endpoint.is_private
        await self._send_response(response, headers, scope, send, _MISS if stored else _BYPASS)

    async def _refuse(self, reason: Exception, scope: Scope, send: Send) -> None:
        """Send 503 for a request that is too many, or whose answer takes too long.

        Under overload most answers may be these, so they do without the framework.
        """
        status, slug, title = DOMAIN_PROBLEMS[Busy]
        note_problem(scope, slug)
        if isinstance(reason, RunTooLong):
            detail = f"The answer takes longer than {self._runs.max_seconds:g} seconds. Ask for less, or retry later."
        else:
            detail = f"{self._runs.max_runs} other requests are being answered. Retry in some seconds."
        problem = {
            "type": f"{self._public_url}/problems/{slug}",
            "title": title,
            "status": status,
            "detail": detail,
            "instance": scope["path"],
            "request_id": scope[REQUEST_ID].decode(),
            "errors": [],
        }
        body = orjson.dumps(problem)
        headers = [*_REFUSED, *self._security_headers, (b"x-request-id", scope[REQUEST_ID])]
        headers += [(b"content-length", b"%d" % len(body)), (b"link", contract_link(self._public_url))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body} if scope["method"] != "HEAD" else NO_BODY)

    async def _send_not_modified(self, validators: Headers, scope: Scope, send: Send) -> None:
        headers = [*validators, (b"x-request-id", scope[REQUEST_ID])]
        if self._watcher.state.unavailable:
            headers.extend(self._unconfirmed_headers())
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send(NO_BODY)

    async def _send_stream(
        self, canonical: CanonicalRequest, headers: RequestHeaders, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Send 304 if the client has the current export, else stream it with validators; it is never stored.

        The ETag of a file is strong, because ranges need that; the endpoint itself refuses a failed If-Match.
        """
        etag, is_file = self._etag(canonical), canonical.endpoint.is_file
        if is_file:
            etag = etag.removeprefix(b"W/")
        precondition_failed = is_file and not if_match_holds(headers.get(b"if-match", b""), etag)
        if not precondition_failed and client_has(etag, headers):
            await self._send_not_modified(validator_headers(etag, self._cache_control), scope, send)
            return
        scope[ETAG_KEY], scope[PARSED] = etag.decode(), True
        encoding = preferred_encoding(headers.get(b"accept-encoding", b""))
        await self._inner(scope, receive, with_validators(send, etag, self._cache_control, encoding))

    def _unconfirmed_headers(self) -> Headers:
        """Return the headers of a stored response while the database is away: when the catalog was read last.

        `ttl` of cache-status (RFC 9211, section 2.5) is negative for a response that is stale, and `age` (RFC 9111)
        keeps other caches from taking it for a new one.
        """
        seconds = int(time.monotonic() - self._watcher.confirmed_at)
        status = b'%s; ttl=-%d; detail="the database is away, last read %d s ago"' % (_HIT, seconds, seconds)
        return [(b"cache-status", status), (b"age", b"%d" % seconds)]

    def _etag(self, canonical: CanonicalRequest) -> bytes:
        """Return the ETag of a request in this generation.

        It depends on the request and the catalog alone, so every worker computes the same one and can confirm a
        client's copy without rendering.
        """
        mark = hashlib.blake2s(f"{self._generation} ".encode() + canonical.key, digest_size=12).hexdigest()
        return f'W/"{mark}"'.encode()

    async def _render(
        self, canonical: CanonicalRequest, etag: bytes, headers: RequestHeaders, scope: Scope, receive: Receive
    ) -> CachedResponse | list[Message]:
        """Render a response in its client's encoding and store it; return the app's messages if it is not a 200."""
        generation, endpoint = self._generation, canonical.endpoint
        own: Headers = [_JSON]
        common, body = self._security_headers, None
        if endpoint.fast_path is not None:
            try:
                body = (await endpoint.fast_path(canonical.params)).encode()
            except (VmsizesError, DatabaseError):
                pass  # the app reports it
            except Exception:  # noqa: BLE001  # logged with its traceback; the app answers, or sends 500
                _log.exception("fast path failed for %s; falling back to the app", canonical.request.path)
        if body is None:
            start, *rest = messages = await _run_app(self._inner, scope, receive)
            if start["status"] != 200:  # noqa: PLR2004  # only complete responses are stored
                return messages
            own = [(name, value) for name, value in start["headers"] if name in _KEPT_HEADERS]
            common = missing_from(own, common)
            body = b"".join(message.get("body", b"") for message in rest)
        fields: Sequence[str] = getattr(canonical.params, "fields", ())
        if fields and endpoint.columns():  # of a list, whose items are reduced to them, in their order
            page = orjson.loads(body)
            page["items"] = [{name: item[name] for name in fields if name in item} for item in page["items"]]
            body = orjson.dumps(page)
        cursor, link = next_cursor(body), contract_link(self._public_url)
        validators: Headers = []
        if endpoint.method == "GET":
            if cursor:
                link += b", " + next_link(self._public_url, canonical, cursor)
            validators = validator_headers(etag, NO_CACHE if cursor else self._cache_control, scope["path"])
        response = CachedResponse(
            key=canonical.key,
            etag=etag if validators else b"",
            validators=validators,
            headers=[*own, *(validators[1:] or [VARY]), *([NO_STORE] if endpoint.is_private else []), *common],
            link=link,
            length=len(body),
            created_at=time.monotonic(),
            series=self.observer.series_of(endpoint.method, endpoint.path),
        )
        encoding = preferred_encoding(headers.get(b"accept-encoding", b""))
        if response.length > MAX_INLINE_BYTES:
            await asyncio.to_thread(response.add_variant, body, encoding)
        else:
            response.add_variant(body, encoding)
        if self._enabled and not endpoint.is_private and generation == self._generation:
            self.responses.put(response)
        return response


@lru_cache(maxsize=1024)
def _hit_status(age_seconds: int) -> Header:
    """Return Cache-Status of a stored response (RFC 9211)."""
    return b"cache-status", b'%s; detail="age %d s"' % (_HIT, age_seconds)


def _sends_json(headers: RequestHeaders) -> bool:
    return is_json(headers.get(b"content-type", b"").decode("latin-1"))


def _may_be_kept(headers: RequestHeaders) -> bool:
    """Check whether a body is read here; to read it is to ask a client for it that waits for 100."""
    length = headers.get(b"content-length", b"")
    is_long = length.isdigit() and int(length) > MAX_CACHED_BODY_BYTES
    return _sends_json(headers) and not is_long and b"content-encoding" not in headers


async def _run_app(app: App, scope: Scope, receive: Receive) -> list[Message]:
    messages: list[Message] = []
    method = _CACHED_METHODS[scope["method"]]
    headers = [(name, value) for name, value in scope["headers"] if name not in _CONDITIONAL_HEADERS]

    async def record(message: Message) -> None:
        messages.append(message)

    async def no_body() -> Message:
        # A client that disconnects must not cancel a run that others wait for.
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {**scope, "method": method, "headers": headers, PARSED: True}
    await app(scope, receive if method == "POST" else no_body, record)
    return messages
