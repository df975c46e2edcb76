"""Converts the document to OpenAPI 3.0.3, for generators that do not read 3.1."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from app.api.openapi.schemas import Schema

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
