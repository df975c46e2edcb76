"""Builds the OpenAPI document from FastAPI's, every part in its plain form, without unused schemas; and OpenAPI 3.0."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from importlib.resources import files
from threading import Lock
from typing import Any, NamedTuple, get_args

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from app.catalog.fields import CHANGE_KINDS
from app.catalog.names import CONTINENTS, Category
from app.catalog.price_checks import Rule
from app.catalog.providers import PROVIDER_IDS
from app.catalog.purchases import DISK_TYPES, PURCHASE_MODELS, REDUNDANCIES
from app.catalog.queries import params
from app.catalog.queries.prices import PriceSort
from app.fit.features import FEATURE_NAMES
from app.fit.formulas.optimizer import LORA_MODULES, RECIPES
from app.fit.formulas.quantization import BITS, KV_BITS
from app.http.problems import MEDIA_TYPE, Problem
from app.late_models import LateModel
from app.schemas import fit_request
from app.schemas.fit_response import RESULTS

ENUMS: Mapping[str, tuple[str, ...]] = {
    "Os": get_args(params.Os),
    "Purchase": PURCHASE_MODELS,
    "Arch": get_args(params.Arch),
    "ProviderId": PROVIDER_IDS,
    "Continent": CONTINENTS,
    "SizeCategory": get_args(Category),
    "SizeStatus": get_args(params.Status),
    "DiskType": DISK_TYPES,
    "Redundancy": REDUNDANCIES,
    "ChangeKind": CHANGE_KINDS,
    "PriceRule": get_args(Rule),
    "PriceSort": get_args(PriceSort),
    "FitSort": get_args(fit_request.Sort),
    "FitInclude": get_args(fit_request.Include),
    "ResourceSort": get_args(params.FitSort),
    "ResourceInclude": get_args(params.ResourceInclude),
    "Feature": FEATURE_NAMES,
    "Dtype": tuple(BITS),
    "KvDtype": tuple(KV_BITS),
    "Attention": get_args(fit_request.AttentionKind),
    "Mlp": get_args(fit_request.MlpKind),
    "QkNorm": get_args(fit_request.QkNormKind),
    "Recipe": tuple(RECIPES),
    "LoraModule": tuple(LORA_MODULES),
    **{
        name: get_args(getattr(fit_request, name))
        for name in (
            *("Engine", "Arrivals", "Confidence", "Link", "Network", "TrainingMethod", "Precision", "Offload"),
            *("Loading", "Recompute", "CrossEntropy", "ActivationFormula"),
        )
    },
}
"""The enumerations of requests by name. Two with the same values are one type."""


def enum_name(values: Iterable[str]) -> str:
    """Return the name of the enumeration with these values; raises LookupError if there is none."""
    wanted = sorted(values)
    for name, members in ENUMS.items():
        if sorted(members) == wanted:
            return name
    raise LookupError(f"No enumeration has the values {wanted}: add one to ENUMS in app/api/openapi/build.py.")


def to_enum(name: str) -> dict[str, Any]:
    """Return the component of an enumeration.

    `x-enum-varnames` makes the names of members unique, since Go puts those of all enumerations in one namespace.
    """
    values, spaced = ENUMS[name], re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    members = [f"{spaced}_{value}".upper() for value in values]
    return {"type": "string", "enum": list(values), "x-enum-varnames": members}


Schema = dict[str, Any]
REFERENCE = "#/components/schemas/"
_INT32 = 2**31 - 1
_NULL = {"type": "null"}
_BOUNDS = {"minimum", "maximum", "multipleOf"}
_SCALARS = {"number", "integer", "string", "boolean"}


def to_plain_schema(schema: Schema, *, in_request: bool, optional: bool = False) -> Schema:
    """Return a schema, and those inside it, with one type each; `in_request` distinguishes requests from responses.

    Null becomes a second type of a number, a string or a boolean: where it is a value, and in a field of a body that is
    `optional`, since null is absent there. An object (a `$ref`) or a list is never null: it is left out.
    """
    chosen, nullable = _unwrap_union(schema)
    nullable = nullable or optional
    plain = {name: value for name, value in chosen.items() if name != "title"}
    if "enum" in plain or "const" in plain:
        plain = _with_enum_reference(plain, in_request=in_request)
    if plain.get("type") in {"number", "integer"}:
        plain = _with_number_format(plain)
    if nullable and plain.get("type") in _SCALARS:
        plain["type"] = [plain["type"], "null"]
    for inner in ("items", "additionalProperties"):
        if isinstance(plain.get(inner), dict):
            plain[inner] = to_plain_schema(plain[inner], in_request=in_request)
    if "properties" in plain:
        required = plain.get("required", ())
        plain["properties"] = {
            name: to_plain_schema(part, in_request=in_request, optional=in_request and name not in required)
            for name, part in plain["properties"].items()
        }
        if in_request:  # unknown fields are refused, and TypeScript would require a field that has a default
            described = {name: _move_default_to_description(part) for name, part in plain["properties"].items()}
            plain |= {"properties": described, "additionalProperties": False}
        else:  # responses may get new fields
            plain.pop("additionalProperties", None)
    # A default that is a scalar stays; describe a list or an enumeration's value, which generators get wrong.
    if "default" not in plain:
        return plain
    default = plain["default"]
    if default is None or default in ([], {}) or isinstance(default, dict):
        return {name: value for name, value in plain.items() if name != "default"}
    return plain if "$ref" not in plain and not isinstance(default, list) else _move_default_to_description(plain)


def references(part: Any) -> Iterator[str]:
    """Yield the names of the schemas that a part of a document refers to."""
    if isinstance(part, dict):
        target = part.get("$ref")
        if isinstance(target, str) and target.startswith(REFERENCE):
            yield target.removeprefix(REFERENCE)
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


def _unwrap_union(schema: Schema) -> tuple[Schema, bool]:
    """Return a schema with one of the types of its union, and whether it may be null.

    A number that may also be sent as a string is a number. Any other mixture gets no type: it is any JSON value.
    """
    if "anyOf" not in schema:
        return schema, False
    rest = {name: value for name, value in schema.items() if name != "anyOf"}
    choices = [choice for choice in schema["anyOf"] if choice != _NULL]
    numbers = [choice for choice in choices if choice.get("type") == "number"]
    if numbers and {choice.get("type") for choice in choices} == {"number", "string"}:
        choices = numbers
    chosen = choices[0] if len(choices) == 1 else {}
    return {**chosen, **rest}, _NULL in schema["anyOf"]


def _with_enum_reference(schema: Schema, *, in_request: bool) -> Schema:
    """Refer to an enumeration in a request; values of responses are plain strings, since new ones may be added."""
    rest = {name: value for name, value in schema.items() if name not in {"enum", "const"}}
    if not in_request:
        return rest
    values = schema["enum"] if "enum" in schema else [schema["const"]]
    kept = {name: value for name, value in rest.items() if name in {"description", "default", "examples"}}
    return {"$ref": REFERENCE + enum_name(values), **kept}


def _with_number_format(schema: Schema) -> Schema:
    """Add the width of a number; make bounds of an integer integers, and a default that is a string a number."""
    if schema["type"] == "number":
        default = schema.get("default")
        return {**schema, "format": "double", **({"default": float(default)} if isinstance(default, str) else {})}
    width = "int32" if "maximum" in schema and schema["maximum"] <= _INT32 else "int64"
    return {**schema, "format": width, **{bound: int(schema[bound]) for bound in _BOUNDS & schema.keys()}}


def _move_default_to_description(schema: Schema) -> Schema:
    if "default" not in schema:
        return schema
    default = schema["default"]
    rest = {name: value for name, value in schema.items() if name != "default"}
    listed = default if isinstance(default, list) else [default]
    values = ", ".join(f"`{value if isinstance(value, str) else json.dumps(value)}`" for value in listed)
    return {**rest, "description": f"{schema['description']} Default: {values}."}


Parameter = dict[str, Any]
_PARAMETER_ORDER = {"sort": 1, "limit": 2, "cursor": 3}

_OF_PLACES = ("provider", "country", "continent")
_OF_CPU_SIZES = (
    *("cpu", "cpu_vendor", "burstable", "min_data_disks", "min_uncached_disk_iops", "min_uncached_disk_mbps"),
    *("local_nvme", "disk_controller", "min_nics", "confidential_computing", "trusted_launch", "fabric"),
    "min_zones",
)
_APPENDED = {"listRetirements": ("past",), "listSizePrices": ("sort",)}
"""Parameters of an operation that came after docs/released/openapi.json, the oldest first. They are its last ones: some
generated clients pass parameters by their place, and would give another one the value."""


def to_parameter(parameter: Parameter) -> Parameter:
    """Return the plain form of a parameter; its value cannot be null, since it is part of a URL."""
    generated = parameter["schema"]
    description = parameter.get("description", generated.get("description", ""))
    schema = to_plain_schema({**generated, "description": description}, in_request=True)
    examples = schema.pop("examples", None)
    description = schema.pop("description")  # with the default, if it was moved there
    if isinstance(schema.get("type"), list):
        schema["type"] = schema["type"][0]
    plain = {"name": parameter["name"], "in": parameter["in"], "description": description}
    plain["required"] = parameter.get("required", False)
    if parameter["in"] == "query":
        plain["allowEmptyValue"] = not plain["required"]
    if schema.get("type") == "array":
        plain |= {"style": "form", "explode": True}
        if schema["items"].get("pattern") == params.PLAIN_TEXT_PATTERN:  # a comma separates two values
            schema["items"] = {**schema["items"], "pattern": params.PLAIN_ITEM_PATTERN}
    example = examples[0] if examples else _default_example(schema)
    return {**plain, "schema": schema, **({} if example is None else {"example": example})}


def sort_parameters(parameters: list[Parameter], operation: str) -> list[Parameter]:
    """Sort parameters: path, required, optional, then sort, limit and cursor, last those that came later."""
    appended = ("", *_APPENDED.get(operation, ()), *_OF_PLACES, *_OF_CPU_SIZES)

    def place(parameter: Parameter) -> tuple[bool, bool, int, int]:
        name = parameter["name"]
        later = appended.index(name) if name in appended else 0
        return parameter["in"] != "path", not parameter["required"], later, _PARAMETER_ORDER.get(name, 0)

    return sorted(parameters, key=place)


def _default_example(schema: Schema) -> Any:
    """Return an example for a parameter without one: its first allowed value, or true; None for a number.

    So a number that is allowed beside another parameter only has none.
    """
    if schema.get("type") == "array":
        return [_default_example(schema["items"])]
    name = schema.get("$ref", "").removeprefix(REFERENCE)
    return ENUMS[name][0] if name in ENUMS else {"boolean": True}.get(schema.get("type", ""))


EXAMPLES = files("app.api.openapi") / "examples"
MAX_ITEMS = 2
"""Objects of a list that an example shows; lists of strings, such as `flags`, are shown whole."""
MAX_STRINGS = 30
"""Strings of a list that are shown whole; longer lists, such as the sources of a revision, are cut to MAX_ITEMS."""


class Example(NamedTuple):
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
    summary = example.path if example.body is None else "The response to the example of a body."
    answers = example.answer.values() if isinstance(example.answer, dict) else ()
    if any(isinstance(item, dict) for answer in answers if isinstance(answer, list) for item in answer):
        summary += " (two objects of each list are shown)"
    (described,) = operation["responses"]["200"]["content"].values()
    add_example(described, summary, example.answer)
    if example.body is not None:
        (described,) = operation["requestBody"]["content"].values()
        add_example(described, operation["summary"], example.body)
    return operation


def add_example(media: dict[str, Any], summary: str, value: Any) -> None:
    """Add an example to a media type object."""
    media["examples"] = {"example": {"summary": summary, "value": value}}


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


def _header(description: str, example: str) -> Response:
    return {"description": description, "schema": {"type": "string"}, "example": example}


HEADERS: Mapping[str, Response] = {
    "ETag": _header(
        "Identifies this response; send it as If-None-Match to get 304 if nothing has changed.",
        'W/"5b1e4a0c9d7f2e6b8a3c1d50"',
    ),
    "Cache-Control": _header(
        "How long a copy may be used without revalidation; no-cache: revalidate each time, by its ETag.", "no-cache"
    ),
    "Link": _header(
        "The OpenAPI document (service-desc); of a list, the next page (next), where there is one.",
        '</openapi.json>; rel="service-desc"',
    ),
    "X-Request-ID": _header(
        "Identifies this request in the service's log: the ID that was sent, or a new one.",
        "0f8fad5bd9cb469fa16570867728950e",
    ),
    "Allow": _header("The methods of this path.", "GET, HEAD, OPTIONS"),
    "Accept-Post": _header("The media types that are accepted.", "application/json"),
    "Content-Range": _header("How long the file is.", "bytes */48213"),
    "Retry-After": {
        "description": "Seconds after which to try again.",
        "schema": {"type": "integer", "format": "int32"},
        "example": 5,
    },
}


class ResponseComponent(NamedTuple):
    """A response that several operations share: 304, or a problem."""

    name: str
    description: str
    headers: tuple[str, ...] = ()
    problem: bool = True


COMMON_RESPONSES: Mapping[int, ResponseComponent] = {
    304: ResponseComponent(
        "NotModified", "The copy that If-None-Match names is still current.", ("ETag", "Cache-Control"), problem=False
    ),
    400: ResponseComponent("BadRequest", "The cursor does not belong to this list in this order."),
    404: ResponseComponent("NotFound", "Nothing has this name; the detail suggests the nearest names."),
    405: ResponseComponent("MethodNotAllowed", "The path has other methods.", ("Allow",)),
    410: ResponseComponent(
        "Gone", "The catalog has changed since the page that gave the cursor: start again without it."
    ),
    412: ResponseComponent("PreconditionFailed", "The file is no longer the one that If-Match names."),
    413: ResponseComponent("ContentTooLarge", "The body is too long."),
    414: ResponseComponent("URITooLong", "The path and the query have more than 8 KiB: send fewer values at once."),
    415: ResponseComponent("UnsupportedMediaType", "The body is not application/json.", ("Accept-Post",)),
    416: ResponseComponent("RangeNotSatisfiable", "The file ends before the requested range.", ("Content-Range",)),
    422: ResponseComponent(
        "UnprocessableContent",
        "A parameter is unknown, out of bounds or contradicts another; `errors` points to each.",
    ),
    500: ResponseComponent("InternalServerError", "An error of the service; no request should cause one."),
    503: ResponseComponent(
        "ServiceUnavailable",
        "The database cannot be reached, or has no catalog yet; the detail says what to do.",
        ("Retry-After",),
    ),
}
"""The responses of most operations, by status."""

_POST_RESPONSES: Mapping[int, ResponseComponent] = {
    400: ResponseComponent("UnreadableBody", "The body is not valid JSON."),
    405: COMMON_RESPONSES[405]._replace(name="PostMethodNotAllowed"),
    422: ResponseComponent(
        "UnprocessableBody", "A field is unknown, out of bounds or contradicts another; `errors` points to each."
    ),
}
_FILE_RESPONSES = {400: ResponseComponent("UnreadableRange", "Range cannot be read.")}


def _of_path(prefix: str) -> dict[int, ResponseComponent]:
    """Return the responses that a POST shares with POST /fit but for their examples, which show its own path."""
    shared = {413: COMMON_RESPONSES[413], 415: COMMON_RESPONSES[415], **_POST_RESPONSES}
    return {status: response._replace(name=f"{prefix}{response.name}") for status, response in shared.items()}


_OPERATION_RESPONSES: Mapping[str, Mapping[int, ResponseComponent]] = {
    "estimateWorkload": _of_path("Estimate"),
    "planRetirements": _of_path("Retirements"),
    "checkQuotas": _of_path("Preflight"),
    "showSeries": {404: COMMON_RESPONSES[404]._replace(name="SeriesNotFound")},
    "showModel": {404: COMMON_RESPONSES[404]._replace(name="ModelNotFound")},
    "exportSizesParquet": _FILE_RESPONSES,
    "exportPricesParquet": _FILE_RESPONSES,
}
"""Responses that differ for some operations, so that each shows an example of its own kind."""

_RESPONSES = (COMMON_RESPONSES, _POST_RESPONSES, *_OPERATION_RESPONSES.values())
PROBLEM_STATUSES: Mapping[str, int] = {
    response.name: status for table in _RESPONSES for status, response in table.items() if response.problem
}
"""The status of every response that is a problem, by the name of its component."""

_COMMON_STATUSES = {405, 422, 500, 503}
_METHOD_STATUSES = {"get": {304}, "post": {400, 413, 415}}


def to_responses(method: str, generated: Mapping[str, Any]) -> dict[str, Response]:
    """Return the responses of an operation: its success, and every error it can return, by status.

    A route declares only the statuses that do not follow from its method, its path and its parameters.
    """
    declared = {int(status) for status in generated["responses"] if status != "200"}
    parameters = [(parameter["in"], parameter["name"]) for parameter in generated.get("parameters", [])]
    named = {404} if "path" in dict(parameters) else set()
    paged = {400, 410} if ("query", "cursor") in parameters else set()
    lists = any(parameter["schema"].get("type") == "array" for parameter in generated.get("parameters", []))
    long = {414} if lists else set()  # one value of each parameter has less than 8 KiB
    statuses = _COMMON_STATUSES | _METHOD_STATUSES[method] | declared | named | paged | long
    documented = {
        **COMMON_RESPONSES,
        **(_POST_RESPONSES if method == "post" else {}),
        **_OPERATION_RESPONSES.get(generated["operationId"], {}),
    }
    errors = {str(status): {"$ref": f"#/components/responses/{documented[status].name}"} for status in sorted(statuses)}
    content = {}
    for media_type, described in generated["responses"]["200"]["content"].items():
        schema = to_plain_schema(described["schema"], in_request=False)
        if media_type == "application/octet-stream":
            schema["format"] = "binary"
        content[media_type] = {**described, "schema": schema}
    caching = ("ETag", "Cache-Control") if method == "get" else ()  # only these may be kept
    success: Response = {"description": "The response.", "headers": _headers(*caching, "Link"), "content": content}
    links = to_links(generated["operationId"])
    return {"200": {**success, "links": links} if links else success, **errors}


def _to_response(component: ResponseComponent) -> Response:
    response: Response = {"description": component.description, "headers": _headers(*component.headers, "Link")}
    if component.problem:
        content: dict[str, Any] = {"schema": {"$ref": f"{REFERENCE}Problem"}}
        problem = find_problem_example(component.name)
        if problem is not None:
            add_example(content, f"{problem['title']}: {problem['instance']}", problem)
        response["content"] = {MEDIA_TYPE: content}
    return response


def _headers(*names: str) -> dict[str, Response]:
    return {name: {"$ref": f"#/components/headers/{_component(name)}"} for name in (*names, "X-Request-ID")}


def _component(header: str) -> str:
    return header.removeprefix("X-").replace("-", "")


Document = dict[str, Any]
LICENSE_URL = "https://opensource.org/license/mit"


def to_openapi30(document: Document) -> Document:
    """Return the service's OpenAPI 3.1 document as OpenAPI 3.0.3."""
    converted: Document = {**deepcopy(document), "openapi": "3.0.3"}
    converted["info"].pop("summary")
    converted["info"]["license"] = {"name": converted["info"]["license"]["name"], "url": LICENSE_URL}
    schemas = converted["components"]["schemas"]
    converted["components"]["schemas"] = {name: _to_schema30(schema) for name, schema in schemas.items()}
    for holder in _schema_holders(converted):
        holder["schema"] = _to_schema30(holder["schema"])
    # Files: without `format`, the clients for Java and of orval would parse them as JSON.
    for operation in (entry for path in converted["paths"].values() for entry in path.values()):
        for media_type, content in operation["responses"]["200"].get("content", {}).items():
            if not media_type.endswith("json"):
                content["schema"]["format"] = "binary"
    return converted


