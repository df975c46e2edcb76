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
from app.http.boundary import MOST_HEADERS, MOST_URL, Manners, refuse_long
from app.http.cache import (
    ASK_FIRST,
    NO_SNIFFING,
    VARY,
    Answer,
    Header,
    Headers,
    Shelf,
    digest,
    lasting,
    marks_of,
    wanted,
)
from app.http.canonical import Endpoint, Question, Request, link, next_cursor, place_of, question
from app.http.headers import (
    REQUEST_ID,
    Conditions,
    conditions,
    for_any_origin,
    holds,
    is_json,
    matches,
    request_id,
    whole_body,
)
from app.http.revision import Watch
from app.http.streaming import ETAG, marking

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Callable[[Message], Awaitable[None]]], Awaitable[None]]

_log = logging.getLogger(__name__)

FOUND = "vmsizes.question"
"""Where the question that a request was found to mean stands in its scope."""

_JSON = (b"content-type", b"application/json")
_NOT_PASSED_ON = {b"accept-encoding", b"if-none-match"}


@dataclass(frozen=True, slots=True)
class Made:
    """A whole answer with status 200."""

    headers: Headers
    body: bytes


async def make(app: App, scope: Scope, receive: Receive) -> Made | list[Message]:
    """Make the answer to a question; what is no whole answer is given as the messages of the app."""
    found: Question | None = scope.get(FOUND)
    made = await _quickly(found) if found is not None else None
    if made is not None and found is not None:
        return _with_fields(made, found)
    start, *rest = messages = await _by_the_app(app, scope, receive)
    if start["status"] != 200:  # noqa: PLR2004  # only a whole answer is kept
        return messages
    headers = [(name, value) for name, value in start["headers"] if name == b"content-type"]
    whole = Made(headers, b"".join(message.get("body", b"") for message in rest))
    return _with_fields(whole, found) if found is not None else whole


def _with_fields(made: Made, found: Question) -> Made:
    """Keep of each item of a list the fields that are asked for, in their order."""
    fields: Sequence[str] = getattr(found.asked, "fields", ())
    if not fields or not found.endpoint.columns:
        return made
    page = orjson.loads(made.body)
    page["items"] = [{name: item[name] for name in fields if name in item} for item in page["items"]]
    return Made(made.headers, orjson.dumps(page))


async def _quickly(found: Question) -> Made | None:
    """Answer without the framework; None where there is no such way, or where the app has to say what is wrong."""
    if found.endpoint.quick is None:
        return None
    try:
        return Made([_JSON], (await found.endpoint.quick(found.asked)).encode())
    except (VmsizesError, DBAPIError):
        return None
    except Exception:  # noqa: BLE001  # logged with its traceback; the app answers, or says 500
        _log.exception("fast path failed for %s; falling back to the app", found.path)
        return None


async def _by_the_app(app: App, scope: Scope, receive: Receive) -> list[Message]:
    messages: list[Message] = []
    posted = scope["method"] == "POST"
    headers = [(name, value) for name, value in scope["headers"] if name not in _NOT_PASSED_ON]
    plain = {**scope, "method": "POST" if posted else "GET", "headers": headers}

    async def record(message: Message) -> None:
        messages.append(message)

    await app(plain, receive if posted else _nothing_more, record)
    return messages


async def _nothing_more() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


AT_ONCE = 8
"""So many requests begin in one iteration: at a millisecond each, others wait for these eight and not for all."""


