import base64
import json
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.first_database

PATHS = [
    "/sizes",
    "/sizes/nd40rs_v2",
    "/sizes/nd40rs_v2/facts",
    "/sizes/nd40rs_v2/prices",
    "/sizes/nd40rs_v2/similar",
    "/sizes/nd40rs_v2/cost",
    "/sizes/nd40rs_v2/buy",
    "/fit",
    "/accuracy",
    "/models",
    "/models/llama-3.1-70b",
    "/conflicts",
    "/coverage",
    "/series",
    "/series/ndv2",
    "/retirements",
    "/retirements.ics",
    "/changes",
    "/changes.atom",
    "/changes.json",
    "/gpus",
    "/disks",
    "/regions",
    "/sources",
    "/revisions",
    "/healthz",
    "/readyz",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_endpoint_answers_and_refuses_a_parameter_it_does_not_have(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 200
    refused = client.get(path, params={"limti": "3"})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["errors"][0]["pointer"] == "/query/limti"
    assert "limti=3: there is no such parameter" in refused.json()["detail"]


def test_a_misspelt_parameter_is_told_the_nearest(client: httpx.Client) -> None:
    assert "did you mean min_gpu_mem?" in client.get("/sizes", params={"min_gpu_men": "80"}).json()["detail"]


@pytest.mark.parametrize(
    ("path", "query", "names"),
    [
        ("/sizes", "min_gpu_mem=nan", "min_gpu_mem=nan"),
        ("/sizes", "min_gpu_mem=1e999", "min_gpu_mem"),
        ("/sizes", "min_vcpus=99999999999999999999", "min_vcpus"),
        ("/sizes", "min_vcpus=1.5", "min_vcpus=1.5"),
        ("/sizes", "limit=0", "limit=0"),
        ("/sizes", "limit=501", "limit=501"),
        ("/sizes", "limit=2&limit=3", "takes one value, and 2 were given"),
        ("/sizes", "sort=colour", "`errors` lists what is allowed"),
        ("/sizes", "region=westeurop", "did you mean westeurope?"),
        ("/sizes", "available_in=mars", "no such region"),
        ("/sizes", "series=nope", "series=nope: no such series; GET /series lists them"),
        ("/sizes", "os=beos", "os=beos"),
        ("/sizes", "status=old", "status"),
        ("/sizes", "infiniband=perhaps", "infiniband=perhaps"),
        ("/sizes", "cursor=xyz", "use next_cursor as it was returned"),
        ("/sizes", "q=%00", "control characters"),
        ("/sizes", "name=%00", "control characters"),
        ("/sizes", "min_usd_per_hour=1e400", "min_usd_per_hour"),
        ("/sizes/nd40rs_v2/prices", "as_of=2026-13-01", "as_of=2026-13-01"),
        ("/sizes/nd40rs_v2/similar", "region=westeurop", "did you mean westeurope?"),
        ("/sizes/nd40rs_v2/similar", "cursor=xyz", "use next_cursor as it was returned"),
        ("/sizes/nd40rs_v2/similar", "limit=0", "limit=0"),
        ("/retirements", "before=2026-13-01", "before=2026-13-01"),
        ("/retirements", "gpu=nothing", "no GPU of the catalog is called nothing"),
        ("/retirements.ics", "region=westeurop", "did you mean westeurope?"),
        ("/fit", "max_nodes=0", "max_nodes=0"),
        ("/fit", "hours=0", "hours=0"),
        ("/fit", "hours_per_month=745", "hours_per_month=745"),
        ("/fit", "include=everything", "include"),
        ("/fit", "cursor=xyz", "use next_cursor as it was returned"),
    ],
)
def test_a_bad_value_is_refused_by_name(client: httpx.Client, path: str, query: str, names: str) -> None:
    response = client.get(f"{path}?{query}")
    assert response.status_code == (400 if query.startswith("cursor") else 422), response.text
    assert names in response.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "/sizes/nd40rs",
        "/sizes/%00",
        "/sizes/nope/facts",
        "/sizes/nope/similar",
        "/series/nope",
        "/models/nope",
        "/models/",
        "/nowhere",
        "/sizes/",
    ],
)
def test_what_is_not_there_is_a_problem(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert response.status_code in (404, 422)
    assert response.json()["status"] == response.status_code
    assert response.headers["content-type"] == "application/problem+json"


def test_a_size_that_is_nearly_named_is_suggested(client: httpx.Client) -> None:
    for path in ("/sizes/nd40rs", "/sizes/nd40rs/similar"):
        assert "Standard_ND40rs_v2" in client.get(path).json()["detail"]


FORGED = ["\ud800", "x", 10**30, -1, 1.5, None, True, [], "\x00", {"date": "2026-01-01"}, {"decimal": "NaN"}]


@pytest.mark.parametrize(
    "path",
    [
        "/sizes",
        "/sizes?sort=vcpus",
        "/sizes?sort=usd_per_hour",
        "/sizes/nd40rs_v2/similar",
        "/fit?min_gpus=1",
        "/gpus",
        "/retirements",
        "/models?q=llama",
    ],
)
def test_a_cursor_that_somebody_made_up_is_refused_or_harmless(client: httpx.Client, path: str) -> None:
    joint = "&" if "?" in path else "?"
    given = client.get(f"{path}{joint}limit=1").json()["next_cursor"]
    mark, revision, *place = json.loads(base64.urlsafe_b64decode(given + "=" * (-len(given) % 4)))
    for forged in FORGED:
        kept = [mark, revision, forged, *place[1:]]
        cursor = base64.urlsafe_b64encode(json.dumps(kept).encode()).decode().rstrip("=")
        answer = client.get(f"{path}{joint}limit=1&cursor={cursor}")
        assert answer.status_code in (200, 400), (forged, answer.text)


def test_an_empty_value_is_absent_and_a_comma_separates(client: httpx.Client) -> None:
    everything = client.get("/sizes").json()
    assert client.get("/sizes?min_gpu_mem=&region=&q=").json() == everything
    assert client.get("/sizes?gpu=H100,H200").json()["items"] == client.get("/sizes?gpu=H100&gpu=H200").json()["items"]


def test_a_wrong_method_is_a_problem_that_names_the_right_one(client: httpx.Client) -> None:
    response = client.post("/sizes")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"
    assert response.json()["type"] == "/problems/method-not-allowed"


def test_the_documentation_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    page = client.get("/docs").text
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert client.get("/docs/assets/swagger-ui-bundle.js").status_code == 200
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")


def test_a_model_as_a_parameter_of_fit_is_sent_to_post(client: httpx.Client) -> None:
    refused = client.get("/fit?model=llama-3.3-70b&concurrency=64")
    assert refused.status_code == 422
    assert [error["detail"].partition("; ")[2] for error in refused.json()["errors"]] == [
        "sizes for a model are found by POST /fit"
    ] * 2


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("guess", "hint"),
    [
        ("max_usd_per_month=99", "did you mean max_usd_per_hour?"),
        ("max_price_per_hour=3", "did you mean max_usd_per_hour?"),
        ("format=csv", "whole lists are at /sizes.csv"),
        ("provider=azur", "did you mean azure?"),
        ("family=nd", "did you mean series?"),
        ("sort=usd_per_hour desc", "did you mean -usd_per_hour?"),
        ("sort=vcpus:asc", "did you mean vcpus?"),
        ("sort=-usd_per_hor", "did you mean -usd_per_hour?"),
        ("sort=usd_per_hor desc", "did you mean -usd_per_hour?"),
        ("max_network_gbps=10", "there is no such parameter; only the lower bound exists: min_network_gbps"),
        ("max_nics=2", "there is no such parameter; only the lower bound exists: min_nics"),
        ("max_usd_per_month=99", "did you mean max_usd_per_hour? It is USD an hour"),
        ("gpu=H10", "did you mean H100?"),
        ("region=us-east", "did you mean eastus?"),
        ("arch=arm", "did you mean arm64?"),
        ("arch=x86_64", "did you mean x64?"),
        ("category=gpu", "did you mean gpu_accelerated?"),
        ("category=Memory", "did you mean memory_optimized?"),
        ("status=active", "did you mean current?"),
    ],
)
def test_a_natural_guess_gets_a_suggestion(client: httpx.Client, guess: str, hint: str) -> None:
    name, _, value = guess.partition("=")
    answer = client.get("/sizes", params={name: value})
    assert answer.status_code == 422
    assert hint in answer.json()["detail"] or hint in answer.json()["errors"][0]["detail"], answer.text


