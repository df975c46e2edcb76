"""How an answer is made that is not kept: without the framework where there is such a way, else by the app."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from sqlalchemy.exc import DBAPIError
from starlette.types import Message, Receive

from app.errors import VmsizesError
from app.http.cache import Headers
from app.http.canonical import Question

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
