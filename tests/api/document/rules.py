"""What a document must be for every generator to make of it a client that compiles: each rule names its offenders."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from tests.api.document.parts import Part, components, contents, operations, parameters, properties, schemas

Rule = Callable[[Part], Iterator[str]]
FORMATS = {"number": {"double"}, "integer": {"int32", "int64"}}
JSON, BINARY = {"application/json", "application/problem+json"}, "application/octet-stream"
COMBINED = {"anyOf", "oneOf", "allOf", "not", "const", "prefixItems", "patternProperties"}


def combined(document: Part) -> Iterator[str]:
    return (f"{place}: {word}" for place, schema in schemas(document) for word in COMBINED & schema.keys())


def without_width(document: Part) -> Iterator[str]:
    for place, schema in schemas(document):
        kind = schema.get("type")
        kind = kind[0] if isinstance(kind, list) else kind
        if kind in FORMATS and schema.get("format") not in FORMATS[kind] and "enum" not in schema:
            yield place


def null_parts(document: Part) -> Iterator[str]:
    for place, schema in schemas(document):
        kinds = schema.get("type", [])
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if ("null" in kinds or "nullable" in schema) and not {"array", "object"}.isdisjoint(kinds):
            yield place


def titled(document: Part) -> Iterator[str]:
    return (place for place, schema in schemas(document) if isinstance(schema.get("title"), str))


def words_outside_components(document: Part) -> Iterator[str]:
    return (place for place, schema in schemas(document) if "enum" in schema and re.search(r"[. ]", place))


def words_in_answers(document: Part) -> Iterator[str]:
    for name, schema in components(document, asked=False):
        for field, inner in schema["properties"].items():
            target = inner.get("$ref", inner.get("items", {}).get("$ref", "")).rpartition("/")[2]
            if "enum" in document["components"]["schemas"].get(target, inner):
                yield f"{name}.{field}"


def members_twice(document: Part) -> Iterator[str]:
    enums = [one for one in document["components"]["schemas"].values() if "enum" in one]
    names = Counter(name for one in enums for name in one.get("x-enum-varnames", one["enum"]))
    return (name for name, times in names.items() if times > 1 or not re.fullmatch(r"[A-Z][A-Z0-9_]*", name))


def defaults_in_requests(document: Part) -> Iterator[str]:
    """Defaults of a body stand in words: TypeScript takes a field with a default for one that must be there."""
    for name, schema in components(document, asked=True):
        yield from (f"{name}.{field}" for field, inner in schema["properties"].items() if "default" in inner)


def open_requests(document: Part) -> Iterator[str]:
    return (name for name, one in components(document, asked=True) if one.get("additionalProperties") is not False)


def closed_answers(document: Part) -> Iterator[str]:
    said = True if document["openapi"].startswith("3.0") else None
    return (name for name, one in components(document, asked=False) if one.get("additionalProperties") is not said)


def optional_values(document: Part) -> Iterator[str]:
    """Fields of answers that may be absent and are no parts."""
    for name, schema in components(document, asked=False):
        for field in schema["properties"].keys() - set(schema.get("required", [])):
            if "$ref" not in schema["properties"][field]:
                yield f"{name}.{field}"


def shared_shapes(document: Part) -> Iterator[str]:
    answers = {name for name, _ in components(document, asked=False)}
    return (name for name, _ in components(document, asked=True) if name in answers)


def badly_named(document: Part) -> Iterator[str]:
    names = document["components"]["schemas"]
    return (name for name in names if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name) or "Validation" in name)


def undescribed(document: Part) -> Iterator[str]:
    for place, operation in operations(document):
        if not operation.get("summary") or not operation.get("description"):
            yield place
    bare = document["openapi"].startswith("3.0")  # nothing stands beside a $ref there
    for place, part in [*parameters(document), *properties(document)]:
        if not part.get("description") and not (bare and "$ref" in part):
            yield place


def misnamed_operations(document: Part) -> Iterator[str]:
    known = Counter(operation["operationId"] for _, operation in operations(document))
    return (name for name, times in known.items() if times > 1 or not re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", name))


def untagged(document: Part) -> Iterator[str]:
    told = {tag["name"] for tag in document["tags"] if tag["description"]}
    return (place for place, one in operations(document) if len(one["tags"]) != 1 or not told.issuperset(one["tags"]))


def several_media_types(document: Part) -> Iterator[str]:
    return (place for place, one in operations(document) if len(one["responses"]["200"]["content"]) != 1)


def vague_statuses(document: Part) -> Iterator[str]:
    expected = {"get": {"200", "304", "405", "422", "500", "503"}, "post": {"200", "400", "405", "413", "415", "422"}}
    for place, operation in operations(document):
        statuses = set(operation["responses"])
        method, _, path = place.partition(" ")
        named = {"404"} if "{" in path else set()
        if not statuses >= expected[method.lower()] | named or not all(status.isdigit() for status in statuses):
            yield place


def other_errors(document: Part) -> Iterator[str]:
    for name, response in document["components"]["responses"].items():
        content = response.get("content", {"": {"schema": {}}} if name != "NotModified" else {})
        for media_type, told in content.items():
            if (media_type, told["schema"].get("$ref")) != ("application/problem+json", "#/components/schemas/Problem"):
                yield name


def untyped_answers(document: Part) -> Iterator[str]:
    """JSON that is no named object; a file that is no string, as bytes where generators would read it as JSON."""
    older = document["openapi"].startswith("3.0")
    for place, media_type, content in contents(document):
        schema = content["schema"]
        file = {"type": "string", **({"format": "binary"} if older or media_type == BINARY else {})}
        if ("$ref" not in schema) if media_type in JSON else schema != file:
            yield place


def badly_listed(document: Part) -> Iterator[str]:
    for place, one in parameters(document):
        if one["schema"].get("type") == "array" and (one.get("style"), one.get("explode")) != ("form", True):
            yield place


def odd_parameters(document: Part) -> Iterator[str]:
    for place, one in parameters(document):
        empty_is_absent = one["in"] != "query" or one["required"] or one.get("allowEmptyValue") is True
        nullable = one["schema"].get("nullable", False) or isinstance(one["schema"].get("type"), list)
        if not empty_is_absent or nullable or one.get("example") is None:
            yield place


def misspelt(document: Part) -> Iterator[str]:
    names = [place.rpartition(sign)[2] for parts, sign in _NAMED for place, _ in parts(document)]
    return (name for name in names if not re.fullmatch(r"[a-z][a-z0-9_]*", name))


_NAMED = ((parameters, "?"), (properties, "."))


def missing_headers(document: Part) -> Iterator[str]:
    for place, operation in operations(document):
        wanted = {"Link", "X-Request-ID"} | ({"ETag", "Cache-Control"} if place.startswith("GET") else set())
        if not operation["responses"]["200"].get("headers", {}).keys() >= wanted:
            yield place
    for name, response in document["components"]["responses"].items():
        if "X-Request-ID" not in response["headers"]:
            yield name


def incomplete_about(document: Part) -> Iterator[str]:
    info, newer = document["info"], not document["openapi"].startswith("3.0")
    wanted = {"title", "version", "description", "contact", "license"} | ({"summary"} if newer else set())
    yield from sorted(wanted - info.keys())
    if info["license"].keys() != {"name", "identifier" if newer else "url"}:
        yield "license"
    if document.get("security") != [] or not document["servers"]:
        yield "security or servers"


def without_examples(document: Part) -> Iterator[str]:
    for place, media_type, content in contents(document):
        if media_type != BINARY and not content.get("examples"):
            yield place


RULES: Mapping[str, Rule] = {rule.__name__: rule for rule in (
    combined, without_width, null_parts, titled, words_outside_components, words_in_answers, members_twice,
    defaults_in_requests, open_requests, closed_answers, optional_values, shared_shapes, badly_named, undescribed,
    misnamed_operations, untagged, several_media_types, vague_statuses, other_errors, untyped_answers, badly_listed,
    odd_parameters, misspelt, missing_headers, incomplete_about, without_examples,
)}  # fmt: skip
