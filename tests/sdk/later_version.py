"""Simulates a later version of the service: one more field in every object, new values of extensible fields."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

ADDED_FIELDS = {"added_later": "older clients do not know this field"}
NEW_VALUE = "a-value-of-a-later-version"


def later_version(app: ASGIApp, document: Path) -> ASGIApp:
    """Wrap an app to answer as a later version may, by the OpenAPI document in a file."""
    return LaterVersion(app, json.loads(document.read_text(encoding="utf-8")))


class LaterVersion:
    """Middleware that changes JSON responses as far as the OpenAPI document lets a later version change them."""

    def __init__(self, app: ASGIApp, document: dict[str, Any]) -> None:
        properties = list(_properties(document))
        self._app = app
        self._words = {name for name, shape in properties if "extensible" in shape.get("description", "").lower()}
        self._maps = {name for name, shape in properties if isinstance(shape.get("additionalProperties"), dict)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Drop the headers that would make the app compress its response or return 304, and change the response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        plain = [pair for pair in scope["headers"] if pair[0] not in {b"accept-encoding", b"if-none-match"}]
        start: Message = {}
        body = bytearray()

        async def hold(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
                return
            body.extend(message.get("body", b""))
            if not message.get("more_body", False):
                await self._release(start, bytes(body), send)

        await self._app({**scope, "headers": plain}, receive, hold)

    async def _release(self, start: Message, body: bytes, send: Send) -> None:
        headers = dict(start["headers"])
        if b"json" in headers.get(b"content-type", b"") and body:
            body = json.dumps(self.later(json.loads(body))).encode()
            headers[b"content-length"] = str(len(body)).encode()
        await send({**start, "headers": list(headers.items())})
        await send({"type": "http.response.body", "body": body})

    def later(self, part: Any, name: str = "") -> Any:
        """Return a part of a response, the value of `name`, as a later version may send it."""
        if isinstance(part, dict):
            inner = {key: self.later(value, key) for key, value in part.items()}
            return inner if name in self._maps else {**inner, **ADDED_FIELDS}
        if isinstance(part, list):
            return [self.later(item, name) for item in part]
        return NEW_VALUE if name in self._words and isinstance(part, str) else part


def _properties(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for shape in document["components"]["schemas"].values():
        yield from shape.get("properties", {}).items()