def _schema_holders(document: Document) -> Iterator[dict[str, Any]]:
    """Yield every object outside the components' schemas that has a schema: parameters, headers, contents."""
    components = document["components"]
    responses = list(components["responses"].values())
    for operation in (entry for path in document["paths"].values() for entry in path.values()):
        yield from operation.get("parameters", [])
        yield from operation.get("requestBody", {}).get("content", {}).values()
        responses += operation["responses"].values()
    for response in responses:
        yield from response.get("content", {}).values()
    yield from components["headers"].values()


def _to_schema30(schema: Schema) -> Schema:
    """Convert a schema and those inside it; 3.0 allows no keyword beside a $ref.

    Objects of responses are declared open: otherwise the Go client fails on an unknown field.
    """
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}
    converted = dict(schema)
    if isinstance(schema.get("type"), list):  # 3.0 has one type, and one example
        converted |= {"type": schema["type"][0], "nullable": True}
    if "examples" in schema:
        converted["example"] = converted.pop("examples")[0]
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            converted[inner] = _to_schema30(schema[inner])
    if "properties" in schema:
        converted["properties"] = {name: _to_schema30(part) for name, part in schema["properties"].items()}
        converted.setdefault("additionalProperties", True)
    return converted


SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key as a bearer token."},
    "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "An API key."},
}
"""Two ways to send the same key."""

