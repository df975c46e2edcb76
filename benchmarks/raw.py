"""The upper bound that the ASGI server sets: applications that send recorded bytes, with hardly any imports."""

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
    """Load the service's recorded responses from the file named by BENCH_ANSWERS."""
    return load_responses(Path(os.environ["BENCH_ANSWERS"]))


def start_of(response: RecordedResponse, length: int | None) -> Message:
    """Return the start message of a response with a body of `length` bytes, or in chunks."""
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


DESCRIBING = {"content-type", "content-encoding"}
"""Headers without which the body cannot be read."""


def raw() -> App:
    """Build the application that sends recorded responses with all of their headers."""
    return _sending(recorded_responses())


def bodies() -> App:
    """Build the application that sends recorded bodies with only the headers that are needed to read them."""
    return _sending(
        {
            target: replace(response, headers=tuple(pair for pair in response.headers if pair[0] in DESCRIBING))
            for target, response in recorded_responses().items()
        }
    )


def _sending(responses: Mapping[str, RecordedResponse]) -> App:
    ready = {
        target.encode(): (start_of(response, len(response.body)), {"type": "http.response.body", "body": response.body})
        for target, response in responses.items()
    }

    async def app(scope: Scope, _receive: Receive, send: Send) -> None:
        query: bytes = scope["query_string"]
        start, body = ready[scope["raw_path"] + b"?" + query if query else scope["raw_path"]]
        await send(start)
        await send(body)

    return http_only(app)


def two_kilobytes() -> App:
    """Build the application that sends the same 2 KB to every request."""
    body = b"x" * 2048
    start = start_of(RecordedResponse(status=200, headers=(("content-type", "text/plain"),), body=body), len(body))

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send(start)
        await send({"type": "http.response.body", "body": body})

    return http_only(app)


def http_only(app: App) -> App:
    """Wrap an application to refuse the lifespan protocol, so that uvicorn starts it without."""

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"only HTTP is answered here, not {scope['type']}")
        await app(scope, receive, send)

    return checked