@pytest.mark.one_database
def test_a_guess_of_a_parameter_of_a_fit_is_not_sent_to_another_figure(client: httpx.Client) -> None:
    for guess in ("cpu_vendor=AMD", "cpu=EPYC"):
        assert "allowed are" in client.get(f"/fit?{guess}").json()["errors"][0]["detail"]
    said = client.get("/fit?max_usd_per_hour=3").json()["detail"]
    assert said.endswith("did you mean budget_usd_per_month? It is USD a month")
    body = {"resources": {"min_gpus": 1, "max_network_mbps": 9}, "constraints": {"max_usd_per_hour": 3}}
    network, budget = (error["detail"] for error in client.post("/fit", json=body).json()["errors"])
    assert network.endswith("there is no such field; only the lower bound exists: min_network_gbps")
    assert budget.endswith("did you mean budget_usd_per_month? It is USD a month")


@pytest.mark.one_database
def test_a_path_with_a_slash_at_its_end_names_the_path(client: httpx.Client) -> None:
    assert "did you mean /sizes? " in client.get("/sizes/").json()["detail"]
    assert "no path /series/%2F; did you mean /series? " in client.get("/series/%2F").json()["detail"]
    assert "did you mean" not in client.get("/nothing/").json()["detail"]


@pytest.mark.one_database
@pytest.mark.parametrize("path", ["/sizes", "/sizes.csv", "/facets", "/fit"])
def test_a_value_that_is_not_utf8_is_refused(client: httpx.Client, path: str) -> None:
    for name in ("name", "gpu", *(["q"] if path == "/sizes" else [])):
        answer = client.get(f"{path}?{name}=%ff")
        assert answer.status_code == 422, answer.text
        assert f"{name}: its percent-escapes are not UTF-8" in answer.json()["detail"]
    assert client.get(f"{path}?name=%C3%A9").status_code == 200


