import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from openapi_spec_validator import validate

from app.api.openapi.build import to_openapi30
from app.settings import PROJECT
from tests.api.openapi.generated_files import document
from tests.api.openapi.rules import RULES

pytestmark = pytest.mark.first_database

Break = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module", params=["3.1", "3.0"])
def doc(request: pytest.FixtureRequest) -> dict[str, Any]:
    newer = document()
    return newer if request.param == "3.1" else to_openapi30(newer)


@pytest.mark.parametrize("rule", RULES)
def test_the_document_keeps_the_rules(doc: dict[str, Any], rule: str) -> None:
    assert list(RULES[rule](doc)) == []


def test_parameters_keep_their_places_since_the_last_release(doc: dict[str, Any]) -> None:
    released = json.loads((PROJECT / "docs/released/openapi.json").read_text(encoding="utf-8"))
    for path, operations in released["paths"].items():
        for method, operation in operations.items():
            before, now = (
                [one["name"] for one in each.get("parameters", ())] for each in (operation, doc["paths"][path][method])
            )
            assert now[: len(before)] == before, f"{method} {path}: put new ones into _APPENDED of openapi/schemas.py"


@pytest.mark.takes_seconds
def test_the_document_is_openapi(doc: dict[str, Any]) -> None:
    validate(doc)


def schema(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda doc: doc["components"]["schemas"][name]


def field(name: str, of: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda doc: schema(of)(doc)["properties"][name]


def listing(doc: dict[str, Any]) -> Any:
    return doc["paths"]["/sizes"]["get"]


BROKEN: dict[str, Break] = {
    "combined": lambda doc: field("vcpus", "SizeOut")(doc).update(anyOf=[{"type": "integer", "format": "int32"}]),
    "without_width": lambda doc: field("memory_gib", "SizeOut")(doc).pop("format"),
    "nullable_objects": lambda doc: field("inference", "EstimateOut")(doc).update(
        type=["object", "null"], nullable=True
    ),
    "titled": lambda doc: field("vcpus", "SizeOut")(doc).update(title="Vcpus"),
    "enums_outside_components": lambda doc: field("arch", "SizeOut")(doc).update(enum=["x64"]),
    "enums_in_responses": lambda doc: field("arch", "SizeOut")(doc).update(enum=["x64"]),
    "duplicate_enum_members": lambda doc: schema("Os")(doc).update({"x-enum-varnames": ["PURCHASE_SPOT"]}),
    "defaults_in_requests": lambda doc: field("limit", "FitIn")(doc).update(default=10),
    "open_requests": lambda doc: schema("FitIn")(doc).pop("additionalProperties"),
    "closed_responses": lambda doc: schema("SizeOut")(doc).update(additionalProperties=False),
    "optional_values": lambda doc: schema("SizeOut")(doc)["required"].remove("vcpus"),
    "schemas_shared_by_requests_and_responses": lambda doc: field("items", "SizePage")(doc).update(
        {"$ref": "#/components/schemas/GpusIn"}
    ),
    "bad_schema_names": lambda doc: doc["components"]["schemas"].update({"Page_Size_": {}}),
    "undescribed": lambda doc: field("vcpus", "SizeOut")(doc).pop("description"),
    "misnamed_operations": lambda doc: listing(doc).update(operationId="list_sizes_sizes_get"),
    "untagged": lambda doc: listing(doc).update(tags=["other"]),
    "several_media_types": lambda doc: listing(doc)["responses"]["200"]["content"].update({"text/csv": {}}),
    "incomplete_statuses": lambda doc: listing(doc)["responses"].update({"4XX": {}}),
    "errors_without_problem": lambda doc: doc["components"]["responses"]["NotFound"].pop("content"),
    "untyped_responses": lambda doc: listing(doc)["responses"]["200"]["content"].update(
        {"application/json": {"schema": {"type": "array", "items": {}}}}
    ),
    "bad_array_style": lambda doc: next(one for one in listing(doc)["parameters"] if "explode" in one).pop("explode"),
    "incomplete_parameters": lambda doc: listing(doc)["parameters"][0].pop("example"),
    "misordered_parameters": lambda doc: listing(doc)["parameters"].reverse(),
    "non_integer_bounds": lambda doc: field("limit", "FitIn")(doc).update(maximum=500.0),
    "unbounded_lists": lambda doc: field("include", "FitIn")(doc).pop("maxItems"),
    "backslashes_in_patterns": lambda doc: listing(doc)["parameters"][0]["schema"].update(pattern=r"\d"),
    "bounds_that_exclude": lambda doc: field("limit", "FitIn")(doc).update(exclusiveMinimum=0),
    "bad_field_names": lambda doc: listing(doc)["parameters"][0].update(name="minGpuMem"),
    "missing_headers": lambda doc: listing(doc)["responses"]["200"].pop("headers"),
    "incomplete_info": lambda doc: doc["info"].update(contact={"name": "nobody"}),
    "without_examples": lambda doc: listing(doc)["responses"]["200"]["content"]["application/json"].pop("examples"),
}


def test_every_rule_has_a_document_that_breaks_it() -> None:
    assert BROKEN.keys() == RULES.keys()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_document_that_breaks_a_rule_is_reported(doc: dict[str, Any], rule: str) -> None:
    broken = deepcopy(doc)
    BROKEN[rule](broken)
    assert list(RULES[rule](broken)) != []
