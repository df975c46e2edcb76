"""Builds the OpenAPI document from FastAPI's: every part in its plain form, without unused schemas."""

from collections.abc import Mapping
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

from app.api.openapi.access import with_access
from app.api.openapi.examples import with_example
from app.api.openapi.openapi30 import Document
from app.api.openapi.responses import header_components, response_components, to_responses
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
from app.http.problems import Problem
from app.late_models import LateModel
from app.schemas.estimate_response import RESULTS

LICENSE = {"name": "MIT", "identifier": "MIT"}

TAGS = {
    "sizes": "Find and compare sizes, with their prices and the sources of every value.",
    "prices": "Prices of sizes by region, OS and purchase model.",
    "fit": "Find sizes for a job or a language model, with the number of VMs and the cost; estimate a model's needs.",
    "retirements": "Which sizes retire and when, and which can take their place.",
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