_UNAUTHORIZED = {
    "description": "The request has no valid API key.",
    "headers": {"WWW-Authenticate": _header("How to send a key.", 'Bearer realm="vmsizes"')},
}
_TOO_MANY = {
    "description": "The client sent more requests than are allowed.",
    "headers": {
        "Retry-After": {"$ref": "#/components/headers/RetryAfter"},
        "RateLimit": _header(
            "How many requests are left, and in how many seconds all of them are available again.", '"default";r=0;t=60'
        ),
    },
}


def add_access(document: Document, *, needs_key: bool, is_limited: bool) -> Document:
    """Add the security schemes to a document, and the responses of requests that are refused for them; return it."""
    if needs_key:
        document["components"]["securitySchemes"] = SCHEMES
        document["security"] = [{name: []} for name in SCHEMES]
        _add_response(document, "401", "Unauthorized", _UNAUTHORIZED)
    if is_limited:
        _add_response(document, "429", "TooManyRequests", _TOO_MANY)
    return document


def _add_response(document: Document, status: str, name: str, response: dict[str, Any]) -> None:
    headers = {**response["headers"], "X-Request-ID": {"$ref": "#/components/headers/RequestID"}}
    content = {MEDIA_TYPE: {"schema": {"$ref": f"{REFERENCE}Problem"}}}
    document["components"]["responses"][name] = {**response, "headers": headers, "content": content}
    for operations in document["paths"].values():
        for operation in operations.values():
            responses = {**operation["responses"], status: {"$ref": f"#/components/responses/{name}"}}
            operation["responses"] = dict(sorted(responses.items()))