@pytest.mark.parametrize("path", ["/fit", "/estimate", "/retirements", "/receipts"])
@pytest.mark.parametrize("body", [r'{"model": "\ud800"}', r'{"\ud800": 1}', r'{"config": {"a": ["x\ud800x", NaN]}}'])
def test_half_of_a_surrogate_pair_in_a_body_is_refused(client: httpx.Client, path: str, body: str) -> None:
    refused = client.post(path, content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == r"the body: \ud800 is half of a surrogate pair, which is no character"
    assert refused.json()["errors"][0]["pointer"] == "/body"


def test_a_whole_surrogate_pair_is_a_character(client: httpx.Client) -> None:
    body = r'{"model": "\ud83d\ude00", "inference": {"context_tokens": 1, "concurrency": 1}}'
    assert (
        "\U0001f600" in client.post("/fit", content=body, headers={"content-type": "application/json"}).json()["detail"]
    )


SPELLINGS = (
    ("min_gpu_memory_gib=80", "min_gpu_mem=80"),
    ("max_gpu_memory_gib_per_gpu=80", "max_gpu_mem_per_gpu=80"),
    ("min_gpu_count=1/6", "min_gpus=1/6"),
    ("max_gpu_count=0", "max_gpus=0"),
    ("min_memory_gib=64&max_memory_gib=128", "min_memory=64&max_memory=128"),
    ("min_local_disk_gib=100", "min_local_disk=100"),
    ("min_network_mbps=12500", "min_network_gbps=12.5"),
    ("min_max_data_disks=32", "min_data_disks=32"),
    ("min_max_nics=8", "min_nics=8"),
)


@pytest.mark.parametrize("path", ["/sizes", "/facets", "/sizes.csv"])
@pytest.mark.parametrize(("by_field", "short"), SPELLINGS)
def test_a_bound_named_after_its_field_is_the_same_request(
    client: httpx.Client, path: str, by_field: str, short: str
) -> None:
    one, other = client.get(f"{path}?{by_field}"), client.get(f"{path}?{short}")
    assert one.status_code == 200, one.text
    assert one.content == other.content
    assert one.headers["etag"] == other.headers["etag"]
    assert client.get(f"{path}?{by_field}", headers={"If-None-Match": other.headers["etag"]}).status_code == 304


def test_a_cursor_belongs_to_both_spellings(client: httpx.Client) -> None:
    cursor = client.get("/sizes?min_memory=64&limit=2").json()["next_cursor"]
    by_field = client.get("/sizes", params={"min_memory_gib": "64", "limit": "2", "cursor": cursor})
    assert by_field.json() == client.get("/sizes", params={"min_memory": "64", "limit": "2", "cursor": cursor}).json()


@pytest.mark.parametrize("path", ["/sizes", "/facets", "/fit"])
def test_both_spellings_of_a_bound_are_an_error_that_names_them(client: httpx.Client, path: str) -> None:
    refused = client.get(f"{path}?min_gpu_memory_gib=80&min_gpu_mem=80")
    assert refused.status_code == 422
    (error,) = refused.json()["errors"]
    assert error["pointer"] == "/query/min_gpu_memory_gib"
    assert error["detail"].endswith("min_gpu_memory_gib and min_gpu_mem are one parameter; give one of them")


def test_a_wrong_value_is_reported_of_the_spelling_that_was_sent(client: httpx.Client) -> None:
    refused = client.get("/sizes?min_network_mbps=-5")
    assert refused.json()["errors"] == [
        {"pointer": "/query/min_network_mbps", "detail": "min_network_mbps=-5: must be at least 0"}
    ]
    twice = client.get("/sizes?min_gpu_count=1&min_gpu_count=2").json()["detail"]
    assert twice == "min_gpu_count: takes one value, and 2 were given"


@pytest.mark.parametrize(
    ("by_field", "short"),
    [
        ({"min_gpu_memory_gib": 80}, {"min_gpu_mem": 80}),
        ({"min_gpu_count": 2, "min_memory_gib": 64}, {"min_gpus": 2, "min_memory": 64}),
        ({"min_network_mbps": 12500}, {"min_network_gbps": 12.5}),
    ],
)
def test_a_bound_in_a_body_may_be_named_after_its_field(
    client: httpx.Client, by_field: dict[str, float], short: dict[str, float]
) -> None:
    one, other = (client.post("/fit", json={"resources": resources}) for resources in (by_field, short))
    assert one.status_code == 200, one.text
    assert one.json() == other.json()


@pytest.mark.parametrize(
    ("resources", "detail"),
    [
        ({"min_gpu_memory_gib": 80, "min_gpu_mem": 80}, "min_gpu_memory_gib and min_gpu_mem are one parameter"),
        ({"min_network_mbps": "12500"}, "expected a number without quotes"),
        ({"min_network_mbps": True}, "expected a number without quotes"),
        ({"min_gpu_memory": 80}, "did you mean min_gpu_mem?"),
    ],
)
def test_a_bound_in_a_body_is_checked_in_either_spelling(
    client: httpx.Client, resources: dict[str, Any], detail: str
) -> None:
    refused = client.post("/fit", json={"resources": resources})
    assert refused.status_code == 422
    assert detail in refused.json()["errors"][0]["detail"]
