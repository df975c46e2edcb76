"""Iterators over the parts of an OpenAPI document, each with a location for error messages."""

from collections.abc import Iterator
from typing import Any

Part = dict[str, Any]
Located = tuple[str, Part]


def operations(document: Part) -> Iterator[Located]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


def parameters(document: Part) -> Iterator[Located]:
    for location, operation in operations(document):
        for parameter in operation.get("parameters", []):
            yield f"{location} ?{parameter['name']}", parameter


def contents(document: Part) -> Iterator[tuple[str, str, Part]]:
    """Yield every media type object of requests and responses, with its location and its media type."""
    for location, operation in operations(document):
        bodies = [("body", operation.get("requestBody", {})), *operation["responses"].items()]
        for name, body in bodies:
            for media_type, content in body.get("content", {}).items():
                yield f"{location} {name}", media_type, content
    for name, response in document["components"]["responses"].items():
        for media_type, content in response.get("content", {}).items():
            yield f"response {name}", media_type, content


def schemas(document: Part) -> Iterator[Located]:
    """Yield every schema at every depth."""
    for name, schema in document["components"]["schemas"].items():
        yield from _within(name, schema)
    for location, parameter in parameters(document):
        yield from _within(location, parameter["schema"])
    for location, _, content in contents(document):
        yield from _within(location, content["schema"])


def properties(document: Part) -> Iterator[Located]:
    for name, schema in document["components"]["schemas"].items():
        for field, inner in schema.get("properties", {}).items():
            yield f"{name}.{field}", inner


def components(document: Part, *, in_request: bool) -> Iterator[Located]:
    """Yield the object schemas that requests, or else responses, use."""
    roots = [
        operation.get("requestBody") if in_request else operation["responses"] for _, operation in operations(document)
    ]
    found = references(roots if in_request else [*roots, document["components"]["responses"]], document)
    for name in sorted(found):
        if "properties" in document["components"]["schemas"][name]:
            yield name, document["components"]["schemas"][name]


def references(part: Any, document: Part) -> set[str]:
    """Return the names of the schemas that a part uses, at any depth."""
    found, new = set(), set(_targets(part))
    while new:
        found |= new
        new = {inner for name in new for inner in _targets(document["components"]["schemas"][name])} - found
    return found


def _targets(part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        if str(part.get("$ref", "")).startswith("#/components/schemas/"):
            yield part["$ref"].rpartition("/")[2]
        part = [value for name, value in part.items() if name not in {"example", "examples"}]
    if isinstance(part, list):
        for inner in part:
            yield from _targets(inner)


def _within(location: str, schema: Part) -> Iterator[Located]:
    yield location, schema
    for name, inner in schema.get("properties", {}).items():
        yield from _within(f"{location}.{name}", inner)
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield from _within(f"{location}.{name}", schema[name])
    for name in ("anyOf", "oneOf", "allOf"):
        for number, inner in enumerate(schema.get(name, [])):
            yield from _within(f"{location}.{name}.{number}", inner)
