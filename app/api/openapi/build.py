"""The whole document: FastAPI's, with every part in its plain form, and only what is referred to."""

from collections.abc import Mapping
from copy import deepcopy
from threading import Lock
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema

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

LICENSE = {"name": "MIT", "identifier": "MIT"}

TAGS = {
    "sizes": "Look sizes up, compare them, and see who says what of them and what they cost.",
    "prices": "What sizes cost, by region, system and purchase model.",
    "fit": "Which sizes hold a job or a language model, on how many VMs, at what cost; and what a model needs.",
    "exports": "Whole lists as files, for spreadsheets and dashboards.",
    "models": "Language models whose configuration is known.",
    "catalog": "What the catalog is made of: series, GPUs, regions, sources, and where sources disagree.",
}
"""What each tag holds, in the order in which the documentation shows them."""

_SPELLINGS = {"gpus": "GPUs", "csv": "as CSV", "parquet": "as Parquet"}


def to_info(info: dict[str, Any], url: str) -> dict[str, Any]:
    """Say where to turn, and what may be done with it.

    That is where the service is reached, where this is known: `/` is no URL to generators, and they refuse it.
    """
    contact = {"name": info["title"], **({"url": url} if url != "/" else {})}
    return {**info, "contact": contact, "license": LICENSE}


def to_summary(words: str) -> str:
    """Write what FastAPI takes from a function's name, `List Gpus`, as a heading: `List GPUs`."""
    first, *rest = words.lower().split()
    return " ".join([first.capitalize(), *(_SPELLINGS.get(word, word) for word in rest)])


_LOCK = Lock()
"""What FastAPI finds out of a router while it describes it is shared by all apps, and by all threads."""
_OPERATION_KEYS = ("operationId", "tags", "summary", "description", "parameters", "requestBody", "responses")


def operation_id(route: APIRoute) -> str:
    """Name an operation as its function is named, in lowerCamelCase: `listSizes`."""
    first, *rest = route.name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def install_openapi(app: FastAPI) -> None:
    """Let the app describe itself in the plain form; it is made once."""
    generate = app.openapi

    def openapi() -> Document:
        with _LOCK:
            if app.openapi_schema is None:
                app.openapi_schema = to_plain_document(generate())
            return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's own way to extend the document


def to_plain_document(told: Document) -> Document:
    """Bring FastAPI's document to the plain form; `told` stays as it is."""
    told = deepcopy(told)
    paths = {
        path: {method: _to_operation(method, one, told) for method, one in operations.items()}
        for path, operations in told["paths"].items()
    }
    responses = response_components()
    schemas = _to_schemas({**told["components"]["schemas"], **_problem_schemas()}, paths)
    used = {tag for operations in paths.values() for one in operations.values() for tag in one["tags"]}
    return {
        "openapi": told["openapi"],
        "info": to_info(told["info"], told["servers"][0]["url"]),
        "servers": told["servers"],
        "security": [],
        "tags": [{"name": name, "description": said} for name, said in TAGS.items() if name in used],
        "paths": paths,
        "components": {"schemas": schemas, "responses": responses, "headers": header_components()},
    }


def _to_operation(method: str, told: dict[str, Any], document: Document) -> dict[str, Any]:
    operation = {**told, "summary": to_summary(told["summary"])}
    operation["responses"] = to_responses(method, told)
    if "parameters" in told:
        parameters = sort_parameters([to_parameter(one) for one in told["parameters"]])
        items = _item_fields(told, document["components"]["schemas"])
        operation["parameters"] = [with_fields_example(one, items) for one in parameters]
    return with_example({name: operation[name] for name in _OPERATION_KEYS if name in operation})


def _item_fields(told: dict[str, Any], schemas: Mapping[str, Schema]) -> list[str]:
    """The fields of the items that an operation answers with; none where it is no list."""
    for content in told["responses"]["200"]["content"].values():
        for page in references(content.get("schema")):
            items = schemas[page].get("properties", {}).get("items", {})
            return [field for item in references(items) for field in schemas[item]["properties"]]
    return []


def _problem_schemas() -> dict[str, Schema]:
    _, shapes = models_json_schema([(Problem, "serialization")], ref_template=REFERENCE + "{model}")
    return dict(shapes["$defs"])


def _to_schemas(told: Mapping[str, Schema], paths: Mapping[str, Any]) -> dict[str, Schema]:
    """Every schema that is referred to, in its plain form: of requests closed, of answers open."""
    operations = [one for path in paths.values() for one in path.values()]
    asked = _with_references({name for one in operations for name in references(one.get("requestBody"))}, told)
    given = _with_references({name for one in operations for name in references(one["responses"])} | {"Problem"}, told)
    plain = {name: to_plain_schema(told[name], in_request=True) for name in asked}
    plain |= {name: to_plain_schema(told[name], in_request=False) for name in given}
    words = set(references([plain, [one.get("parameters") for one in operations]])) & ENUMS.keys()
    return dict(sorted({**plain, **{name: to_enum(name) for name in words}}.items()))


def _with_references(names: set[str], told: Mapping[str, Schema]) -> set[str]:
    """The names, and those of all that they are made of."""
    found, new = set(names), set(names)
    while new:
        new = {inner for name in new for inner in references(told[name])} - found
        found |= new
    return found