class LoopPacer:
    """Lets a bounded number of requests begin in each iteration of the event loop, in the order in which they came."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._begun = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def wait(self) -> None:
        """Return at once where this iteration has room, else in a later one."""
        loop = asyncio.get_running_loop()
        if self._begun == 0:
            loop.call_soon(self._next_iteration, loop)
        if self._begun < self._at_once:
            self._begun += 1
            return
        mine = loop.create_future()
        self._waiting.append(mine)
        await mine

    def _next_iteration(self, loop: asyncio.AbstractEventLoop) -> None:
        self._begun = 0
        while self._waiting and self._begun < self._at_once:
            following = self._waiting.popleft()
            if not following.done():  # its client may have gone away meanwhile
                following.set_result(None)
                self._begun += 1
        if self._begun:
            loop.call_soon(self._next_iteration, loop)


Send = Callable[[Message], Awaitable[None]]


class Answers:
    """Serves an app, and keeps its answers; `hits` and `misses` count how often that helped.

    With room for no bytes every question is asked anew. Copies elsewhere may be used for `max_age_seconds` without
    asking, but for pages that have a next one: their cursors end with the revision.
    """

    def __init__(
        self,
        app: FastAPI,
        known: list[Endpoint],
        watch: Watch,
        *,
        most_bytes: int,
        public_url: str = "",
        max_age_seconds: int = 0,
    ) -> None:
        self.app, self._known, self._keeps, self._public_url = app, known, most_bytes > 0, public_url
        self._polite = Manners(app, public_url)
        self._lasts = lasting(max_age_seconds)
        self._refusing = for_any_origin(Manners(refuse_long, public_url))
        self._across = for_any_origin(self._answer)
        self._watch, self._shelf = watch, Shelf(most_bytes)
        self._pacer = LoopPacer()
        self._places = {endpoint.place for endpoint in known}
        self._stamp: str | None = None
        self._running: dict[bytes, asyncio.Task[Answer | list[Message]]] = {}  # by ETag: a revision has runs of its own
        self.hits = self.misses = 0

    @property
    def kept(self) -> int:
        """How many answers are kept."""
        return len(self._shelf)

    @property
    def kept_bytes(self) -> int:
        """How many bytes they take up, with the URLs that are remembered."""
        return self._shelf.size

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer from the shelf, else by the app."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        says = scope[_SAYS] = conditions(scope["headers"])
        if says.length > MOST_HEADERS or len(scope["path"]) + len(scope["query_string"]) > MOST_URL:
            await self._refusing(scope, receive, send)
            return
        kept = self._at_hand(scope) if not says.origin else None
        if kept is not None:
            await self._again(*kept, says, scope, send)
        elif says.origin:
            await self._across(scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    def _at_hand(self, scope: Scope) -> tuple[bytes, Answer] | None:
        """The answer to a URL that was asked before, where nothing has to be looked at first."""
        if scope["method"] != "GET" or not self._watch.fresh or self._watch.stamp != self._stamp:
            return None
        asked = self._shelf.question(scope["path"], scope["query_string"])
        answer = self._shelf.get(asked) if asked is not None else None
        return (asked, answer) if asked is not None and answer is not None else None

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Find out what is asked, and answer it by what is kept, or by the app."""
        says: Conditions = scope[_SAYS]
        # What is not of the contract does not wait until the revision was looked at: probes, above all.
        method = _METHODS.get(scope["method"]) if place_of(scope["path"]) in self._places else None
        body: bytes | None = b""
        if method == "POST":
            body, receive = await whole_body(receive) if is_json(says.kind.decode("latin-1")) else (None, receive)
        asked, answer = None, None
        if method is not None and body is not None:
            asked, answer = await self._asked(method, scope, body)
        if asked is not None and answer is not None:
            await self._again(asked, answer, says, scope, send)
            return
        scope[REQUEST_ID] = request_id(says.request_id)
        says = says._replace(request_id=scope[REQUEST_ID])
        found: Question | None = scope.get(FOUND)
        if asked is None:
            await self._polite(scope, receive, send)
        elif found is not None and found.endpoint.streams:
            await self._streamed(asked, says, scope, receive, send)
        else:
            await self._anew(asked, says, scope, receive, send)

    async def _again(self, asked: bytes, answer: Answer, says: Conditions, scope: Scope, send: Send) -> None:
        """Give an answer that is kept, or say that the client's copy of it still holds."""
        if says.marks and scope["method"] != "POST" and matches(says.marks, answer.etag, there=True):
            await self._unchanged(answer.etag, answer.lasts, says, send)
            return
        self.hits += 1
        encoding = wanted(says.accepts)
        form = answer.forms.get(encoding)
        if form is None:
            form = answer.form(encoding)
            self._shelf.put(asked, answer)  # it may have taken up more room
        told = (b"cache-status", b'vmsizes; hit; detail="age %d s"' % (time.monotonic() - answer.born))
        headers = [*form.headers, (b"x-request-id", request_id(says.request_id)), told]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send(form.body if scope["method"] != "HEAD" else _NO_BODY)

    async def _unchanged(self, etag: bytes, lasts: Header, says: Conditions, send: Send) -> None:
        headers = [*marks_of(etag, lasts), (b"x-request-id", request_id(says.request_id))]
        await send({"type": "http.response.start", "status": 304, "headers": headers})
        await send(_NO_BODY)

    async def _streamed(self, asked: bytes, says: Conditions, scope: Scope, receive: Receive, send: Send) -> None:
        """Confirm a client's copy of an answer that is never kept, or have it made and mark it.

        The mark of a file is strong. A condition that it does not meet is refused by who makes the file.
        """
        etag, found = self._etag(asked), scope[FOUND]
        if found.endpoint.file:
            etag = etag.removeprefix(b"W/")
        refused = found.endpoint.file and not holds(says.needed, etag)
        if says.marks and not refused and matches(says.marks, etag, there=True):
            await self._unchanged(etag, self._lasts, says, send)
            return
        scope[ETAG] = etag.decode()
        await self._polite(scope, receive, marking(send, etag, self._lasts, wanted(says.accepts)))

    async def _anew(self, asked: bytes, says: Conditions, scope: Scope, receive: Receive, send: Send) -> None:
        """Confirm a client's copy, which needs no answer, or have the answer made."""
        etag, copies = self._etag(asked), bool(says.marks) and scope["method"] != "POST"
        if copies and matches(says.marks, etag, there=False):
            await self._unchanged(etag, ASK_FIRST, says, send)  # whether a page follows is not known here
            return
        self.misses += 1
        made = await (self._once if self._keeps else self._run)(asked, etag, scope, receive)
        if not isinstance(made, Answer):
            for message in made:
                await send(message)
        elif copies and matches(says.marks, etag, there=True):
            await self._unchanged(etag, made.lasts, says, send)
        else:
            form = made.form(wanted(says.accepts))
            headers = [*form.headers, (b"x-request-id", says.request_id), _MISS if self._keeps else _BYPASS]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send(form.body if scope["method"] != "HEAD" else _NO_BODY)

    async def _asked(self, method: str, scope: Scope, body: bytes) -> tuple[bytes | None, Answer | None]:
        """The question of a request whose answer may be kept, and the answer if it is."""
        stamp = (await self._watch.look()).stamp
        if stamp != self._stamp:
            self._stamp = stamp
            self._shelf.clear()
        if stamp is None:
            return None, None
        url = scope["path"], scope["query_string"] if method == "GET" else digest(scope["query_string"], body)
        asked = self._shelf.question(*url)
        answer = self._shelf.get(asked) if asked is not None else None
        if answer is None:
            await self._pacer.wait()
            found = question(Request(method, scope["path"], scope["query_string"], body), self._known)
            if found is None:
                return None, None
            asked, scope[FOUND] = digest(found.text.encode()), found
            self._shelf.learn(*url, asked)
            answer = self._shelf.get(asked)
        return asked, answer

    def _etag(self, asked: bytes) -> bytes:
        """Equal in every worker, so that a client's copy can be confirmed without asking the database."""
        mark = hashlib.blake2s(f"{self._stamp} ".encode() + asked, digest_size=12).hexdigest()
        return f'W/"{mark}"'.encode()

    async def _once(self, asked: bytes, etag: bytes, scope: Scope, receive: Receive) -> Answer | list[Message]:
        """Run a question once, however many ask it at the same time, and whoever of them stays.

        An error is the answer to one request, whose id it names: the others ask for themselves.
        """
        running = self._running.get(etag)
        if running is not None:
            made = await asyncio.shield(running)
            return made if isinstance(made, Answer) else await self._run(asked, etag, scope, receive)
        running = self._running[etag] = asyncio.create_task(self._run(asked, etag, scope, receive))
        running.add_done_callback(lambda _: self._running.pop(etag, None))
        return await asyncio.shield(running)

    async def _run(self, asked: bytes, etag: bytes, scope: Scope, receive: Receive) -> Answer | list[Message]:
        stamp, found = self._stamp, scope.get(FOUND)
        made = await make(self._polite, scope, receive)
        if not isinstance(made, Made):
            return made
        lasts = ASK_FIRST if next_cursor(made.body) else self._lasts
        marked: Headers = [VARY] if scope["method"] == "POST" else marks_of(etag, lasts)
        where = (b"link", link(self._public_url, found, made.body))
        headers = [*made.headers, *marked, NO_SNIFFING, where]
        answer = Answer(etag=etag, lasts=lasts, headers=headers, body=made.body, born=time.monotonic())
        if stamp == self._stamp and self._keeps:
            self._shelf.put(asked, answer)
        return answer


_MISS = (b"cache-status", b"vmsizes; fwd=miss; stored")
_BYPASS = (b"cache-status", b"vmsizes; fwd=bypass")
_NO_BODY: Message = {"type": "http.response.body", "body": b""}
_SAYS = "vmsizes.headers"
"""Where the values of the headers stand in a request's scope."""
_METHODS = {"GET": "GET", "HEAD": "GET", "POST": "POST"}
"""What a method asks as: HEAD is a GET without the body of its answer."""
