import httpx
import pytest

from tests.api.bodies import LLAMA, Body, post_rejected

pytestmark = pytest.mark.first_database

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
        assert problem["detail"] == f"region={sent}: no such region; did you mean eastus? GET /regions lists them"
        assert problem["errors"] == [{"pointer": "/query/region", "detail": problem["detail"]}]


def test_of_several_regions_the_unknown_one_is_quoted(client: httpx.Client) -> None:
    for query in ("available_in=West Europe,us-east-1", "available_in=us-east-1&available_in=west-europe"):
        assert client.get(f"/sizes?{query}").json()["detail"].startswith("available_in=us-east-1: no such region")
    assert "region=West-Europ: no such region; did you mean westeurope?" in client.get("/sizes?region=West-Europ").text


@pytest.mark.parametrize(
    ("sent", "near"),
    [
        ("us-west", "westus"),
        ("us-west-2", "westus2"),
        ("us_east", "eastus"),
        ("US East 2", "eastus2"),
        ("EU West", "westeurope"),
        ("AP Southeast", "southeastasia"),
        ("ZA North", "southafricanorth"),
        ("westeuorpe", "westeurope"),
        ("wset europe", "westeurope"),
        ("estus", "eastus"),
        ("westus4", "westus"),
        ("uk", "ukwest or uksouth"),
        ("korea east", "koreasouth or koreacentral"),
    ],
)
def test_an_unknown_region_is_taken_for_one_of_its_place_and_directions(
    client: httpx.Client, sent: str, near: str
) -> None:
    detail = client.get("/sizes", params={"region": sent}).json()["detail"]
    assert detail == f"region={sent}: no such region; did you mean {near}? GET /regions lists them"


@pytest.mark.parametrize("sent", ["china central", "us", "global", "us gov virginia", "chinanorth3"])
def test_a_region_of_no_place_of_the_catalog_has_no_suggestion_elsewhere(client: httpx.Client, sent: str) -> None:
    assert (
        client.get("/sizes", params={"region": sent})
        .json()["detail"]
        .endswith("no such region; GET /regions lists them")
    )


@pytest.mark.parametrize("body", [LLAMA, RESOURCES])
@pytest.mark.parametrize("field", ["regions", "available_in"])
def test_an_unknown_region_of_a_body_is_quoted_as_it_was_sent(client: httpx.Client, body: Body, field: str) -> None:
    for sent in ("us-east-1", "US East 1", "useast1"):
        problem = post_rejected(client, body | {"constraints": {field: ["West Europe", sent]}})
        assert (
            problem["detail"]
            == f"constraints.{field}={sent}: no such region; did you mean eastus? GET /regions lists them"
        )
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
