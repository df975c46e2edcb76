"""Generates the tables of the guide, from `<!-- … -->` to `<!-- end -->`: from the document and the table of fields."""

import re
from collections.abc import Callable, Iterable, Mapping

from app.catalog.fields import SIZE_FIELDS
from app.catalog.queries.exports import ColumnParams
from app.catalog.queries.params import (
    CurrencyParams,
    PageParams,
    PriceDayParams,
    SizeFilter,
    SizeRequirements,
    SizeSelection,
)
from app.catalog.queries.prices import AllPricesFilter
from tests.api.openapi.parts import Part, components, operations

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Order": ("sort",),
    "ColumnParams": tuple(ColumnParams.model_fields),
    "AllPricesFilter": tuple(AllPricesFilter.model_fields),
    "CurrencyParams": tuple(CurrencyParams.model_fields),
    "PriceDayParams": tuple(PriceDayParams.model_fields),
    "PageParams": tuple(PageParams.model_fields),
    "SizeSelection": tuple(SizeSelection.model_fields),
    "SizeRequirements": tuple(SizeRequirements.model_fields),
    "SizeFilter": tuple(
        SizeFilter.model_fields.keys() - SizeSelection.model_fields.keys() - SizeRequirements.model_fields.keys()
    ),
}
"""Groups of parameters that several endpoints have and the guide describes once."""

_MARKED = re.compile(r"(?P<start><!-- (?P<what>\w+)(?P<words>[\w ]*) -->\n).*?(?P<end><!-- end -->)", re.DOTALL)
_TABLE = "| {} | {} | meaning |\n| --- | --- | --- |\n"


def fill(page: str, document: Part) -> str:
    """Return a page with its tables generated again."""

    def generate(marked: re.Match[str]) -> str:
        text = _TABLES[marked["what"]](document, marked["words"].split())
        return f"{marked['start']}\n{text}\n{marked['end']}"

    return _MARKED.sub(generate, page)


def _parameters(document: Part, words: list[str]) -> str:
    """`listSizes in X`: the parameters of a group; `listSizes beside X Y`: those that are in none of them."""
    name, how, *groups = words if len(words) > 1 else [*words, "beside"]
    grouped = {parameter for group in groups for parameter in GROUPS[group]}
    (operation,) = (one for _, one in operations(document) if one["operationId"] == name)
    query = [one for one in operation["parameters"] if one["in"] == "query"]
    chosen = [one for one in query if (one["name"] in grouped) is (how == "in")]
    rows = [
        (one["name"], _parameter_type(one["schema"], document) + ", required" * one["required"], one["description"])
        for one in chosen
    ]
    return _TABLE.format("parameter", "takes") + _rows(rows)


def _endpoints(document: Part, _words: list[str]) -> str:
    rows = []
    for place, one in operations(document):
        (content,) = one["responses"]["200"]["content"].values()
        answer = _reference(content["schema"])
        shape = f"`{answer}`" if answer else "a file"
        anchor = re.sub(r"[^\w -]", "", place.lower()).replace(" ", "-")
        rows.append(f"| [`{place}`](#{anchor}) | `{one['operationId']}` | {shape} |\n")
    return "| endpoint | operation | answers |\n| --- | --- | --- |\n" + "".join(rows)


def _answers(document: Part, _words: list[str]) -> str:
    return "\n".join(
        f"## {name}\n\n{schema['description']}\n\n{_fields(schema)}"
        for name, schema in components(document, in_request=False)
    )


def _fields(schema: Part) -> str:
    rows = [
        (name, _field_type(one) + ("" if name in schema.get("required", []) else ", or absent"), one["description"])
        for name, one in schema["properties"].items()
    ]
    return _TABLE.format("field", "holds") + _rows(rows)


def _figures(_document: Part, _words: list[str]) -> str:
    columns = [(name, spec.unit or "", spec.sentence) for name, spec in SIZE_FIELDS.items() if spec.column]
    return _TABLE.format("field", "unit") + _rows(columns)


def _rows(rows: Iterable[tuple[str, str, str]]) -> str:
    return "".join(f"| `{name}` | {kind} | {' '.join(said.split())} |\n" for name, kind, said in rows)


def _parameter_type(schema: Part, document: Part) -> str:
    """Describe the values of a parameter: its enumeration, or its type with small bounds and the default."""
    if "$ref" in schema:
        words = document["components"]["schemas"][_reference(schema)]["enum"]
        return ", ".join(f"`{word}`" for word in words)
    if schema["type"] == "array":
        inner = schema["items"]
        return f"several of {_parameter_type(inner, document)}" if "$ref" in inner else "several"
    least, most, given = schema.get("minimum"), schema.get("maximum"), schema.get("default")
    default = f", default {given:g}" if isinstance(given, int | float) and not isinstance(given, bool) else ""
    if schema["type"] == "integer" and most is not None and most <= _SMALL:
        return f"{least} to {most}{default}"
    return _type_name(schema["type"], schema) + default


def _field_type(schema: Part) -> str:
    """Describe the type of a field."""
    if "$ref" in schema:
        name = _reference(schema)
        return f"[{name}](#{name.lower()})"
    if schema.get("type") == "array":
        return f"list of {_field_type(schema['items'])}"
    if "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return f"map to {_field_type(inner) if isinstance(inner, dict) else 'any value'}"
    kinds = schema.get("type", "any value")
    kind, *null = kinds if isinstance(kinds, list) else [kinds]
    return _type_name(kind, schema) + (", or null" if null else "")


def _type_name(kind: str, schema: Part) -> str:
    return _TYPE_NAMES.get(str(schema.get("format", kind)), kind)


def _reference(schema: Part) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


_SMALL = 10_000
_TYPE_NAMES = {
    "string": "text",
    "double": "number",
    "int32": "integer",
    "int64": "integer",
    "date": "date",
    "date-time": "moment",
}
_TABLES: Mapping[str, Callable[[Part, list[str]], str]] = {
    "parameters": _parameters,
    "endpoints": _endpoints,
    "answers": _answers,
    "figures": _figures,
}
