"""The `fields` parameter of every JSON list."""

from typing import Any

import httpx
import pytest

from app.catalog.queries.exports import SIZE_EXPORT_COLUMNS
from app.catalog.queries.prices import PRICE_COLUMNS
from tests.api.openapi.generated_files import document
from tests.api.openapi.parts import operations

pytestmark = pytest.mark.first_database

LISTS = {
    "/sizes": "usd_per_hour,name,flags",
    "/sizes?gpu=A100&sort=-memory_gib": "name",
    "/sizes/nd40rs_v2/similar": "size,terms",
    "/sizes/nd40rs_v2/facts": "value,field",
    "/sizes/nd40rs_v2/availability": "region",
    "/sizes/nd40rs_v2/prices": "usd_per_hour,region",
    "/sizes/nd40rs_v2/price-history?region=westeurope": "usd_per_hour,valid_from",
    "/prices?gpu=A100": "usd_per_hour,size",
    "/fit?min_gpus=1": "size,explanation,cost",
    "/retirements": "retirement_date,size,source_url",
    "/models": "params,id",
    "/conflicts": "name,field,value",
    "/refused-prices?region=eastus": "rule,size,usd_per_hour",
    "/series": "id,aliases",
    "/gpus": "memory_gib,id",
    "/disks": "usd_per_month,id",
    "/regions": "name,code",
    "/sources": "url,id",
    "/revisions": "counts,number",
}


def with_fields(path: str, fields: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}limit=3&fields={fields}"


@pytest.mark.parametrize(("path", "fields"), LISTS.items())
def test_a_list_returns_the_requested_fields_in_their_order(client: httpx.Client, path: str, fields: str) -> None:
    names = fields.split(",")
    whole = client.get(with_fields(path, "")).json()
    for _ in range(2):  # computed, then from the cache
        some = client.get(with_fields(path, fields))
        listed = some.json()
        assert [list(item) for item in listed["items"]] == [names for _ in whole["items"]]
        assert listed["items"] == [{name: item[name] for name in names} for item in whole["items"]]
        assert {name: listed[name] for name in listed if name != "items"} == {
            name: whole[name] for name in whole if name != "items"
        }
    repeated = "&".join(f"fields={name}" for name in names)
    assert client.get(with_fields(path, "").replace("fields=", repeated)).content == some.content


@pytest.mark.parametrize("path", LISTS)
def test_an_unknown_field_is_rejected(client: httpx.Client, path: str) -> None:
    first = next(iter(client.get(with_fields(path, "")).json()["items"][0]))
    for wrong, listed in (
        (f"{first}_", f"there is no such field; did you mean {first}?"),
        ("zzzzzzzz", "allowed are "),
        (f"{first},{first}", "once"),
    ):
        answer = client.get(with_fields(path, wrong))
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/unknown-value")
        (error,) = answer.json()["errors"]
        assert (error["pointer"], listed in error["detail"]) == ("/query/fields", True), error


def test_every_list_has_fields_with_two_as_its_example(client: httpx.Client) -> None:
    lists: dict[str, dict[str, Any]] = {}
    for place, operation in operations(document()):
        listed = {one["name"]: one for one in operation.get("parameters", [])}
        if "cursor" in listed:
            lists[place.removeprefix("GET ")] = listed
    del lists["/changes"]  # of which a catalog with one revision has none: tests/api/test_changes.py
    assert {path.partition("?")[0].replace("nd40rs_v2", "{name}") for path in LISTS} == set(lists)
    for path, listed in lists.items():
        example = listed["fields"]["example"]
        required = {name: one["example"] for name, one in listed.items() if one["required"] and one["in"] == "query"}
        asked = {"fields": example, "limit": 1, **required}
        page = client.get(path.replace("{name}", "nd40rs_v2"), params=asked).json()
        assert [list(item) for item in page["items"]] == [example]


def test_a_list_has_the_fields_that_its_export_has_as_columns(client: httpx.Client) -> None:
    for path, columns in (("/sizes", SIZE_EXPORT_COLUMNS), ("/prices", PRICE_COLUMNS)):
        every = ",".join(columns)
        assert list(client.get(f"{path}?limit=1&fields={every}").json()["items"][0]) == list(columns)
        assert client.get(f"{path}.csv?gpu=T4&fields={every}").text.partition("\r\n")[0] == every


def test_a_cursor_is_valid_with_other_fields(client: httpx.Client) -> None:
    first = client.get("/sizes?limit=2&fields=name")
    following = client.get("/sizes", params={"limit": 2, "cursor": first.json()["next_cursor"]})
    assert following.status_code == 200
    assert "fields=name" in first.links["next"]["url"]
    following = client.get(first.links["next"]["url"])
    assert [list(item) for item in following.json()["items"]] == [["name"], ["name"]]


def test_responses_with_some_fields_have_their_own_etag_and_are_small(client: httpx.Client) -> None:
    whole, some = client.get("/sizes"), client.get("/sizes?fields=name,gpu_model,usd_per_hour")
    assert whole.headers["etag"] != some.headers["etag"]
    assert client.get("/sizes?fields=name", headers={"if-none-match": whole.headers["etag"]}).status_code == 200
    assert len(some.content) < len(whole.content) / 10
