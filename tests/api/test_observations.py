"""Observations: what vendors' commands printed of capacity, shown to the holder of one API key until it expires."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from app.converters.observations import read_observations
from app.errors import VmsizesError
from app.ingest.run import ingest
from app.main import create_service
from app.settings import Settings
from tests.command_line import CommandResult, run_command
from tests.factories import NOW, reading, size, source
from tests.servers import open_client, server

KEYS = {"team-a": "a" * 32, "team-b": "b" * 32}
D8, PATH = "Standard_D8s_v5", "/sizes/d8s_v5/observations"

OF_UNKNOWN_SIZE = {"sku": "Standard_D8s_v9", "region": "eastus", "score": "Low"}
AZURE_SCORES = {
    "desiredCount": 10,
    "placementScores": [
        {"sku": D8, "region": "westeurope", "availabilityZone": "1", "score": "High", "isQuotaAvailable": True},
        {"sku": D8, "region": "West Europe", "score": "RestrictedSkuNotAvailable", "isQuotaAvailable": False},
        OF_UNKNOWN_SIZE,
    ],
}
AZURE_RATES = {
    "count": 2,
    "data": [
        {"skuName": "standard_d8s_v5", "location": "westeurope", "spotEvictionRate": "5-10"},
        {"sku": {"name": D8}, "location": "eastus", "properties": {"evictionRate": "20+"}},
    ],
}
AWS_SCORES = {"SpotPlacementScores": [{"Region": "us-east-1", "AvailabilityZoneId": "use1-az1", "Score": 8}]}
GOOGLE_ADVICE = {
    "recommendations": [
        {
            "scores": {"obtainability": 0.9, "estimatedUptime": "3600s"},
            "shards": [
                {
                    "zone": "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-c",
                    "machineType": "n2-standard-8",
                    "instanceCount": 3,
                    "provisioningModel": "SPOT",
                }
            ],
        }
    ]
}


def read(data: Any, *sizes: str) -> list[tuple[Any, ...]]:
    new = read_observations(json.dumps(data), "file.json", sizes)
    return [(one.provider, one.size, one.region, one.zone, one.kind, one.value, one.note) for one in new]


@pytest.mark.one_database
def test_each_format_is_read_as_the_vendor_says_it() -> None:
    score, rate = "spot_placement_score", "spot_eviction_rate"
    assert read(AZURE_SCORES) == [
        ("azure", D8, "westeurope", "1", score, "High", "for 10 VMs, with quota"),
        ("azure", D8, "westeurope", None, score, "RestrictedSkuNotAvailable", "for 10 VMs, without quota"),
        ("azure", "Standard_D8s_v9", "eastus", None, score, "Low", "for 10 VMs"),
    ]
    rates = [
        ("azure", "standard_d8s_v5", "westeurope", None, rate, "5-10", None),
        ("azure", D8, "eastus", None, rate, "20+", None),
    ]
    assert read(AZURE_RATES) == read(AZURE_RATES["data"]) == rates
    together = "together with m5a.large"
    assert read(AWS_SCORES, "m5.large", "m5a.large")[0] == (
        *("aws", "m5.large", "us-east-1", "use1-az1", score, "8", together),
    )
    assert read(GOOGLE_ADVICE) == [
        ("gcp", "n2-standard-8", "us-central1", "us-central1-c", kind, value, "for 3 VMs, spot")
        for kind, value in (("obtainability", "0.9"), ("estimated_uptime", "3600s"))
    ]


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"value": []}, "is none of `az compute-recommender"),
        ({"placementScores": []}, "has 0 observations"),
        ({"placementScores": [{"sku": D8, "score": "High"}]}, "'placementScores, entry 1': has no 'region'"),
        ({"data": [{"skuName": D8, "location": "eastus"}]}, "has no 'value'"),
        ({"data": [3]}, "data, entry 1"),
        ({"placementScores": [{"sku": D8, "region": "eastus", "score": "Hi"}]}, "score Hi: must be High, Medium, Low"),
        (AWS_SCORES, "AWS does not say which sizes"),
    ],
)
def test_what_is_no_observation_is_refused_where_it_is(data: Any, said: str) -> None:
    with pytest.raises(VmsizesError) as caught:
        read_observations(json.dumps(data), "file.json")
    assert said in str(caught.value)


@pytest.mark.one_database
@pytest.mark.parametrize("score", [0, 11, "high"])
def test_a_score_of_aws_is_from_1_to_10(score: object) -> None:
    with pytest.raises(VmsizesError, match=f"Score {score}: must be a whole number from 1 to 10"):
        read({"SpotPlacementScores": [{"Region": "us-east-1", "Score": score}]}, "m5.large")


@pytest.mark.one_database
def test_sizes_are_of_a_question_to_aws_alone() -> None:
    with pytest.raises(VmsizesError, match=r"--size=m5.large: is for answers of AWS alone"):
        read(AZURE_SCORES, "m5.large")


@pytest.fixture
def url(engine: Engine, database_url: str) -> str:
    ingest(engine, reading([*size(D8, vcpus=8), *size("Standard_E8s_v5", vcpus=8)], regions=["westeurope"]), now=NOW)
    return database_url


@pytest.fixture
def client(url: str) -> Iterator[httpx.Client]:
    keys = ",".join(f"{name}:{sha256(key.encode()).hexdigest()}" for name, key in KEYS.items())
    service = create_service(Settings(_env_file=None, database_url=url, api_keys=keys))
    with server(service) as base, open_client(base) as opened:
        yield opened


@pytest.fixture
def take_in(url: str, tmp_path: Path) -> Callable[..., CommandResult]:
    def run(data: Any, name: str, holder: str, *options: str) -> CommandResult:
        (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
        done = run_command(url, "observations", "import", str(tmp_path / name), "--as", holder, *options)
        assert done.returncode == 0, done.stderr
        return done

    return run


def ask(client: httpx.Client, holder: str, path: str = PATH, **headers: str) -> httpx.Response:
    return client.get(path, headers={"authorization": f"Bearer {KEYS[holder]}", **headers})


def shown(client: httpx.Client, holder: str, path: str = PATH) -> list[tuple[str, str, str | None]]:
    answer = ask(client, holder, path)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store"), answer.text
    assert "etag" not in answer.headers
    return [(item["region"], item["value"], item["zone"]) for item in answer.json()["items"]]


def test_a_holder_sees_what_was_taken_in_for_it_with_its_age_and_nobody_else_does(
    client: httpx.Client, take_in: Callable[..., CommandResult], url: str
) -> None:
    before = {path: ask(client, "team-b", path).text for path in ("/sizes", f"/sizes/{D8}", "/sizes.csv", "/changes")}
    page = "/ui/sizes/d8s_v5/observations"
    assert (shown(client, "team-a"), shown(client, "team-b")) == ([], [])
    at = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=5)
    printed = take_in(AZURE_SCORES, "scores.json", "team-a", "--observed-at", f"{at:%Y-%m-%dT%H:%M}")
    assert "scores.json: 3 observations of" in printed.stdout
    assert "does not have Standard_D8s_v9 of azure" in printed.stderr
    assert "No API key here is named team-a" in printed.stderr  # the keys are those of the service under test
    take_in(AZURE_RATES, "rates.json", "team-b")
    scores = [("westeurope", "RestrictedSkuNotAvailable", None), ("westeurope", "High", "1")]
    assert sorted(shown(client, "team-a"), key=str) == sorted(scores, key=str)
    assert shown(client, "team-b") == [("eastus", "20+", None), ("westeurope", "5-10", None)]
    assert shown(client, "team-a", "/sizes/e8s_v5/observations") == []
    item = ask(client, "team-a").json()["items"][0]
    assert (item["age_hours"], datetime.fromisoformat(item["observed_at"])) == (5, at)
    assert datetime.fromisoformat(item["expires_at"]) == at + timedelta(hours=24)
    for holder, other in (("team-a", "20+"), ("team-b", "High")):
        html = ask(client, holder, page, accept="text/html")
        assert (html.status_code, html.headers["cache-control"]) == (200, "no-store")
        text = unescape(html.text)
        said = (f"reported to {holder}" in text, other in text, shown(client, holder)[0][1] in text)
        assert said == (True, False, True)
    assert "standard_d8s_v5/observations" in ask(client, "team-a", "/ui/sizes/d8s_v5", accept="text/html").text
    # Without a key, and in every other answer, there is nothing of it.
    assert client.get(PATH).status_code == 401
    assert {path: ask(client, "team-b", path).text for path in before} == before
    assert ask(client, "team-a", "/sizes/d9s_v5/observations").status_code == 404


@pytest.mark.parametrize(
    ("data", "sizes", "said"),
    [
        (AWS_SCORES, ("m5.large", "m5.nosuch"), "--size: the catalog does not have m5.nosuch of aws"),
        ({"placementScores": [OF_UNKNOWN_SIZE]}, (), "does not have Standard_D8s_v9 of azure"),
    ],
)
def test_an_import_for_no_size_of_the_catalog_leaves_what_was_taken_in(  # noqa: PLR0917
    engine: Engine, url: str, tmp_path: Path, data: Any, sizes: tuple[str, ...], said: str
) -> None:
    of_amazon = replace(source("amazon"), publisher="AWS")
    aws = reading(size("m5.large", by="amazon", vcpus=2), sources=[of_amazon])
    ingest(engine, aws, now=NOW)
    file = tmp_path / "scores.json"

    def take_in(data: Any, *sizes: str) -> CommandResult:
        file.write_text(json.dumps(data), encoding="utf-8")
        options = [argument for name in sizes for argument in ("--size", name)]
        return run_command(url, "observations", "import", str(file), "--as", "team-a", *options)

    def listed() -> Any:
        return json.loads(run_command(url, "observations", "list", "--json").stdout)

    assert take_in(AWS_SCORES, "m5.large").returncode == 0
    before = listed()
    refused = take_in(data, *sizes)
    assert (refused.returncode, said in refused.stderr, "nothing was taken in" in refused.stderr) == (2, True, True)
    assert before[0]["observations"] == 1
    assert listed() == before


def test_a_service_without_keys_shows_none(url: str, take_in: Callable[..., CommandResult]) -> None:
    take_in(AZURE_RATES, "rates.json", "team-a")
    with server(create_service(Settings(_env_file=None, database_url=url))) as base, open_client(base) as client:
        assert client.get(PATH).status_code == 401
        assert "set VMSIZES_API_KEYS" in client.get(PATH).json()["detail"]
        assert client.get(f"/ui{PATH}", headers={"accept": "text/html"}).status_code == 404
        assert "observations" not in client.get("/ui/sizes/d8s_v5", headers={"accept": "text/html"}).text


@pytest.mark.takes_seconds
def test_what_was_taken_in_expires_is_replaced_and_can_be_taken_back(
    client: httpx.Client, take_in: Callable[..., CommandResult], url: str
) -> None:
    def command(*arguments: str) -> CommandResult:
        return run_command(url, "observations", *arguments)

    old = f"{datetime.now(UTC) - timedelta(hours=30):%Y-%m-%dT%H:%M}"
    ended = take_in(AZURE_SCORES, "scores.json", "team-a", "--observed-at", old)
    assert shown(client, "team-a") == []
    assert "Of these 3 have expired, the last at " in ended.stderr
    assert "The catalog has no region eastus: check" in ended.stderr
    nothing = command("list", "d8s_v5", "--as", "team-a", "--csv")
    assert (nothing.returncode, nothing.stdout) == (1, "kind,value,region,zone,note,age_hours,expires_at,source\r\n")
    again = take_in(AZURE_SCORES, "scores.json", "team-a", "--observed-at", old, "--hours", "48")
    assert "expired" not in again.stderr
    assert len(shown(client, "team-a")) == 2
    take_in(AZURE_RATES, "rates.json", "team-a", "--observed-at", old)
    take_in(AZURE_RATES, "rates.json", "team-b")
    listed = json.loads(command("list", "--json").stdout)
    assert [(row["scope"], row["source"], row["observations"]) for row in listed] == [
        *(("team-a", "rates.json", 2), ("team-a", "scores.json", 3), ("team-b", "rates.json", 2)),
    ]
    assert datetime.fromisoformat(listed[0]["observed_at"]) == datetime.fromisoformat(f"{old}Z")
    of_size = json.loads(command("list", "d8s_v5", "--as", "team-a", "--json").stdout)
    assert of_size["items"][0].keys() == ask(client, "team-a").json()["items"][0].keys()
    assert command("forget", "rates.json", "--as", "team-a").stdout == "2 observations forgotten.\n"
    assert (len(shown(client, "team-a")), len(shown(client, "team-b"))) == (2, 2)
    assert command("forget", "--all", "--as", "team-a").stdout == "3 observations forgotten.\n"
    assert [row["scope"] for row in json.loads(command("list", "--json").stdout)] == ["team-b"]
    missing = command("forget", "scores.json", "--as", "team-b")
    assert (missing.returncode, missing.stdout) == (1, "")
    assert "no source of observations named 'scores.json'. Of team-b there are: rates.json." in missing.stderr
    nobody = command("list", "--as", "nobody")
    assert (nobody.returncode, nobody.stderr) == (1, "Nothing matches.\n")
    for arguments, said in (
        (("forget", "--as", "team-a"), "give a name, or --all"),
        (("import", "x.json", "--as", "a", "--hours", "0"), "Invalid value for '--hours': '0': must be at least 1"),
        (
            ("import", "x.json", "--as", "a", "--observed-at", "now"),
            "'--observed-at': 'now': must be written as YYYY-MM-DDTHH:MM",
        ),
        (("list", "d8s_v5"), "--as"),
        (("import", "nothing.json", "--as", "team a"), "must be the name of an API key"),
    ):
        refused = command(*arguments)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
