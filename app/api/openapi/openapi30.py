"""The document in OpenAPI 3.0.3, for the generators that do not read 3.1: the same contract, older words."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from app.api.openapi.schemas import Schema

Document = dict[str, Any]
LICENSE_URL = "https://opensource.org/license/mit"


def to_openapi30(document: Document) -> Document:
    """Write an OpenAPI 3.1 document of ours as OpenAPI 3.0.3."""
    converted: Document = {**deepcopy(document), "openapi": "3.0.3"}
    converted["info"].pop("summary")
    converted["info"]["license"] = {"name": converted["info"]["license"]["name"], "url": LICENSE_URL}
    schemas = converted["components"]["schemas"]
    converted["components"]["schemas"] = {name: _to_schema30(schema) for name, schema in schemas.items()}
    for place in _schema_holders(converted):
        place["schema"] = _to_schema30(place["schema"])
    for file in _file_contents(converted):
        file["schema"]["format"] = "binary"
    return converted


def _file_contents(document: Document) -> Iterator[dict[str, Any]]:
    """Answers that are files: as plain text, the clients for Java and of orval would read them as JSON."""
    for operation in (one for path in document["paths"].values() for one in path.values()):
        for media_type, content in operation["responses"]["200"].get("content", {}).items():
            if not media_type.endswith("json"):
                yield content


def _schema_holders(document: Document) -> Iterator[dict[str, Any]]:
    """Everything outside the components' schemas that has a schema: parameters, headers, bodies, answers."""
    components = document["components"]
    answers = list(components["responses"].values())
    for operation in (one for path in document["paths"].values() for one in path.values()):
        yield from operation.get("parameters", [])
        yield from operation.get("requestBody", {}).get("content", {}).values()
        answers += operation["responses"].values()
    for answer in answers:
        yield from answer.get("content", {}).values()
    yield from components["headers"].values()


def _to_schema30(schema: Schema) -> Schema:
    """Write one schema, and all that lies in it, in the words of 3.0; beside a $ref nothing may stand.

    Answers say that they are open: the Go client takes an unknown field for an error otherwise.
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
    """No list of types, and one example."""
    converted = dict(schema)
    if isinstance(schema.get("type"), list):
        converted |= {"type": schema["type"][0], "nullable": True}
    if "examples" in schema:
        converted["example"] = converted.pop("examples")[0]
    return converted
