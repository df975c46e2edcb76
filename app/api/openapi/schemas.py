"""Converts schemas to a form that typed languages can express: one type each, sized numbers, no unions, no titles."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from app.catalog.changes import CHANGE_KINDS
from app.catalog.disks import DISK_TYPES, REDUNDANCIES
from app.catalog.price_checks import Rule
from app.catalog.providers import PROVIDER_IDS
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.params import (
    PLAIN_ITEM_PATTERN,
    PLAIN_TEXT_PATTERN,
    Arch,
    Category,
    FitSort,
    Os,
    ResourceInclude,
    Status,
)
from app.catalog.queries.prices import PriceSort
from app.catalog.regions import CONTINENTS
from app.fit.formulas.optimizer import LORA_MODULES, RECIPES
from app.fit.formulas.quantization import BITS
from app.fit.successors import FEATURE_NAMES
from app.schemas.estimate_request import (
    ActivationFormula,
    Arrivals,
    AttentionKind,
    Confidence,
    CrossEntropy,
    Engine,
    Link,
    Loading,
    MlpKind,
    Network,
    Offload,
    Precision,
    QkNormKind,
    Recompute,
    TrainingMethod,
)
from app.schemas.fit_request import Include, Sort

ENUMS: Mapping[str, tuple[str, ...]] = {
    "Os": get_args(Os),
    "Purchase": PURCHASE_MODELS,
    "Arch": get_args(Arch),
    "ProviderId": PROVIDER_IDS,
    "Continent": CONTINENTS,
    "SizeCategory": get_args(Category),
    "SizeStatus": get_args(Status),
    "DiskType": DISK_TYPES,
    "Redundancy": REDUNDANCIES,
    "ChangeKind": CHANGE_KINDS,
    "PriceRule": get_args(Rule),
    "PriceSort": get_args(PriceSort),
    "FitSort": get_args(Sort),
    "FitInclude": get_args(Include),
    "ResourceSort": get_args(FitSort),
    "ResourceInclude": get_args(ResourceInclude),
    "Feature": FEATURE_NAMES,
    "Dtype": tuple(BITS),
    "Attention": get_args(AttentionKind),
    "Mlp": get_args(MlpKind),
    "QkNorm": get_args(QkNormKind),
    "Engine": get_args(Engine),
    "Arrivals": get_args(Arrivals),
    "Confidence": get_args(Confidence),
    "Link": get_args(Link),
    "Network": get_args(Network),
    "TrainingMethod": get_args(TrainingMethod),
    "Recipe": tuple(RECIPES),
    "Precision": get_args(Precision),
    "Offload": get_args(Offload),
    "Loading": get_args(Loading),
    "LoraModule": tuple(LORA_MODULES),
    "Recompute": get_args(Recompute),
    "CrossEntropy": get_args(CrossEntropy),
    "ActivationFormula": get_args(ActivationFormula),
}
"""The enumerations of requests by name. Two with the same values are one type."""


def enum_name(values: Iterable[str]) -> str:
    """Return the name of the enumeration with these values; raises LookupError if there is none."""
    wanted = sorted(values)
    for name, known in ENUMS.items():
        if sorted(known) == wanted:
            return name
    raise LookupError(f"No enumeration has the values {wanted}: add one to ENUMS in app/api/openapi/schemas.py.")


def to_enum(name: str) -> dict[str, Any]:
    """Return the component of an enumeration.

    `x-enum-varnames` makes the names of members unique, since Go puts those of all enumerations in one namespace.
    """
    values = ENUMS[name]
    return {"type": "string", "enum": list(values), "x-enum-varnames": [_enum_member(name, value) for value in values]}


def _enum_member(name: str, value: str) -> str:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return f"{spaced}_{value}".upper()


Schema = dict[str, Any]
REFERENCE = "#/components/schemas/"
_INT32 = 2**31 - 1
_NULL = {"type": "null"}
_BOUNDS = {"minimum", "maximum", "multipleOf"}
_SCALARS = {"number", "integer", "string", "boolean"}


def to_plain_schema(schema: Schema, *, in_request: bool) -> Schema:
    """Return a schema, and those inside it, with one type each; `in_request` tells requests from responses.

    Null becomes a second type of a number, a string or a boolean. An object (a `$ref`) is never null: it is left out.
    """
    chosen, nullable = _unwrap_union(schema)
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
        plain["properties"] = {
            name: to_plain_schema(part, in_request=in_request) for name, part in plain["properties"].items()
        }
        plain = _close_request(plain) if in_request else _open_response(plain)
    return _with_described_default(plain)


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


def _close_request(schema: Schema) -> Schema:
    """Forbid unknown fields, and move defaults to descriptions: TypeScript requires a field that has a default."""
    properties = {name: _move_default_to_description(part) for name, part in schema["properties"].items()}
    return {**schema, "properties": properties, "additionalProperties": False}


def _open_response(schema: Schema) -> Schema:
    """Allow unknown fields, since responses may get new ones."""
    return {name: value for name, value in schema.items() if name != "additionalProperties"}


def _with_described_default(schema: Schema) -> Schema:
    """Keep a default that is a scalar; describe a list or an enumeration's value, which generators get wrong."""
    if "default" not in schema:
        return schema
    default = schema["default"]
    if default is None or default in ([], {}) or isinstance(default, dict):
        return {name: value for name, value in schema.items() if name != "default"}
    return schema if "$ref" not in schema and not isinstance(default, list) else _move_default_to_description(schema)


