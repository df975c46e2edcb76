"""Schemas in a form that typed languages have: one type each, numbers with a width, no unions and no noise."""

import json
from collections.abc import Iterator
from typing import Any

from app.api.openapi.words import enum_name

Schema = dict[str, Any]
REFERENCE = "#/components/schemas/"
_INT32 = 2**31 - 1
_NULL = {"type": "null"}
_BOUNDS = {"minimum", "maximum", "multipleOf"}
_VALUES = {"number", "integer", "string", "boolean"}


def to_plain(schema: Schema, *, asked: bool) -> Schema:
    """Bring a schema, and all that lies in it, to one type; `asked` says that it is of a request, not of an answer.

    Null becomes a second type of a number, a text or a boolean. A part (a `$ref`) is never null: it is left out.
    """
    chosen, nullable = _one_type(schema)
    plain = {name: value for name, value in chosen.items() if name != "title"}
    if "enum" in plain or "const" in plain:
        plain = _with_words(plain, asked=asked)
    if plain.get("type") in {"number", "integer"}:
        plain = _as_number(plain)
    if nullable and plain.get("type") in _VALUES:
        plain["type"] = [plain["type"], "null"]
    for inner in ("items", "additionalProperties"):
        if isinstance(plain.get(inner), dict):
            plain[inner] = to_plain(plain[inner], asked=asked)
    if "properties" in plain:
        plain["properties"] = {name: to_plain(part, asked=asked) for name, part in plain["properties"].items()}
        plain = _closed(plain) if asked else _open(plain)
    return _with_default_told(plain)


def references(part: Any) -> Iterator[str]:
    """The names of the schemas that any part of a document refers to."""
    if isinstance(part, dict):
        target = part.get("$ref")
        if isinstance(target, str) and target.startswith(REFERENCE):
            yield target.removeprefix(REFERENCE)
        part = list(part.values())
    if isinstance(part, list):
        for inner in part:
            yield from references(inner)


def _one_type(schema: Schema) -> tuple[Schema, bool]:
    """Choose one of several types; what may be a number may also be its digits, and is called a number.

    What is left of a mixture says nothing of its type: it is any JSON value.
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


def _with_words(schema: Schema, *, asked: bool) -> Schema:
    """Refer to an enumeration in a request; in an answer the words are texts, since new ones may come."""
    rest = {name: value for name, value in schema.items() if name not in {"enum", "const"}}
    if not asked:
        return rest
    words = schema["enum"] if "enum" in schema else [schema["const"]]
    kept = {name: value for name, value in rest.items() if name in {"description", "default", "examples"}}
    return {"$ref": REFERENCE + enum_name(words), **kept}


def _as_number(schema: Schema) -> Schema:
    """Say how wide a number is; bounds and default of an integer are integers, a default in digits is a number."""
    if schema["type"] == "number":
        default = schema.get("default")
        return {**schema, "format": "double", **({"default": float(default)} if isinstance(default, str) else {})}
    width = "int32" if "maximum" in schema and schema["maximum"] <= _INT32 else "int64"
    return {**schema, "format": width, **{bound: int(schema[bound]) for bound in _BOUNDS & schema.keys()}}


def _closed(schema: Schema) -> Schema:
    """Nothing unknown may be sent. In TypeScript, a field with a default would be one that must be sent."""
    told = {name: _default_in_words(part) for name, part in schema["properties"].items()}
    return {**schema, "properties": told, "additionalProperties": False}


def _open(schema: Schema) -> Schema:
    """New fields may come; of those that there are, every one is given but the parts that pydantic leaves out."""
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def _with_default_told(schema: Schema) -> Schema:
    """Keep the default of a single value; generators stumble over others, so they are told in words."""
    if "default" not in schema:
        return schema
    default = schema["default"]
    told = {name: value for name, value in schema.items() if name != "default"}
    if default is None or default in ([], {}) or isinstance(default, dict):
        return told
    return schema if "$ref" not in schema and not isinstance(default, list) else _default_in_words(schema)


def _default_in_words(schema: Schema) -> Schema:
    if "default" not in schema:
        return schema
    default = schema["default"]
    told = {name: value for name, value in schema.items() if name != "default"}
    words = ", ".join(_word(value) for value in (default if isinstance(default, list) else [default]))
    return {**told, "description": f"{schema['description']} Default: {words}."}


def _word(value: Any) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
