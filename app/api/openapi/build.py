"""Builds the OpenAPI document from FastAPI's, every part in its plain form, without unused schemas; and OpenAPI 3.0."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from app.api.openapi.responses import header_components, response_components, to_responses, with_example
from app.api.openapi.schemas import (
    ENUMS,
    REFERENCE,
    Schema,
    references,
    sort_parameters,
    to_enum,
    to_parameter,
    to_plain_schema,
    with_fields_example,
)
from app.http.problems import MEDIA_TYPE, Problem
from app.late_models import LateModel
from app.schemas.fit_response import RESULTS

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
    for file in _file_contents(converted):
        file["schema"]["format"] = "binary"
    return converted


def _file_contents(document: Document) -> Iterator[dict[str, Any]]:
    """Yield the contents of files; without `format`, the clients for Java and of orval would parse them as JSON."""
    for operation in (one for path in document["paths"].values() for one in path.values()):
        for media_type, content in operation["responses"]["200"].get("content", {}).items():
            if not media_type.endswith("json"):
                yield content


def _schema_holders(document: Document) -> Iterator[dict[str, Any]]:
    """Yield every object outside the components' schemas that has a schema: parameters, headers, contents."""
    components = document["components"]
    responses = list(components["responses"].values())
    for operation in (one for path in document["paths"].values() for one in path.values()):
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
    converted = _with_30_keywords(schema)
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            converted[inner] = _to_schema30(schema[inner])
    if "properties" in schema:
        converted["properties"] = {name: _to_schema30(part) for name, part in schema["properties"].items()}
        converted.setdefault("additionalProperties", True)
    return converted


def _with_30_keywords(schema: Schema) -> Schema:
    """Replace the keywords that 3.0 lacks: a list of types, and several examples."""
    converted = dict(schema)
    if isinstance(schema.get("type"), list):
        converted |= {"type": schema["type"][0], "nullable": True}
    if "examples" in schema:
        converted["example"] = converted.pop("examples")[0]
    return converted


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


def to_info(info: dict[str, Any], url: str) -> dict[str, Any]:
    """Return the info object with its license, and with whoever runs the service as contact if its URL is known."""
    contact = {} if url == "/" else {"contact": {"name": info["title"], "url": url}}
    return {**info, **contact, "license": LICENSE}


def to_summary(text: str) -> str:
    """Return the heading for a summary that FastAPI derived from a function's name: `List Gpus` as `List GPUs`."""
    first, *rest = text.lower().split()
    return " ".join([first.capitalize(), *(_SPELLINGS.get(word, word) for word in rest)])


_LOCK = Lock()
"""Models are built when they are first used, and all apps and threads share them, so generation is serialized."""
_OPERATION_KEYS = ("operationId", "tags", "summary", "description", "parameters", "requestBody", "responses")


def operation_id(route: APIRoute) -> str:
    """Return the operationId of a route: its function's name in lowerCamelCase, `listSizes`."""
    first, *rest = route.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def openapi_document(app: FastAPI, *, needs_key: bool, is_limited: bool) -> Document:
    """Return the plain document of an app, with keys and limits that are set; it is built with the first call."""
    with _LOCK:
        if app.openapi_schema is None:
            plain = to_plain_document(_generate(app))
            app.openapi_schema = with_access(plain, needs_key=needs_key, is_limited=is_limited)
        return app.openapi_schema


def _generate(app: FastAPI) -> Document:
    """Return FastAPI's document of an app, of routes with the models that those of the app import late."""
    described = [_to_described(route) for route in app.state.routes if isinstance(route, APIRoute)]
    return get_openapi(
        title=app.title,
        version=app.version,
        openapi_version=app.openapi_version,
        summary=app.summary,
        description=app.description,
        routes=[route for route in described if route.include_in_schema],
        servers=app.servers,
    )


def _to_described(route: APIRoute) -> APIRoute:
    """Return a route as the document needs it: with the model of its response, and the id of its operation."""
    model = route.response_model
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
        operation_id=operation_id(route),
    )


def to_plain_document(generated: Document) -> Document:
    """Build the plain document from FastAPI's, which is not modified."""
    document = _with_names(generated)
    document["components"]["schemas"] = {
        RESULTS.get(name, name): schema for name, schema in document["components"]["schemas"].items()
    }
    paths = {
        path: {method: _to_operation(method, one, document) for method, one in operations.items()}
        for path, operations in document["paths"].items()
    }
    responses = response_components()
    schemas = _to_schemas({**document["components"]["schemas"], **_problem_schemas()}, paths)
    used = {tag for operations in paths.values() for one in operations.values() for tag in one["tags"]}
    return {
        "openapi": document["openapi"],
        "info": to_info(document["info"], document["servers"][0]["url"]),
        "servers": document["servers"],
        "security": [],
        "tags": [{"name": name, "description": description} for name, description in TAGS.items() if name in used],
        "paths": paths,
        "components": {"schemas": schemas, "responses": responses, "headers": header_components()},
    }


def _with_names(part: Any) -> Any:
    """Return a copy of a part of a document whose references name results of app.fit as clients know them."""
    if isinstance(part, list):
        return [_with_names(inner) for inner in part]
    if not isinstance(part, dict):
        return part
    copy = {name: _with_names(inner) for name, inner in part.items()}
    for name in references({"$ref": part.get("$ref")}):
        copy["$ref"] = f"{REFERENCE}{RESULTS.get(name, name)}"
    return copy


def _to_operation(method: str, generated: dict[str, Any], document: Document) -> dict[str, Any]:
    operation = {**generated, "summary": to_summary(generated["summary"])}
    operation["responses"] = to_responses(method, generated)
    if "parameters" in generated:
        parameters = sort_parameters([to_parameter(one) for one in generated["parameters"]], operation["operationId"])
        items = _item_fields(generated, document["components"]["schemas"])
        operation["parameters"] = [with_fields_example(one, items) for one in parameters]
    return with_example({name: operation[name] for name in _OPERATION_KEYS if name in operation})


def _item_fields(operation: dict[str, Any], schemas: Mapping[str, Schema]) -> list[str]:
    """Return the fields of the items of the list that an operation returns; empty if it returns none."""
    for content in operation["responses"]["200"]["content"].values():
        for page in references(content.get("schema")):
            items = schemas[page].get("properties", {}).get("items", {})
            return [field for item in references(items) for field in schemas[item]["properties"]]
    return []


def _problem_schemas() -> dict[str, Schema]:
    _, schemas = models_json_schema([(Problem, "serialization")], ref_template=REFERENCE + "{model}")
    return dict(schemas["$defs"])


def _to_schemas(schemas: Mapping[str, Schema], paths: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the plain form of every schema that is used; objects of requests are closed, of responses open."""
    operations = [one for path in paths.values() for one in path.values()]
    requested = _with_references({name for one in operations for name in references(one.get("requestBody"))}, schemas)
    returned = _with_references(
        {name for one in operations for name in references(one["responses"])} | {"Problem"}, schemas
    )
    plain = {name: to_plain_schema(schemas[name], in_request=True) for name in requested}
    plain |= {name: to_plain_schema(schemas[name], in_request=False) for name in returned}
    enums = set(references([plain, [one.get("parameters") for one in operations]])) & ENUMS.keys()
    return dict(sorted({**plain, **{name: to_enum(name) for name in enums}}.items()))


def _with_references(names: set[str], schemas: Mapping[str, Schema]) -> set[str]:
    """Return the names of schemas together with those of all schemas that they refer to."""
    reached, new = set(names), set(names)
    while new:
        new = {inner for name in new for inner in references(schemas[name])} - reached
        reached |= new
    return reached