LICENSE = {"name": "MIT", "identifier": "MIT"}

TAGS = {
    "sizes": "Find and compare sizes, with their prices and the sources of every value.",
    "prices": "Prices of sizes by region, OS and purchase model.",
    "fit": "Find sizes for a job or a language model, with the number of VMs and the cost; estimate a model's needs.",
    "retirements": "Which sizes retire and when, and which can take their place.",
    "preflight": "Whether the VMs of a plan fit into the quotas of a subscription.",
    "changes": "What ingests changed: prices, sizes, accepted values, disputes and retirements.",
    "exports": "Whole lists as files, for spreadsheets and dashboards.",
    "models": "Language models whose configuration is known.",
    "catalog": "The rest of the catalog: series, GPUs, regions, sources, and where sources disagree.",
}
"""The descriptions of the tags, in the order in which the documentation shows them."""

_SPELLINGS = {"gpus": "GPUs", "csv": "as CSV", "parquet": "as Parquet", "ics": "as iCalendar"}


def to_summary(text: str) -> str:
    """Return the heading for a summary that FastAPI derived from a function's name: `List Gpus` as `List GPUs`."""
    first, *rest = text.lower().split()
    return " ".join([first.capitalize(), *(_SPELLINGS.get(word, word) for word in rest)])


_LOCK = Lock()
"""Models are built when they are first used, and all apps and threads share them, so generation is serialized."""
_OPERATION_KEYS = ("operationId", "tags", "summary", "description", "parameters", "requestBody", "responses")


