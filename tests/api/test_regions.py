import httpx
import pytest

from tests.api.bodies import LLAMA, Body, post_rejected

RESOURCES: Body = {"resources": {"min_gpus": 1}}


@pytest.mark.parametrize(
    "path",
    [
        "/sizes",
        "/sizes.csv",
        "/sizes.parquet",
        "/facets",
        "/prices",
        "/prices.csv",
        "/fit?min_gpus=1",
        "/compare?size=nd40rs_v2,nd96asr_v4",
        "/sizes/nd40rs_v2/prices",
        "/sizes/nd40rs_v2/similar",
    ],
)
def test_an_unknown_region_of_a_query_is_quoted_as_it_was_sent(client: httpx.Client, path: str) -> None:
    for sent in ("us-east-1", "US East 1", "useast1"):
        problem = client.get(path, params=dict(httpx.URL(path).params) | {"region": sent}).json()
        assert problem["detail"] == f"region={sent}: no such region; GET /regions lists them"
        assert problem["errors"] == [{"pointer": "/query/region", "detail": problem["detail"]}]


def test_of_several_regions_the_unknown_one_is_quoted(client: httpx.Client) -> None:
    for query in ("available_in=West Europe,us-east-1", "available_in=us-east-1&available_in=west-europe"):
        assert client.get(f"/sizes?{query}").json()["detail"].startswith("available_in=us-east-1: no such region")
    assert "region=West-Europ: no such region; did you mean westeurope?" in client.get("/sizes?region=West-Europ").text


@pytest.mark.parametrize("body", [LLAMA, RESOURCES])
@pytest.mark.parametrize("field", ["regions", "available_in"])
def test_an_unknown_region_of_a_body_is_quoted_as_it_was_sent(client: httpx.Client, body: Body, field: str) -> None:
    for sent in ("us-east-1", "US East 1", "useast1"):
        problem = post_rejected(client, body | {"constraints": {field: ["West Europe", sent]}})
        assert problem["detail"] == f"constraints.{field}={sent}: no such region; GET /regions lists them"
        assert problem["errors"] == [{"pointer": f"/body/constraints/{field}", "detail": problem["detail"]}]


def test_all_spellings_of_a_region_are_one_question(client: httpx.Client) -> None:
    answers = [
        client.get("/sizes", params={"region": spelled, "available_in": spelled, "limit": 3})
        for spelled in ("westeurope", "West Europe", "west-europe", "WestEurope,west europe")
    ]
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert len({answer.headers["etag"] for answer in answers}) == 1
    assert {item["region"] for item in answers[0].json()["items"]} == {"westeurope"}
    bodies = [LLAMA | {"constraints": {"regions": [spelled]}} for spelled in ("westeurope", "West Europe")]
    assert len({client.post("/fit", json=body).text for body in bodies}) == 1
