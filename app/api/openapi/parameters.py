"""Parameters as generators want them: lists repeated, empty is absent, an example beside each."""

from typing import Any

from app.api.openapi.schemas import REFERENCE, Schema, to_plain
from app.api.openapi.words import ENUMS
from app.catalog.queries.params import PLAIN, PLAIN_ITEM

Parameter = dict[str, Any]
_LAST = {"sort": 1, "limit": 2, "cursor": 3}


def to_parameter(parameter: Parameter) -> Parameter:
    """Bring a parameter to its plain form; a value of a URL cannot be null."""
    told = parameter["schema"]
    said = {"description": parameter.get("description", told.get("description", ""))}
    schema = to_plain({**told, **said}, asked=True)
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
        schema["items"] = _without_comma(schema["items"])
    return {**plain, "schema": schema, "example": examples[0] if examples else _example(schema)}


def with_fields(parameter: Parameter, items: list[str]) -> Parameter:
    """Show as an example of `fields` the first two that the items of the list have."""
    return {**parameter, "example": items[:2]} if parameter["name"] == "fields" and items else parameter


def in_order(parameters: list[Parameter]) -> list[Parameter]:
    """The path first, then what must be said, what may be, order and page: the order of arguments in some clients."""
    return sorted(parameters, key=lambda one: (one["in"] != "path", not one["required"], _LAST.get(one["name"], 0)))


def _without_comma(item: Schema) -> Schema:
    """A comma separates two values of a list, so no value holds one."""
    return {**item, "pattern": PLAIN_ITEM} if item.get("pattern") == PLAIN else item


def _example(schema: Schema) -> Any:
    """What a parameter may be where the question's model gives no example: a word of those allowed, or true."""
    if schema.get("type") == "array":
        return [_example(schema["items"])]
    name = schema.get("$ref", "").removeprefix(REFERENCE)
    return ENUMS[name][0] if name in ENUMS else {"boolean": True}.get(schema.get("type", ""))
