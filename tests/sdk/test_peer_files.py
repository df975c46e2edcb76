"""The files of a provider in the shapes of other programs, read by those programs' own code where it is a package."""

import csv
import json
import subprocess
from ast import literal_eval
from typing import Any

import httpx
import jsonschema  # type: ignore[import-untyped]  # has no type information
import pytest

from app.settings import PROJECT
from tests.sdk.tools import HERE, PYTHON_TOOLS, missing

ALL = "status=current&status=preview&status=retiring"
WEST_EUROPE = f"/sizes?provider=azure&region=westeurope&limit=500&{ALL}"
EVERYWHERE = f"/sizes?provider=azure&limit=500&{ALL}"


def listed(client: httpx.Client, search: str) -> list[dict[str, Any]]:
    """Return all items of a list."""
    items: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = client.get(f"{search}&cursor={cursor}").json()
        items += page["items"]
        cursor = page["next_cursor"]
    return items


@pytest.fixture(scope="module")
def read(base_url: str) -> dict[str, Any]:
    """What the readers get of the files."""
    if absent := missing(["openapi-python-client"]):
        pytest.skip(absent)
    program = [str(PYTHON_TOOLS / "python"), str(HERE / "programs" / "read_files.py"), base_url]
    result: dict[str, Any] = json.loads(subprocess.run(program, check=True, capture_output=True, text=True).stdout)
    return result


@pytest.mark.takes_seconds
def test_instances_json_has_the_figures_and_prices_of_the_list(read: dict[str, Any], client: httpx.Client) -> None:
    sizes = listed(client, WEST_EUROPE)
    assert len(sizes) > 500
    for size in sizes:
        instance = read["instances"][size["name"]]
        assert instance == {
            "vcpu": size["vcpus"],
            "memory": size["memory_gib"],
            "gpu": size["gpu_count"],
            "linux": size["usd_per_hour"],
        }
    unpriced = {size["name"] for size in listed(client, EVERYWHERE) if not size["region"]}
    assert unpriced
    assert not unpriced & read["instances"].keys()


@pytest.mark.takes_seconds
def test_sizes_json_keeps_its_schema_and_has_the_figures_of_the_list(client: httpx.Client) -> None:
    response = client.get("/files/azure/sizes.json")
    document = response.json()
    schema = json.loads((PROJECT / "docs" / "sizes-1.schema.json").read_text(encoding="utf-8"))
    # All sizes, with the prices of one in eight: for those of all the validator takes five seconds.
    some = [
        size | {"prices": size["prices"] if number % 8 == 0 else {}} for number, size in enumerate(document["sizes"])
    ]
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    validator.validate(document | {"sizes": some})
    fields = schema["properties"]["sizes"]["items"]["properties"]
    assert document["sizes"][0].keys() == fields.keys()
    by_name = {size["name"]: size for size in document["sizes"]}
    assert len(by_name) == len(document["sizes"])
    sizes = listed(client, WEST_EUROPE)
    for size in sizes:
        told = by_name[size["name"]]
        assert {name: told[name] for name in fields if name != "prices"} == {
            name: size[name] for name in fields if name != "prices"
        }
        usd = told["prices"].get("westeurope", {}).get("linux", {}).get("on_demand", {}).get("usd_per_hour")
        assert usd == size["usd_per_hour"]
    unpriced = [size["name"] for size in listed(client, EVERYWHERE) if not size["region"]]
    assert unpriced
    assert all(by_name[name]["prices"] == {} for name in unpriced)
    assert client.get("/files/azure/sizes.json", headers={"If-None-Match": response.headers["etag"]}).status_code == 304


def test_gpuhunt_finds_the_cheapest_size_of_the_list(read: dict[str, Any], client: httpx.Client) -> None:
    search = f"/sizes?provider=azure&min_gpus=8&min_gpu_mem_per_gpu=80&sort=usd_per_hour&limit=1&{ALL}"
    (size,) = client.get(search).json()["items"]
    cheapest = {"name": size["name"], "region": size["region"], "usd": size["usd_per_hour"]}
    assert read["gpuhunt"]["cheapest"] == cheapest
    assert read["gpuhunt"]["rows"] > 10_000


@pytest.mark.takes_seconds
def test_vms_csv_has_the_columns_of_skypilot(client: httpx.Client) -> None:
    response = client.get("/files/azure/vms.csv")
    rows = list(csv.DictReader(response.text.splitlines()))
    (row,) = (row for row in rows if (row["InstanceType"], row["Region"]) == ("Standard_ND96amsr_A100_v4", "eastus"))
    assert (row["AcceleratorName"], row["AcceleratorCount"], row["vCPUs"]) == ("A100-80GB", "8", "96")
    gpus = literal_eval(row["GpuInfo"])
    assert (gpus["Gpus"][0]["MemoryInfo"]["SizeInMiB"], gpus["TotalGpuMemoryInMiB"]) == (80 * 1024, 640 * 1024)
    prices = {(row["InstanceType"], row["Region"]): row["Price"] for row in rows}
    assert len(prices) == len(rows)
    for size in listed(client, f"{WEST_EUROPE}&min_gpus=0"):
        if size["vcpus"] is not None and size["memory_gib"] is not None:
            price = prices[size["name"], "westeurope"]
            assert (float(price) if price else None) == size["usd_per_hour"]
    assert client.get("/files/azure/vms.csv", headers={"If-None-Match": response.headers["etag"]}).status_code == 304


@pytest.mark.slow
def test_what_is_not_known_is_not_told_as_zero(client: httpx.Client) -> None:
    unknown = listed(client, f"/sizes?provider=azure&limit=500&{ALL}&fields=name,gpu_count,vcpus,memory_gib")
    left_out = {size["name"] for size in unknown if None in (size["gpu_count"], size["vcpus"], size["memory_gib"])}
    files = ("vms.csv", "gpuhunt.csv")
    names = {line.partition(",")[0] for file in files for line in client.get(f"/files/azure/{file}").text.splitlines()}
    assert not left_out & names
    instances = {size["instance_type"]: size for size in client.get("/files/azure/instances.json").json()}
    for size in unknown:
        if size["name"] in instances:
            assert instances[size["name"]]["gpu"] == size["gpu_count"]


def test_a_provider_is_one_of_the_catalog(client: httpx.Client) -> None:
    problem = client.get("/files/azur/vms.csv").json()
    assert (problem["status"], "did you mean azure?" in problem["detail"]) == (422, True)
    # The seeds of the tests are Azure's alone.
    assert client.get("/files/aws/instances.json").json() == []
