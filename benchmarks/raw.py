"""The limit of the server itself: a bare ASGI application that sends bytes made beforehand. Imports next to nothing."""

import os
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.responses import RecordedResponse, load_responses

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]
Receive = Callable[[], Awaitable[Message]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def recorded_responses() -> dict[str, RecordedResponse]:
    """The service's own answers, from the file named by BENCH_ANSWERS."""
    return load_responses(Path(os.environ["BENCH_ANSWERS"]))


def start_of(answer: RecordedResponse, length: int) -> Message:
    """The first message of an answer whose body has so many bytes."""
    told = [(name.encode(), value.encode()) for name, value in answer.headers]
    headers = [*told, (b"content-length", str(length).encode())]
    return {"type": "http.response.start", "status": answer.status, "headers": headers}


DESCRIBING = {"content-type", "content-encoding"}
"""Headers without which the body cannot be read."""


def raw() -> App:
    """Every kept answer, ready to be sent: the same bytes, its headers among them."""
    return _sending(recorded_responses())


def bodies() -> App:
    """The bodies of the kept answers, with no header but those without which they cannot be read."""
    return _sending(
        {
            target: replace(answer, headers=tuple(pair for pair in answer.headers if pair[0] in DESCRIBING))
            for target, answer in recorded_responses().items()
        }
    )


def _sending(answers: Mapping[str, RecordedResponse]) -> App:
    ready = {
        target.encode(): (start_of(answer, len(answer.body)), {"type": "http.response.body", "body": answer.body})
        for target, answer in answers.items()
    }

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        start, body = ready[scope["raw_path"] + b"?" + query if query else scope["raw_path"]]
        await send(start)
        await send(body)

    return http_only(app)


def two_kilobytes() -> App:
    """The same 2 KB whatever is asked."""
    body = b"x" * 2048
    start = start_of(RecordedResponse(status=200, headers=(("content-type", "text/plain"),), body=body), len(body))

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return http_only(app)


def http_only(app: App) -> App:
    """Let uvicorn see that there is nothing to do at its start and end."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is answered here, not {scope['type']}")
        await app(scope, receive, send)

    return checked