def openapi_document(app: FastAPI, *, needs_key: bool, is_limited: bool) -> Document:
    """Return the plain document of an app, with keys and limits that are set; it is built with the first call."""
    with _LOCK:
        if app.openapi_schema is None:
            described = [_to_described(route) for route in app.state.routes if isinstance(route, APIRoute)]
            generated = get_openapi(
                title=app.title,
                version=app.version,
                openapi_version=app.openapi_version,
                summary=app.summary,
                description=app.description,
                routes=[route for route in described if route.include_in_schema],
                servers=app.servers,
            )
            plain = to_plain_document(generated)
            app.openapi_schema = add_access(plain, needs_key=needs_key, is_limited=is_limited)
        return app.openapi_schema


def _to_described(route: APIRoute) -> APIRoute:
    """Return a route as the document needs it: with the model of its response, and the id of its operation."""
    model, (first, *rest) = route.response_model, route.name.split("_")
    return APIRoute(
        route.path,
        route.endpoint,
        response_model=model.load() if isinstance(model, LateModel) else model,
        tags=route.tags,
        summary=route.summary,
        description=route.description,
        responses=route.responses,
        methods=route.methods,
        include_in_schema=route.include_in_schema,
        response_class=route.response_class,
        name=route.name,
        operation_id=first + "".join(word.capitalize() for word in rest),  # its function's: `listSizes`
    )


