"""Rules for schemas, so that typed languages have a type for each; every rule yields the locations that break it."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.api.openapi.parts import Part, components, parameters, schemas

FORMATS = {"number": {"double"}, "integer": {"int32", "int64"}}
COMBINED = {"anyOf", "oneOf", "allOf", "not", "const", "prefixItems", "patternProperties"}


def combined(document: Part) -> Iterator[str]:
    return (f"{location}: {word}" for location, schema in schemas(document) for word in COMBINED & schema.keys())


def without_width(document: Part) -> Iterator[str]:
    for location, schema in schemas(document):
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in FORMATS and schema.get("format") not in FORMATS[kind] and "enum" not in schema:
            yield location


def nullable_objects(document: Part) -> Iterator[str]:
    for location, schema in schemas(document):
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if ("null" in kinds or "nullable" in schema) and not {"array", "object"}.isdisjoint(kinds):
            yield location


def titled(document: Part) -> Iterator[str]:
    return (location for location, schema in schemas(document) if isinstance(schema.get("title"), str))


def enums_outside_components(document: Part) -> Iterator[str]:
    return (location for location, schema in schemas(document) if "enum" in schema and re.search(r"[. ]", location))


def enums_in_responses(document: Part) -> Iterator[str]:
    for name, schema in components(document, in_request=False):
        for field, inner in schema["properties"].items():
            target = inner.get("$ref", inner.get("items", {}).get("$ref", "")).rpartition("/")[2]
            if "enum" in document["components"]["schemas"].get(target, inner):
                yield f"{name}.{field}"


def duplicate_enum_members(document: Part) -> Iterator[str]:
    enums = [one for one in document["components"]["schemas"].values() if "enum" in one]
    names = Counter(name for one in enums for name in one.get("x-enum-varnames", one["enum"]))
    return (name for name, times in names.items() if times > 1 or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name))


def defaults_in_requests(document: Part) -> Iterator[str]:
    """Yield fields of bodies with a default: TypeScript requires them, so defaults belong in the description."""
    for name, schema in components(document, in_request=True):
        yield from (f"{name}.{field}" for field, inner in schema["properties"].items() if "default" in inner)


def open_requests(document: Part) -> Iterator[str]:
    return (name for name, one in components(document, in_request=True) if one.get("additionalProperties") is not False)


def closed_responses(document: Part) -> Iterator[str]:
    expected = True if document["openapi"].startswith("3.0") else None
    return (
        name for name, one in components(document, in_request=False) if one.get("additionalProperties") is not expected
    )


def optional_values(document: Part) -> Iterator[str]:
    """Yield fields of responses that may be absent although they are not objects."""
    for name, schema in components(document, in_request=False):
        for field in schema["properties"].keys() - set(schema.get("required", [])):
            if "$ref" not in schema["properties"][field]:
                yield f"{name}.{field}"


def schemas_shared_by_requests_and_responses(document: Part) -> Iterator[str]:
    answers = {name for name, _ in components(document, in_request=False)}
    return (name for name, _ in components(document, in_request=True) if name in answers)


def bad_schema_names(document: Part) -> Iterator[str]:
    names = document["components"]["schemas"]
    return (name for name in names if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) or "Validation" in name)


def non_integer_bounds(document: Part) -> Iterator[str]:
    for location, schema in schemas(document):
        bounds = [schema[bound] for bound in ("minimum", "maximum", "multipleOf", "default") if bound in schema]
        if "integer" in schema.get("type", "") and not all(isinstance(bound, int) for bound in bounds):
            yield location


def unbounded_lists(document: Part) -> Iterator[str]:
    """Yield lists that a request may have and that say nothing of their length, or say it as of a text."""
    listed = [(location, one["schema"]) for location, one in parameters(document)]
    for name, schema in components(document, in_request=True):
        listed += [(f"{name}.{field}", inner) for field, inner in schema["properties"].items()]
    for location, schema in listed:
        if schema.get("type") == "array" and ("maxItems" not in schema or "maxLength" in schema):
            yield location


def backslashes_in_patterns(document: Part) -> Iterator[str]:
    """Yield patterns with a backslash, which generators escape differently: the Ruby client did not load."""
    return (location for location, schema in schemas(document) if "\\" in schema.get("pattern", ""))


def bounds_that_exclude(document: Part) -> Iterator[str]:
    """Yield exclusive bounds, for which the generator of R writes `< =`."""
    exclusive = {"exclusiveMinimum", "exclusiveMaximum"}
    return (location for location, schema in schemas(document) if exclusive & schema.keys())
