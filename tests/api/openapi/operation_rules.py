"""What every operation, and the document as a whole, must say: each rule names its offenders."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.api.openapi.parts import Part, contents, operations, parameters, properties

JSON, BINARY = {"application/json", "application/problem+json"}, "application/octet-stream"


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


def incomplete_statuses(document: Part) -> Iterator[str]:
    expected = {"get": {"200", "304", "405", "422", "500", "503"}, "post": {"200", "400", "405", "413", "415", "422"}}
    for place, operation in operations(document):
        statuses = set(operation["responses"])
        method, _, path = place.partition(" ")
        named = {"404"} if "{" in path else set()
        if not statuses >= expected[method.lower()] | named or not all(status.isdigit() for status in statuses):
            yield place


def errors_without_problem(document: Part) -> Iterator[str]:
    for name, response in document["components"]["responses"].items():
        content = response.get("content", {"": {"schema": {}}} if name != "NotModified" else {})
        for media_type, told in content.items():
            if (media_type, told["schema"].get("$ref")) != ("application/problem+json", "#/components/schemas/Problem"):
                yield name


def untyped_responses(document: Part) -> Iterator[str]:
    """JSON that is no named object; a file that is no string, as bytes where generators would read it as JSON."""
    older = document["openapi"].startswith("3.0")
    for place, media_type, content in contents(document):
        schema = content["schema"]
        file = {"type": "string", **({"format": "binary"} if older or media_type == BINARY else {})}
        if ("$ref" not in schema) if media_type in JSON else schema != file:
            yield place


def bad_array_style(document: Part) -> Iterator[str]:
    for place, one in parameters(document):
        if one["schema"].get("type") == "array" and (one.get("style"), one.get("explode")) != ("form", True):
            yield place


def incomplete_parameters(document: Part) -> Iterator[str]:
    for place, one in parameters(document):
        empty_is_absent = one["in"] != "query" or one["required"] or one.get("allowEmptyValue") is True
        nullable = one["schema"].get("nullable", False) or isinstance(one["schema"].get("type"), list)
        if not empty_is_absent or nullable or one.get("example") is None:
            yield place


def bad_field_names(document: Part) -> Iterator[str]:
    named = [place.rpartition("?")[2] for place, _ in parameters(document)]
    named += [place.rpartition(".")[2] for place, _ in properties(document)]
    return (name for name in named if not re.fullmatch(r"[a-z][a-z0-9_]*", name))


def missing_headers(document: Part) -> Iterator[str]:
    for place, operation in operations(document):
        wanted = {"Link", "X-Request-ID"} | ({"ETag", "Cache-Control"} if place.startswith("GET") else set())
        if not operation["responses"]["200"].get("headers", {}).keys() >= wanted:
            yield place
    for name, response in document["components"]["responses"].items():
        if "X-Request-ID" not in response["headers"]:
            yield name


def incomplete_info(document: Part) -> Iterator[str]:
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


def misordered_parameters(document: Part) -> Iterator[str]:
    """What must be said comes first, then sort, limit and cursor last: the order of positional arguments."""
    for place, operation in operations(document):
        told = operation.get("parameters", [])
        names = [one["name"] for one in told]
        if [one["required"] for one in told] != sorted((one["required"] for one in told), reverse=True):
            yield place
        last = [name for name in ("sort", "limit", "cursor") if name in names]
        if names[len(names) - len(last) :] != last:
            yield place
