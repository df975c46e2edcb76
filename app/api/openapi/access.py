"""What the OpenAPI document says where API keys or a rate limit are set; without them it says nothing of either."""

from copy import deepcopy
from typing import Any

from app.api.openapi.openapi30 import Document
from app.api.openapi.schemas import REFERENCE
from app.http.problems import MEDIA_TYPE

SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key as a bearer token."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key."},
}
"""Two ways to send the same key."""

_UNAUTHORIZED = {
    "description": "The request has no valid API key.",
    "headers": {
        "WWW-Authenticate": {
            "description": "How to send a key.",
            "schema": {"type": "string"},
            "example": 'Bearer realm="vmsizes"',
        }
    },
}
_TOO_MANY = {
    "description": "The client sent more requests than are allowed.",
    "headers": {
        "Retry-After": {"$ref": "#/components/headers/RetryAfter"},
        "RateLimit": {
            "description": "How many requests are left, and in how many seconds all of them are available again.",
            "schema": {"type": "string"},
            "example": '"default";r=0;t=60',
        },
    },
}


def with_access(document: Document, *, needs_key: bool, is_limited: bool) -> Document:
    """Return the document with the security schemes, and the responses of requests that are refused for them."""
    if not needs_key and not is_limited:
        return document
    document = deepcopy(document)
    if needs_key:
        document["components"]["securitySchemes"] = deepcopy(SCHEMES)
        document["security"] = [{name: []} for name in SCHEMES]
        _add_response(document, "401", "Unauthorized", _UNAUTHORIZED)
    if is_limited:
        _add_response(document, "429", "TooManyRequests", _TOO_MANY)
    return document


def _add_response(document: Document, status: str, name: str, response: dict[str, Any]) -> None:
    headers = {**response["headers"], "X-Request-ID": {"$ref": "#/components/headers/RequestID"}}
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{REFERENCE}Problem"}}}
    document["components"]["responses"][name] = {**deepcopy(response), "headers": headers, "content": content}
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = {**operation["responses"], status: {"$ref": f"#/components/responses/{name}"}}
            operation["responses"] = dict(sorted(responses.items()))
