"""A null for a field of a body that may be absent is the same as its absence, as the documentation says."""

from typing import Any

import httpx
import pytest

from tests.api.openapi.generated_examples import BODIES
from tests.api.openapi.generated_files import document
from tests.api.openapi.parts import Part

pytestmark = pytest.mark.first_database

LLAMA = {"model": "llama-3.1-70b"}
SERVING = {"input_tokens": 100, "output_tokens": 10, "users": 1}
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("/fit", BODIES["fitWorkload"] | {"constraints": {}, "pricing": {}}),
    ("/fit", LLAMA | {"serving": SERVING, "hardware": {"gpu": "H100-SXM-80GB", "gpus": 8}}),
    ("/fit", {"resources": {"min_gpus": 1}, "constraints": {}}),
    ("/estimate", LLAMA | {"inference": {"context_tokens": 8192}, "gpus": {"count": 4}}),
    ("/estimate", LLAMA | {"training": {"sequence_tokens": 100}}),
    ("/retirements", BODIES["planRetirements"]),
    ("/preflight", BODIES["checkQuotas"]),
    ("/preflight", {"plan": BODIES["checkQuotas"]["plan"]}),
]


def _schema(name: str) -> tuple[Part, set[str]]:
    schema = document()["components"]["schemas"][name]
    return schema["properties"], set(schema.get("required", ()))


def with_nulls(value: Any, name: str) -> Any:
    """Return an object, or a list of them, with null for every field of its schema that may be absent and is."""
    if isinstance(value, list):
        return [with_nulls(item, name) for item in value]
    if not name.endswith("In"):  # an enumeration, or a value
        return value
    properties, required = _schema(name)
    inner = {field: part.get("$ref") or part.get("items", {}).get("$ref", "") for field, part in properties.items()}
    filled = {field: with_nulls(one, inner[field].rpartition("/")[2]) for field, one in value.items()}
    return dict.fromkeys(properties.keys() - required) | filled


@pytest.mark.parametrize(("path", "body"), ASKED)
def test_null_is_the_same_as_absent(client: httpx.Client, path: str, body: dict[str, Any]) -> None:
    content = document()["paths"][path]["post"]["requestBody"]["content"]["application/json"]
    nulls = with_nulls(body, content["schema"]["$ref"].rpartition("/")[2])
    answers = [client.post(path, json=sent) for sent in (nulls, body)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert answers[0].content == answers[1].content


def test_a_null_constraint_about_models_may_stand_beside_resources(client: httpx.Client) -> None:
    body = {"resources": {"min_gpus": 1, "min_gpu_memory_gib": None}, "constraints": {"max_hours": None}}
    assert client.post("/fit", json=body).content == client.post("/fit", json={"resources": {"min_gpus": 1}}).content


def test_null_for_a_required_field_is_refused(client: httpx.Client) -> None:
    answer = client.post("/retirements", json={"items": [{"size": None, "region": "westeurope"}]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/body/items/0/size")


def test_null_for_an_unknown_field_is_refused(client: httpx.Client) -> None:
    answer = client.post("/fit", json={"resources": {"min_gpus": 1}, "limti": None})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/body/limti")


@pytest.mark.parametrize("field", ["FitIn.limit", "ConstraintsIn.tp_in_nvlink", "InventoryItemIn.count"])
def test_the_schema_lists_null_for_a_value_with_a_default(field: str) -> None:
    name, _, field = field.partition(".")
    assert _schema(name)[0][field]["type"][1:] == ["null"]
