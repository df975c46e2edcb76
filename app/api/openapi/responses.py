"""The responses of an operation: each status by its number, the problems, the headers, the links and the examples."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from app.api.openapi.schemas import REFERENCE, to_plain_schema
from app.http.problems import MEDIA_TYPE

EXAMPLES = files("app.api.openapi") / "examples"
MAX_ITEMS = 2
"""Objects of a list that an example shows; lists of strings, such as `flags`, are shown whole."""
MAX_STRINGS = 30
"""Strings of a list that are shown whole; longer lists, such as the sources of a revision, are cut to MAX_ITEMS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request, and what is shown of its response."""

    path: str
    body: dict[str, Any] | None
    answer: Any


def find_example(operation: str) -> Example | None:
    """Return the example of an operation; None if it has none."""
    file = EXAMPLES / f"{operation}.json"
    return Example(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def find_problem_example(response: str) -> Any:
    """Return the example of an error response; None if it has none."""
    file = EXAMPLES / "problems" / f"{response}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def with_example(operation: dict[str, Any]) -> dict[str, Any]:
    """Add an operation's example to its response, and to its body if it has one."""
    example = find_example(operation["operationId"])
    if example is None:
        return operation
    success = operation["responses"]["200"]
    summary = example.path if example.body is None else "The response to the example of a body."
    summary += " (two objects of each list are shown)" if _has_objects(example.answer) else ""
    answer = {**success, "content": _with_value(success["content"], summary, example.answer)}
    whole = {**operation, "responses": {**operation["responses"], "200": answer}}
    if example.body is not None:
        request = operation["requestBody"]
        whole["requestBody"] = {
            **request,
            "content": _with_value(request["content"], operation["summary"], example.body),
        }
    return whole


def _with_value(content: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    ((media_type, described),) = content.items()
    return {media_type: with_example_value(described, summary, value)}


def with_example_value(media: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    """Add an example to a media type object."""
    return {**media, "examples": {"example": {"summary": summary, "value": value}}}


def _has_objects(answer: Any) -> bool:
    lists = [value for value in answer.values() if isinstance(value, list)] if isinstance(answer, dict) else []
    return any(isinstance(value, dict) for values in lists for value in values)


def shorten(answer: Any) -> Any:
    """Cut lists of objects, and the lines of a text below its heading, to what an example shows."""
    if isinstance(answer, dict):
        return {name: shorten(value) for name, value in answer.items()}
    if isinstance(answer, list):
        objects = any(isinstance(value, dict | list) for value in answer)
        return [shorten(value) for value in (answer[:MAX_ITEMS] if objects or len(answer) > MAX_STRINGS else answer)]
    if isinstance(answer, str) and "\n" in answer:
        return "".join(answer.splitlines(keepends=True)[: MAX_ITEMS + 1])
    return answer


_SIZE_OPERATIONS = (
    *("showSize", "listSizeFacts", "listSizeAvailability", "listSizePrices", "listSimilarSizes", "showSizeCost"),
)
_PATH_PARAMETERS = {
    **dict.fromkeys(_SIZE_OPERATIONS, "name"),
    "showSeries": "series_id",
    "showModel": "model_id",
}
"""The name of an operation's path parameter."""

LINKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "listSizes": ("/items/0/name", _SIZE_OPERATIONS),
    "listSimilarSizes": ("/items/0/size", _SIZE_OPERATIONS),
    "fitResources": ("/items/0/size", _SIZE_OPERATIONS),
    "fitWorkload": ("/items/0/size", _SIZE_OPERATIONS),
    "listSeries": ("/items/0/id", ("showSeries",)),
    "showSeries": ("/sizes/0", _SIZE_OPERATIONS),
    "listModels": ("/items/0/id", ("showModel",)),
}
"""A pointer to a name in an operation's response, and the operations that take the name in their path."""


def to_links(operation: str) -> dict[str, Any]:
    """Return the links of an operation's response."""
    pointer, targets = LINKS.get(operation, ("", ()))
    return {
        target: {
            "operationId": target,
            "parameters": {_PATH_PARAMETERS[target]: f"$response.body#{pointer}"},
            "description": f"{target} takes the first name of the response.",
        }
        for target in targets
    }


Response = dict[str, Any]
_STRING = {"type": "string"}

HEADERS: Mapping[str, Response] = {
    "ETag": {
        "description": "Identifies this response; send it as If-None-Match to get 304 if nothing has changed.",
        "schema": _STRING,
        "example": 'W/"5b1e4a0c9d7f2e6b8a3c1d50"',
    },
    "CacheControl": {
        "description": "How long a copy may be used without revalidation; no-cache: revalidate each time, by its ETag.",
        "schema": _STRING,
        "example": "no-cache",
    },
    "Link": {
        "description": "The OpenAPI document (service-desc); of a list, the next page (next), where there is one.",
        "schema": _STRING,
        "example": '</openapi.json>; rel="service-desc"',
    },
    "RequestID": {
        "description": "Identifies this request in the service's log: the ID that was sent, or a new one.",
        "schema": _STRING,
        "example": "0f8fad5bd9cb469fa16570867728950e",
    },
    "Allow": {"description": "The methods of this path.", "schema": _STRING, "example": "GET, HEAD, OPTIONS"},
    "AcceptPost": {
        "description": "The media types that are accepted.",
        "schema": _STRING,
        "example": "application/json",
    },
    "ContentRange": {"description": "How long the file is.", "schema": _STRING, "example": "bytes */48213"},
    "RetryAfter": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "format": "int32"},
        "example": 5,
    },
}
"""Headers by the names of their components; HEADER_NAMES has the HTTP names of those that differ."""

