"""Every example is a real response, of either kind of database, and is valid against its schema.

So every operation, with every parameter that it has, is tried on both kinds of database, which give the same answers.
"""

import json
from typing import Any

import httpx
import pytest
from openapi_schema_validator import OAS30ReadValidator, OAS31Validator

from app.api.openapi.build import find_example, to_openapi30
from app.settings import PROJECT
from tests.api.openapi.generated_examples import example_path, send_shortened, without_volatile_fields
from tests.api.openapi.parts import Part, contents, operations, parameters

DOCUMENT = json.loads((PROJECT / "docs/openapi.json").read_text())
"""The document as `test_drift.py` compares it with the program: to make it takes a second of each process of tests."""
OPERATIONS = dict(operations(DOCUMENT))
VALIDATORS = {"3.1": (DOCUMENT, OAS31Validator), "3.0": (to_openapi30(DOCUMENT), OAS30ReadValidator)}


@pytest.mark.parametrize("place", [place for place, one in OPERATIONS.items() if find_example(one["operationId"])])
def test_an_example_is_what_the_service_returns(client: httpx.Client, place: str) -> None:
    example = find_example(OPERATIONS[place]["operationId"])
    assert example is not None
    if example.body is None:
        assert example.path == example_path(place.partition(" ")[2], OPERATIONS[place])
    assert without_volatile_fields(send_shortened(client, example.path, example.body)) == without_volatile_fields(
        example.answer
    )


def test_every_example_file_belongs_to_an_operation() -> None:
    kept = {path.stem for path in (PROJECT / "app/api/openapi/examples").glob("*.json")}
    assert kept <= {operation["operationId"] for operation in OPERATIONS.values()}


@pytest.mark.parametrize("version", VALIDATORS)
def test_every_example_is_valid_against_its_schema(version: str) -> None:
    versioned, validator = VALIDATORS[version]
    checked = 0
    for place, _, content in contents(versioned):
        for example in content.get("examples", {}).values():
            schema = {**content["schema"], "components": versioned["components"]}
            errors = [
                f"{place}: {error.json_path}: {error.message}"
                for error in validator(schema).iter_errors(example["value"])
            ]
            assert errors == []
            checked += 1
    assert checked >= len(OPERATIONS)


@pytest.mark.parametrize("version", VALIDATORS)
def test_an_example_of_another_type_is_invalid(version: str) -> None:
    versioned, validator = VALIDATORS[version]
    example = find_example("showSize")
    assert example is not None
    schema = {"$ref": "#/components/schemas/SizeOut", "components": versioned["components"]}
    assert list(validator(schema).iter_errors({**example.answer, "vcpus": "eight"}))
    assert list(validator(schema).iter_errors({name: example.answer[name] for name in list(example.answer)[1:]}))


def test_examples_have_no_undocumented_fields() -> None:
    schemas = DOCUMENT["components"]["schemas"]

    def undocumented(value: Any, schema: Part) -> list[str]:
        schema = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
        if isinstance(value, list):
            return [found for item in value for found in undocumented(item, schema.get("items", {}))]
        documented = schema.get("properties")
        if not isinstance(value, dict) or documented is None:
            return []
        return [
            *(value.keys() - documented.keys()),
            *(s for name in value.keys() & documented for s in undocumented(value[name], documented[name])),
        ]

    for place, _, content in contents(DOCUMENT):
        for example in content.get("examples", {}).values():
            assert (place, undocumented(example["value"], content["schema"])) == (place, [])


MANY_PARAMETERS = 20


@pytest.mark.parametrize(
    "place",
    [
        pytest.param(place, marks=pytest.mark.takes_seconds if len(listed) > MANY_PARAMETERS else ())
        for place, operation in OPERATIONS.items()
        if (listed := operation.get("parameters"))
    ],
)
def test_the_example_of_every_parameter_is_accepted(client: httpx.Client, place: str) -> None:
    listed = OPERATIONS[place]["parameters"]
    path = place.partition(" ")[2]
    for one in (one for one in listed if one["in"] == "path"):
        path = path.replace(f"{{{one['name']}}}", str(one["example"]))
    query = {one["name"]: one["example"] for one in listed if one["in"] == "query" and "example" in one}
    needed = {one["name"]: one["example"] for one in listed if one["in"] == "query" and one["required"]}
    narrow = {**needed, **({"size": query["size"]} if path.startswith("/prices") else {})}
    alone = {} if path.endswith(".parquet") else query  # it has the rows of .csv
    if path == "/sizes.csv":  # its filters are of interest, and all columns are in the last request
        narrow["fields"] = "name"
    for chosen in ({**narrow, name: value} for name, value in alone.items()):
        assert client.get(path, params=_query_values(chosen)).status_code == httpx.codes.OK, chosen
    assert client.get(path, params=_query_values(query)).status_code == httpx.codes.OK


def _query_values(query: Part) -> dict[str, Any]:
    return {name: json.dumps(value) if isinstance(value, bool) else value for name, value in query.items()}


def test_examples_of_parameters_are_valid_against_their_schemas() -> None:
    for place, one in ((place, one) for place, one in parameters(DOCUMENT) if "example" in one):
        schema = {**one["schema"], "components": DOCUMENT["components"]}
        assert (place, [error.message for error in OAS31Validator(schema).iter_errors(one["example"])]) == (place, [])


@pytest.mark.first_database
@pytest.mark.parametrize("place", [place for place, one in OPERATIONS.items() if "links" in one["responses"]["200"]])
def test_a_link_leads_from_a_response_to_an_operation_that_accepts_its_name(client: httpx.Client, place: str) -> None:
    example = find_example(OPERATIONS[place]["operationId"])
    assert example is not None
    paths = {one["operationId"]: where.partition(" ")[2] for where, one in OPERATIONS.items()}
    for link in OPERATIONS[place]["responses"]["200"]["links"].values():
        ((parameter, expression),) = link["parameters"].items()
        name = resolve_pointer(example.answer, expression.removeprefix("$response.body#"))
        path = paths[link["operationId"]].replace(f"{{{parameter}}}", name)
        assert "{" not in path
        assert client.get(path).status_code == httpx.codes.OK


def resolve_pointer(value: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value
