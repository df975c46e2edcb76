from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from openapi_spec_validator import validate

from app.api.openapi.openapi30 import to_openapi30
from tests.api.openapi.generated_files import document
from tests.api.openapi.rules import RULES

Break = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module", params=["3.1", "3.0"])
def told(request: pytest.FixtureRequest) -> dict[str, Any]:
    newer = document()
    return newer if request.param == "3.1" else to_openapi30(newer)


@pytest.mark.parametrize("rule", RULES)
def test_the_document_keeps_the_rules(told: dict[str, Any], rule: str) -> None:
    assert list(RULES[rule](told)) == []


def test_the_document_is_openapi(told: dict[str, Any]) -> None:
    validate(told)


def schema(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda told: told["components"]["schemas"][name]


def field(name: str, of: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda told: schema(of)(told)["properties"][name]


def listing(told: dict[str, Any]) -> Any:
    return told["paths"]["/sizes"]["get"]


BROKEN: dict[str, Break] = {
    "combined": lambda told: field("vcpus", "SizeOut")(told).update(anyOf=[{"type": "integer", "format": "int32"}]),
    "without_width": lambda told: field("memory_gib", "SizeOut")(told).pop("format"),
    "nullable_objects": lambda told: field("inference", "EstimateOut")(told).update(
        type=["object", "null"], nullable=True
    ),
    "titled": lambda told: field("vcpus", "SizeOut")(told).update(title="Vcpus"),
    "enums_outside_components": lambda told: field("arch", "SizeOut")(told).update(enum=["x64"]),
    "enums_in_responses": lambda told: field("arch", "SizeOut")(told).update(enum=["x64"]),
    "duplicate_enum_members": lambda told: schema("Os")(told).update({"x-enum-varnames": ["PURCHASE_SPOT"]}),
    "defaults_in_requests": lambda told: field("limit", "FitIn")(told).update(default=10),
    "open_requests": lambda told: schema("FitIn")(told).pop("additionalProperties"),
    "closed_responses": lambda told: schema("SizeOut")(told).update(additionalProperties=False),
    "optional_values": lambda told: schema("SizeOut")(told)["required"].remove("vcpus"),
    "schemas_shared_by_requests_and_responses": lambda told: field("items", "SizePage")(told).update(
        {"$ref": "#/components/schemas/GpusIn"}
    ),
    "bad_schema_names": lambda told: told["components"]["schemas"].update({"Page_Size_": {}}),
    "undescribed": lambda told: field("vcpus", "SizeOut")(told).pop("description"),
    "misnamed_operations": lambda told: listing(told).update(operationId="list_sizes_sizes_get"),
    "untagged": lambda told: listing(told).update(tags=["other"]),
    "several_media_types": lambda told: listing(told)["responses"]["200"]["content"].update({"text/csv": {}}),
    "incomplete_statuses": lambda told: listing(told)["responses"].update({"4XX": {}}),
    "errors_without_problem": lambda told: told["components"]["responses"]["NotFound"].pop("content"),
    "untyped_responses": lambda told: listing(told)["responses"]["200"]["content"].update(
        {"application/json": {"schema": {"type": "array", "items": {}}}}
    ),
    "bad_array_style": lambda told: next(one for one in listing(told)["parameters"] if "explode" in one).pop("explode"),
    "incomplete_parameters": lambda told: listing(told)["parameters"][0].pop("example"),
    "misordered_parameters": lambda told: listing(told)["parameters"].reverse(),
    "non_integer_bounds": lambda told: field("limit", "FitIn")(told).update(maximum=500.0),
    "backslashes_in_patterns": lambda told: listing(told)["parameters"][0]["schema"].update(pattern=r"\d"),
    "bounds_that_exclude": lambda told: field("limit", "FitIn")(told).update(exclusiveMinimum=0),
    "bad_field_names": lambda told: listing(told)["parameters"][0].update(name="minGpuMem"),
    "missing_headers": lambda told: listing(told)["responses"]["200"].pop("headers"),
    "incomplete_info": lambda told: told["info"].pop("contact"),
    "without_examples": lambda told: listing(told)["responses"]["200"]["content"]["application/json"].pop("examples"),
}


def test_every_rule_is_seen_to_be_broken() -> None:
    assert BROKEN.keys() == RULES.keys()


@pytest.mark.parametrize("rule", BROKEN)
def test_a_document_that_breaks_a_rule_is_told_where(told: dict[str, Any], rule: str) -> None:
    broken = deepcopy(told)
    BROKEN[rule](broken)
    assert list(RULES[rule](broken)) != []