HEADER_NAMES = {
    "CacheControl": "Cache-Control",
    "RequestID": "X-Request-ID",
    "RetryAfter": "Retry-After",
    "AcceptPost": "Accept-Post",
    "ContentRange": "Content-Range",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseComponent:
    """A response that several operations share: 304, or a problem."""

    name: str
    description: str
    headers: tuple[str, ...] = ()
    problem: bool = True


COMMON_RESPONSES: Mapping[int, ResponseComponent] = {
    304: ResponseComponent(
        name="NotModified",
        description="The copy that If-None-Match names is still current.",
        headers=("ETag", "CacheControl"),
        problem=False,
    ),
    400: ResponseComponent(name="BadRequest", description="The cursor does not belong to this list in this order."),
    404: ResponseComponent(
        name="NotFound", description="Nothing has this name; the detail suggests the nearest names."
    ),
    405: ResponseComponent(name="MethodNotAllowed", description="The path has other methods.", headers=("Allow",)),
    410: ResponseComponent(
        name="Gone", description="The catalog has changed since the page that gave the cursor: start again without it."
    ),
    412: ResponseComponent(name="PreconditionFailed", description="The file is no longer the one that If-Match names."),
    413: ResponseComponent(name="ContentTooLarge", description="The body is too long."),
    415: ResponseComponent(
        name="UnsupportedMediaType", description="The body is not application/json.", headers=("AcceptPost",)
    ),
    416: ResponseComponent(
        name="RangeNotSatisfiable",
        description="The file ends before the requested range.",
        headers=("ContentRange",),
    ),
    422: ResponseComponent(
        name="UnprocessableContent",
        description="A parameter is unknown, out of bounds or contradicts another; `errors` points to each.",
    ),
    500: ResponseComponent(
        name="InternalServerError", description="An error of the service; no request should cause one."
    ),
    503: ResponseComponent(
        name="ServiceUnavailable",
        description="The database cannot be reached, or has no catalog yet; the detail says what to do.",
        headers=("RetryAfter",),
    ),
}
"""The responses of most operations, by status."""

_POST_RESPONSES: Mapping[int, ResponseComponent] = {
    400: ResponseComponent(name="UnreadableBody", description="The body is not valid JSON."),
    405: ResponseComponent(name="PostMethodNotAllowed", description="The path has other methods.", headers=("Allow",)),
    422: ResponseComponent(
        name="UnprocessableBody",
        description="A field is unknown, out of bounds or contradicts another; `errors` points to each.",
    ),
}
_FILE_RESPONSES: Mapping[int, ResponseComponent] = {
    400: ResponseComponent(name="UnreadableRange", description="Range cannot be read.")
}


def _of_path(prefix: str) -> dict[int, ResponseComponent]:
    """Return the responses that a POST shares with POST /fit but for their examples, which show its own path."""
    shared = {413: COMMON_RESPONSES[413], 415: COMMON_RESPONSES[415], **_POST_RESPONSES}
    return {status: replace(one, name=f"{prefix}{one.name}") for status, one in shared.items()}


_OPERATION_RESPONSES: Mapping[str, Mapping[int, ResponseComponent]] = {
    "estimateWorkload": _of_path("Estimate"),
    "planRetirements": _of_path("Retirements"),
    "checkQuotas": _of_path("Preflight"),
    "showSeries": {404: ResponseComponent(name="SeriesNotFound", description=COMMON_RESPONSES[404].description)},
    "showModel": {404: ResponseComponent(name="ModelNotFound", description=COMMON_RESPONSES[404].description)},
    "exportSizesParquet": _FILE_RESPONSES,
    "exportPricesParquet": _FILE_RESPONSES,
}
"""Responses that differ for some operations, so that each shows an example of its own kind."""

PROBLEM_STATUSES: Mapping[str, int] = {
    one.name: status
    for table in (COMMON_RESPONSES, _POST_RESPONSES, *_OPERATION_RESPONSES.values())
    for status, one in table.items()
    if one.problem
}
"""The status of every response that is a problem, by the name of its component."""

_COMMON_STATUSES = {405, 422, 500, 503}
_METHOD_STATUSES = {"get": {304}, "post": {400, 413, 415}}


def response_components() -> dict[str, Response]:
    """Return the response components by name."""
    tables = (COMMON_RESPONSES, _POST_RESPONSES, *_OPERATION_RESPONSES.values())
    return {one.name: _to_response(one) for table in tables for one in table.values()}


def header_components() -> dict[str, Response]:
    """Return the header components by name."""
    return {name: dict(header) for name, header in HEADERS.items()}


def to_responses(method: str, generated: Mapping[str, Any]) -> dict[str, Response]:
    """Return the responses of an operation: its success, and every error it can return, by status.

    A route declares only the statuses that do not follow from its method, its path and its parameters.
    """
    declared = {int(status) for status in generated["responses"] if status != "200"}
    parameters = [(one["in"], one["name"]) for one in generated.get("parameters", [])]
    named = {404} if "path" in dict(parameters) else set()
    paged = {400, 410} if ("query", "cursor") in parameters else set()
    statuses = _COMMON_STATUSES | _METHOD_STATUSES[method] | declared | named | paged
    known = {
        **COMMON_RESPONSES,
        **(_POST_RESPONSES if method == "post" else {}),
        **_OPERATION_RESPONSES.get(generated["operationId"], {}),
    }
    errors = {str(status): {"$ref": f"#/components/responses/{known[status].name}"} for status in sorted(statuses)}
    success = _to_success(method, generated["responses"]["200"])
    links = to_links(generated["operationId"])
    return {"200": {**success, "links": links} if links else success, **errors}


def _to_success(method: str, generated: Response) -> Response:
    """Return the one success, with the caching headers if the client may keep it."""
    content = {media: _to_content(media, one) for media, one in generated["content"].items()}
    caching = ("ETag", "CacheControl") if method == "get" else ()
    return {"description": "The response.", "headers": _headers(*caching, "Link"), "content": content}


def _to_content(media_type: str, generated: Mapping[str, Any]) -> dict[str, Any]:
    schema = to_plain_schema(generated["schema"], in_request=False)
    if media_type == "application/octet-stream":
        schema["format"] = "binary"
    return {**generated, "schema": schema}


def _to_response(component: ResponseComponent) -> Response:
    response: Response = {"description": component.description, "headers": _headers(*component.headers, "Link")}
    if component.problem:
        content = {"schema": {"$ref": f"{REFERENCE}Problem"}}
        problem = find_problem_example(component.name)
        response["content"] = {
            MEDIA_TYPE: content if problem is None else with_example_value(content, _summary(problem), problem)
        }
    return response


def _summary(problem: Mapping[str, Any]) -> str:
    return f"{problem['title']}: {problem['instance']}"


def _headers(*names: str) -> dict[str, Response]:
    return {HEADER_NAMES.get(name, name): {"$ref": f"#/components/headers/{name}"} for name in (*names, "RequestID")}