def _move_default_to_description(schema: Schema) -> Schema:
    if "default" not in schema:
        return schema
    default = schema["default"]
    rest = {name: value for name, value in schema.items() if name != "default"}
    values = ", ".join(_format_value(value) for value in (default if isinstance(default, list) else [default]))
    return {**rest, "description": f"{schema['description']} Default: {values}."}


def _format_value(value: Any) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"


Parameter = dict[str, Any]
_PARAMETER_ORDER = {"sort": 1, "limit": 2, "cursor": 3}

_OF_PLACES = ("provider", "country", "continent")
_OF_CPU_SIZES = (
    *("cpu", "cpu_vendor", "burstable", "min_data_disks", "min_uncached_disk_iops", "min_uncached_disk_mbps"),
    *("local_nvme", "disk_controller", "min_nics", "confidential_computing", "trusted_launch"),
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
        schema["items"] = _without_commas(schema["items"])
    return {**plain, "schema": schema, "example": examples[0] if examples else _default_example(schema)}


def with_fields_example(parameter: Parameter, items: list[str]) -> Parameter:
    """Give `fields` the first two fields of the list's items as its example."""
    return {**parameter, "example": items[:2]} if parameter["name"] == "fields" and items else parameter


def sort_parameters(parameters: list[Parameter], operation: str) -> list[Parameter]:
    """Sort parameters: path, required, optional, then sort, limit and cursor, last those that came later."""
    appended = ("", *_APPENDED.get(operation, ()), *_OF_PLACES, *_OF_CPU_SIZES)

    def place(parameter: Parameter) -> tuple[bool, bool, int, int]:
        name = parameter["name"]
        later = appended.index(name) if name in appended else 0
        return parameter["in"] != "path", not parameter["required"], later, _PARAMETER_ORDER.get(name, 0)

    return sorted(parameters, key=place)


def _without_commas(item: Schema) -> Schema:
    """Forbid commas in the values of a list, where a comma separates two values."""
    return {**item, "pattern": PLAIN_ITEM_PATTERN} if item.get("pattern") == PLAIN_TEXT_PATTERN else item


def _default_example(schema: Schema) -> Any:
    """Return an example for a parameter whose model has none: the first allowed value, or true."""
    if schema.get("type") == "array":
        return [_default_example(schema["items"])]
    name = schema.get("$ref", "").removeprefix(REFERENCE)
    return ENUMS[name][0] if name in ENUMS else {"boolean": True}.get(schema.get("type", ""))