def to_plain_document(generated: Document) -> Document:
    """Build the plain document from FastAPI's, which is not modified; results of app.fit have the names in RESULTS."""
    named = re.sub(rf'(?<="{REFERENCE})\w+', lambda match: RESULTS.get(match[0], match[0]), json.dumps(generated))
    document = json.loads(named)
    document["components"]["schemas"] = {
        RESULTS.get(name, name): schema for name, schema in document["components"]["schemas"].items()
    }
    paths = {
        path: {method: _to_operation(method, operation, document) for method, operation in operations.items()}
        for path, operations in document["paths"].items()
    }
    info, url = document["info"], document["servers"][0]["url"]
    contact = {} if url == "/" else {"contact": {"name": info["title"], "url": url}}  # whoever runs the service
    _, problem = models_json_schema([(Problem, "serialization")], ref_template=REFERENCE + "{model}")
    schemas = _to_schemas({**document["components"]["schemas"], **problem["$defs"]}, paths)
    used = {tag for operations in paths.values() for operation in operations.values() for tag in operation["tags"]}
    return {
        "openapi": document["openapi"],
        "info": {**info, **contact, "license": LICENSE},
        "servers": document["servers"],
        "security": [],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items() if name in used],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {response.name: _to_response(response) for table in _RESPONSES for response in table.values()},
            "headers": {_component(name): dict(header) for name, header in HEADERS.items()},
        },
    }


