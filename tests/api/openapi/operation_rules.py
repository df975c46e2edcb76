"""Rules for operations and for the document as a whole; each yields the locations that break it."""

import re
from collections import Counter
from collections.abc import Iterator

from tests.api.openapi.parts import Part, contents, operations, parameters, properties

JSON, BINARY = {"application/json", "application/problem+json"}, "application/octet-stream"


def undescribed(document: Part) -> Iterator[str]:
    for location, operation in operations(document):
        if not operation.get("summary") or not operation.get("description"):
            yield location
    openapi30 = document["openapi"].startswith("3.0")  # 3.0 allows no description beside a $ref
    for location, part in [*parameters(document), *properties(document)]:
        if not part.get("description") and not (openapi30 and "$ref" in part):
            yield location


def misnamed_operations(document: Part) -> Iterator[str]:
    known = Counter(operation["operationId"] for _, operation in operations(document))
    return (name for name, times in known.items() if times > 1 or not re.fullmatch(r"[a-z]+([A-Z][a-z]*)+", name))


def untagged(document: Part) -> Iterator[str]:
    tags = {tag["name"] for tag in document["tags"] if tag["description"]}
    return (
        location for location, one in operations(document) if len(one["tags"]) != 1 or not tags.issuperset(one["tags"])
    )


def several_media_types(document: Part) -> Iterator[str]:
    return (location for location, one in operations(document) if len(one["responses"]["200"]["content"]) != 1)


def incomplete_statuses(document: Part) -> Iterator[str]:
    expected = {"get": {"200", "304", "405", "422", "500", "503"}, "post": {"200", "400", "405", "413", "415", "422"}}
    for location, operation in operations(document):
        statuses = set(operation["responses"])
        method, _, path = location.partition(" ")
        named = {"404"} if "{" in path else set()
        kinds = {one["schema"].get("type", "") for one in operation.get("parameters", [])}
        long = {"414"} if "array" in kinds else set()
        possible = expected[method.lower()] | named | long
        if not statuses >= possible or not all(status.isdigit() for status in statuses):
            yield location


def errors_without_problem(document: Part) -> Iterator[str]:
    for name, response in document["components"]["responses"].items():
        content = response.get("content", {"": {"schema": {}}} if name != "NotModified" else {})
        for media_type, media in content.items():
            if (media_type, media["schema"].get("$ref")) != (
                "application/problem+json",
                "#/components/schemas/Problem",
            ):
                yield name


def untyped_responses(document: Part) -> Iterator[str]:
    """Yield JSON contents that are not a named object, and files that are not a (binary) string."""
    openapi30 = document["openapi"].startswith("3.0")
    for location, media_type, content in contents(document):
        schema = content["schema"]
        file = {"type": "string", **({"format": "binary"} if openapi30 or media_type == BINARY else {})}
        if ("$ref" not in schema) if media_type in JSON else schema != file:
            yield location


def bad_array_style(document: Part) -> Iterator[str]:
    for location, one in parameters(document):
        if one["schema"].get("type") == "array" and (one.get("style"), one.get("explode")) != ("form", True):
            yield location


def incomplete_parameters(document: Part) -> Iterator[str]:
    for location, one in parameters(document):
        empty_is_absent = one["in"] != "query" or one["required"] or one.get("allowEmptyValue") is True
        nullable = one["schema"].get("nullable", False) or isinstance(one["schema"].get("type"), list)
        accepted_alone = "Needs " not in one["description"]
        if not empty_is_absent or nullable or (one.get("example") is not None) is not accepted_alone:
            yield location


def bad_field_names(document: Part) -> Iterator[str]:
    named = [location.rpartition("?")[2] for location, _ in parameters(document)]
    named += [location.rpartition(".")[2] for location, _ in properties(document)]
    return (name for name in named if not re.fullmatch(r"[a-z][a-z0-9_]*", name))


def missing_headers(document: Part) -> Iterator[str]:
    for location, operation in operations(document):
        wanted = {"Link", "X-Request-ID"} | ({"ETag", "Cache-Control"} if location.startswith("GET") else set())
        if not operation["responses"]["200"].get("headers", {}).keys() >= wanted:
            yield location
    for name, response in document["components"]["responses"].items():
        if "X-Request-ID" not in response["headers"]:
            yield name


def incomplete_info(document: Part) -> Iterator[str]:
    info, newer = document["info"], not document["openapi"].startswith("3.0")
    wanted = {"title", "version", "description", "license"} | ({"summary"} if newer else set())
    yield from sorted(wanted - info.keys())
    if "contact" in info and "url" not in info["contact"]:
        yield "contact"
    if info["license"].keys() != {"name", "identifier" if newer else "url"}:
        yield "license"
    if document.get("security") != [] or not document["servers"]:
        yield "security or servers"


def without_examples(document: Part) -> Iterator[str]:
    for location, media_type, content in contents(document):
        if media_type != BINARY and not content.get("examples"):
            yield location


def misordered_parameters(document: Part) -> Iterator[str]:
    """Yield operations whose required parameters are not first, or whose sort, limit and cursor are not together.

    Some clients take parameters as positional arguments in this order; those that came later follow the cursor.
    """
    for location, operation in operations(document):
        listed = operation.get("parameters", [])
        names = [one["name"] for one in listed]
        if [one["required"] for one in listed] != sorted((one["required"] for one in listed), reverse=True):
            yield location
        last = [name for name in ("sort", "limit", "cursor") if name in names]
        if len(last) == 3 and names.index("sort") > names.index("cursor"):  # it came later
            last.remove("sort")
        if last and names[names.index(last[0]) :][: len(last)] != last:
            yield location
