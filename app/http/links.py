"""Where to go from an answer (RFC 8288): the contract, and from a page the next one, with every filter kept."""

from urllib.parse import quote, quote_plus

import orjson

from app.http.canonical import Question

_KEY = b'"next_cursor":"'
"""In a text of JSON this is a key and nothing else: quotes inside of strings are escaped."""


def link(public_url: str, found: Question | None = None, body: bytes = b"") -> bytes:
    """The value of Link for an answer; `found` is the question that it answers."""
    contract = f'<{public_url}/openapi.json>; rel="service-desc"'
    cursor = next_cursor(body) if found is not None and found.endpoint.method == "GET" else ""
    if found is None or not cursor:
        return contract.encode()
    asked = {**orjson.loads(found.says), "cursor": cursor}
    query = "&".join(f"{name}={quote_plus(_written(value))}" for name, value in asked.items())
    return f'{contract}, <{public_url}{quote(found.path)}?{query}>; rel="next"'.encode()


def next_cursor(body: bytes) -> str:
    """The cursor that stands near the end of a page; empty on the last one."""
    start = body.rfind(_KEY) + len(_KEY)
    return body[start : body.index(b'"', start)].decode() if start >= len(_KEY) else ""


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