def _to_operation(method: str, generated: dict[str, Any], document: Document) -> dict[str, Any]:
    operation = {**generated, "summary": to_summary(generated["summary"])}
    operation["responses"] = to_responses(method, generated)
    if "parameters" in generated:
        parameters = sort_parameters(
            [to_parameter(parameter) for parameter in generated["parameters"]], operation["operationId"]
        )
        items = _item_fields(generated, document["components"]["schemas"])
        shown = {"fields": {"example": items[:2]}} if items else {}
        operation["parameters"] = [parameter | shown.get(parameter["name"], {}) for parameter in parameters]
    return with_example({name: operation[name] for name in _OPERATION_KEYS if name in operation})


def _item_fields(operation: dict[str, Any], schemas: Mapping[str, Schema]) -> list[str]:
    """Return the fields of the items of the list that an operation returns; empty if it returns none."""
    for content in operation["responses"]["200"]["content"].values():
        for page in references(content.get("schema")):
            items = schemas[page].get("properties", {}).get("items", {})
            return [field for item in references(items) for field in schemas[item]["properties"]]
    return []


def _to_schemas(schemas: Mapping[str, Schema], paths: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the plain form of every schema that is used; objects of requests are closed, of responses open."""
    operations = [operation for path in paths.values() for operation in path.values()]
    requested = _with_references(
        {name for operation in operations for name in references(operation.get("requestBody"))}, schemas
    )
    returned = _with_references(
        {name for operation in operations for name in references(operation["responses"])} | {"Problem"}, schemas
    )
    plain = {name: to_plain_schema(schemas[name], in_request=True) for name in requested}
    plain |= {name: to_plain_schema(schemas[name], in_request=False) for name in returned}
    enums = set(references([plain, [operation.get("parameters") for operation in operations]])) & ENUMS.keys()
    return dict(sorted({**plain, **{name: to_enum(name) for name in enums}}.items()))


def _with_references(names: set[str], schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of schemas together with those of all schemas that they refer to."""
    reached, new = set(names), set(names)
    while new:
        new = {inner for name in new for inner in references(schemas[name])} - reached
        reached |= new
    return reached
