"""Schemas in a form that typed languages have: one type each, numbers with a width, no unions and no noise."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from app.api.schemas.architecture import AttentionKind, MlpKind, QkNormKind
from app.api.schemas.estimate_request import ActivationFormula, Loading, Offload, Recompute, TrainingMethod
from app.api.schemas.fit_request import Include, Sort
from app.catalog.queries.fit_params import FitSort, ResourceInclude
from app.catalog.queries.params import PLAIN_ITEM_PATTERN, PLAIN_TEXT_PATTERN, Arch, Os, Purchase, Status
from app.fit.formulas.memory import BITS
from app.fit.formulas.optimizer import LORA_MODULES, RECIPES

ENUMS: Mapping[str, tuple[str, ...]] = {
    "Os": get_args(Os),
    "Purchase": get_args(Purchase),
    "Arch": get_args(Arch),
    "SizeStatus": get_args(Status),
    "FitSort": get_args(Sort),
    "FitInclude": get_args(Include),
    "ResourceSort": get_args(FitSort),
    "ResourceInclude": get_args(ResourceInclude),
    "Dtype": tuple(BITS),
    "Attention": get_args(AttentionKind),
    "Mlp": get_args(MlpKind),
    "QkNorm": get_args(QkNormKind),
    "TrainingMethod": get_args(TrainingMethod),
    "Recipe": tuple(RECIPES),
    "Offload": get_args(Offload),
    "Loading": get_args(Loading),
    "LoraModule": tuple(LORA_MODULES),
    "Recompute": get_args(Recompute),
    "ActivationFormula": get_args(ActivationFormula),
}
"""What each set of words is called. Two sets of the same words are one type."""


def enum_name(words: Iterable[str]) -> str:
    """Name a set of words; raises LookupError for one that has no name yet."""
    asked = list(words)
    for name, known in ENUMS.items():
        if sorted(known) == sorted(asked):
            return name
    raise LookupError(f"The words {asked} of a request have no name: give them one in app/api/openapi/schemas.py.")


def to_enum(name: str) -> dict[str, Any]:
    """The component of an enumeration.

    `x-enum-varnames` gives each member a name that no other enumeration has: Go has one room for all of them.
    """
    words = ENUMS[name]
    return {"type": "string", "enum": list(words), "x-enum-varnames": [_enum_member(name, word) for word in words]}


def _enum_member(name: str, word: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return f"{spaced}_{word}".upper()


Schema = dict[str, Any]
REFERENCE = "#/components/schemas/"
_INT32 = 2**31 - 1
_NULL = {"type": "null"}
_BOUNDS = {"minimum", "maximum", "multipleOf"}
_SCALARS = {"number", "integer", "string", "boolean"}


def to_plain_schema(schema: Schema, *, in_request: bool) -> Schema:
    """Bring a schema, and all that lies in it, to one type; `asked` says that it is of a request, not of an answer.

    Null becomes a second type of a number, a text or a boolean. A part (a `$ref`) is never null: it is left out.
    """
    chosen, nullable = _unwrap_union(schema)
    plain = {name: value for name, value in chosen.items() if name != "title"}
    if "enum" in plain or "const" in plain:
        plain = _with_enum_reference(plain, asked=in_request)
    if plain.get("type") in {"number", "integer"}:
        plain = _with_number_format(plain)
    if nullable and plain.get("type") in _SCALARS:
        plain["type"] = [plain["type"], "null"]
    for inner in ("items", "additionalProperties"):
        if isinstance(plain.get(inner), dict):
            plain[inner] = to_plain_schema(plain[inner], in_request=in_request)
    if "properties" in plain:
        plain["properties"] = {
            name: to_plain_schema(part, in_request=in_request) for name, part in plain["properties"].items()
        }
        plain = _close_request(plain) if in_request else _open_response(plain)
    return _with_described_default(plain)


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


def _unwrap_union(schema: Schema) -> tuple[Schema, bool]:
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


def _with_enum_reference(schema: Schema, *, asked: bool) -> Schema:
    """Refer to an enumeration in a request; in an answer the words are texts, since new ones may come."""
    rest = {name: value for name, value in schema.items() if name not in {"enum", "const"}}
    if not asked:
        return rest
    words = schema["enum"] if "enum" in schema else [schema["const"]]
    kept = {name: value for name, value in rest.items() if name in {"description", "default", "examples"}}
    return {"$ref": REFERENCE + enum_name(words), **kept}


def _with_number_format(schema: Schema) -> Schema:
    """Say how wide a number is; bounds and default of an integer are integers, a default in digits is a number."""
    if schema["type"] == "number":
        default = schema.get("default")
        return {**schema, "format": "double", **({"default": float(default)} if isinstance(default, str) else {})}
    width = "int32" if "maximum" in schema and schema["maximum"] <= _INT32 else "int64"
    return {**schema, "format": width, **{bound: int(schema[bound]) for bound in _BOUNDS & schema.keys()}}


def _close_request(schema: Schema) -> Schema:
    """Nothing unknown may be sent. In TypeScript, a field with a default would be one that must be sent."""
    told = {name: _move_default_to_description(part) for name, part in schema["properties"].items()}
    return {**schema, "properties": told, "additionalProperties": False}


def _open_response(schema: Schema) -> Schema:
    """New fields may come; of those that there are, every one is given but the parts that pydantic leaves out."""
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def _with_described_default(schema: Schema) -> Schema:
    """Keep the default of a single value; generators stumble over others, so they are told in words."""
    if "default" not in schema:
        return schema
    default = schema["default"]
    told = {name: value for name, value in schema.items() if name != "default"}
    if default is None or default in ([], {}) or isinstance(default, dict):
        return told
    return schema if "$ref" not in schema and not isinstance(default, list) else _move_default_to_description(schema)


def _move_default_to_description(schema: Schema) -> Schema:
    if "default" not in schema:
        return schema
    default = schema["default"]
    told = {name: value for name, value in schema.items() if name != "default"}
    words = ", ".join(_format_value(value) for value in (default if isinstance(default, list) else [default]))
    return {**told, "description": f"{schema['description']} Default: {words}."}


def _format_value(value: Any) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


Parameter = dict[str, Any]
_PARAMETER_ORDER = {"sort": 1, "limit": 2, "cursor": 3}


def to_parameter(parameter: Parameter) -> Parameter:
    """Bring a parameter to its plain form; a value of a URL cannot be null."""
    told = parameter["schema"]
    described = {"description": parameter.get("description", told.get("description", ""))}
    schema = to_plain_schema({**told, **described}, in_request=True)
    examples = schema.pop("examples", None)
    description = schema.pop("description")
    if isinstance(schema.get("type"), list):
        schema["type"] = schema["type"][0]
    plain = {"name": parameter["name"], "in": parameter["in"], "description": description}
    plain["required"] = parameter.get("required", False)
    if parameter["in"] == "query":
        plain["allowEmptyValue"] = not plain["required"]
    if schema.get("type") == "array":
        plain |= {"style": "form", "explode": True}
        schema["items"] = _without_commas(schema["items"])
    return {**plain, "schema": schema, "example": examples[0] if examples else _default_example(schema)}


def with_fields_example(parameter: Parameter, items: list[str]) -> Parameter:
    """Show as an example of `fields` the first two that the items of the list have."""
    return {**parameter, "example": items[:2]} if parameter["name"] == "fields" and items else parameter


def sort_parameters(parameters: list[Parameter]) -> list[Parameter]:
    """The path first, then what must be said, what may be, order and page: the order of arguments in some clients."""
    return sorted(
        parameters, key=lambda one: (one["in"] != "path", not one["required"], _PARAMETER_ORDER.get(one["name"], 0))
    )


def _without_commas(item: Schema) -> Schema:
    """A comma separates two values of a list, so no value holds one."""
    return {**item, "pattern": PLAIN_ITEM_PATTERN} if item.get("pattern") == PLAIN_TEXT_PATTERN else item


def _default_example(schema: Schema) -> Any:
    """What a parameter may be where the question's model gives no example: a word of those allowed, or true."""
    if schema.get("type") == "array":
        return [_default_example(schema["items"])]
    name = schema.get("$ref", "").removeprefix(REFERENCE)
    return ENUMS[name][0] if name in ENUMS else {"boolean": True}.get(schema.get("type", ""))
