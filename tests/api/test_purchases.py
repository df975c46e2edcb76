"""Every question by each of six purchase models, compared with prices that a table of this file gives."""

import csv
import io
from collections.abc import Iterator
from itertools import product
from math import inf
from random import Random
from typing import Any

import httpx
import pytest

from app.catalog.purchases import PURCHASE_MODELS
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.databases import Databases, writable
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server
from tests.walks import walk

TODAY = NOW.date()
REGIONS = ("eastus", "northeurope", "westus")
SIZES = {
    f"X{number}": {"vcpus": 2**number, "memory_gib": 3 * 2**number, "gpu_count": number % 3} for number in range(1, 9)
}
"""Sizes with 2 to 256 vCPUs, three times the memory, and no GPU, one or two of 16 GiB."""


def _prices() -> dict[tuple[str, str, str], float]:
    """Make up a price for three of four combinations of size, region and purchase model."""
    rng = Random(7)
    every: list[tuple[str, str, str]] = list(product(SIZES, REGIONS, PURCHASE_MODELS))
    prices = {key: round(rng.uniform(0.01, 9), rng.randrange(1, 7)) for key in every if rng.random() < 0.75}
    return prices | {("X1", "eastus", "on_demand"): 0.00001}


PRICES = _prices()


@pytest.fixture(scope="module")
def client(databases: Databases, template_url: str) -> Iterator[httpx.Client]:
    """A client of a service whose catalog has PRICES."""
    url = databases.copy(template_url)
    service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
    stated = [
        size(f"Standard_{name}", **about, **({"gpu_memory_gib": 16 * about["gpu_count"]} if about["gpu_count"] else {}))
        for name, about in SIZES.items()
    ]
    rows = [price(name, str(usd), region=region, purchase=purchase) for (name, region, purchase), usd in PRICES.items()]
    facts = [fact for facts in stated for fact in facts]
    ingest(writable(service), reading(facts, regions=REGIONS, prices=rows), now=NOW)
    with server(service) as address, open_client(address) as client:
        yield client
    service.app.state.database.dispose()
    databases.drop(url)


def rank(name: str, region: str, purchase: str) -> float:
    return PRICES.get((name, region, purchase), inf)


def rank_of_unknown(name: str, region: str, purchase: str) -> float:
    return rank(name, region, "on_demand") if rank(name, region, purchase) == inf else 0


def offers(purchase: str, regions: tuple[str, ...]) -> dict[str, str]:
    """Return the region in which each size is cheapest, by name; of equal ones the first, of unknown ones on demand."""
    priced = {(name, region) for name, region, _ in PRICES}
    there = {name: [region for region in regions if (name, region) in priced] for name in SIZES}
    return {
        name: min(
            each, key=lambda region: (rank(name, region, purchase), rank_of_unknown(name, region, purchase), region)
        )
        for name, each in there.items()
        if each
    }


PLACES = [(), ("westus",), ("eastus", "northeurope")]
each_question = pytest.mark.parametrize(("purchase", "regions"), [*product(PURCHASE_MODELS, PLACES)], ids=str)


def expected_rows(purchase: str, regions: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    for name, region in offers(purchase, regions or REGIONS).items():
        usd = {f"{one}_usd_per_hour": PRICES.get((name, region, one)) for one in PURCHASE_MODELS}
        own, gpus = usd[f"{purchase}_usd_per_hour"], SIZES[name]["gpu_count"]
        rows.append(
            {
                "name": f"Standard_{name}",
                "region": region,
                "usd_per_hour": own,
                "usd_per_gpu_hour": round(own / gpus, 9) if own and gpus else None,
                **usd,
                "price_as_of": "2026-06-18" if own else None,
            }
        )
    return sorted(rows, key=lambda row: (row["usd_per_hour"] or inf, row["name"]))


@each_question
def test_a_list_by_price_gives_the_prices_of_the_cheapest_region(
    client: httpx.Client, purchase: str, regions: tuple[str, ...]
) -> None:
    asked = {"purchase": purchase, "region": ",".join(regions), "sort": "usd_per_hour"}
    expected = expected_rows(purchase, regions)
    for limit in (3, 500):
        rows = walk(client, "/sizes", **asked, limit=limit)
        assert [{name: row[name] for name in expected[0]} for row in rows] == expected


@pytest.mark.first_database
@each_question
def test_filters_and_facets_are_about_the_price_asked_for(
    client: httpx.Client, purchase: str, regions: tuple[str, ...]
) -> None:
    asked: dict[str, Any] = {"purchase": purchase, "region": ",".join(regions)}
    asked |= {"min_usd_per_hour": 2, "max_usd_per_hour": 7}
    asked |= {"min_vcpus": 4, "max_memory": 400}
    bounded = [row for row in expected_rows(purchase, regions) if 2 <= (row["usd_per_hour"] or 0) <= 7]
    names = {row["name"] for row in bounded if 4 <= SIZES[row["name"].removeprefix("Standard_")]["vcpus"] <= 128}
    assert {row["name"] for row in walk(client, "/sizes", **asked)} == names
    facets = client.get("/facets", params=asked).json()
    assert facets["total"] == len(names)
    for counted in facets["region"]:
        here = {"purchase": purchase, "region": counted["value"]}
        assert counted["count"] == len(walk(client, "/sizes", **asked | here))


@pytest.mark.first_database
@each_question
def test_an_export_has_the_rows_of_the_list(client: httpx.Client, purchase: str, regions: tuple[str, ...]) -> None:
    asked = {"purchase": purchase, "region": ",".join(regions), "sort": "-usd_per_hour"}
    columns = ("name", "region", "usd_per_hour", *(f"{one}_usd_per_hour" for one in PURCHASE_MODELS), "price_as_of")
    text = client.get("/sizes.csv", params=asked | {"fields": ",".join(columns)}).text
    items = walk(client, "/sizes", **asked)
    rows = [{name: "" if item[name] is None else str(item[name]) for name in columns} for item in items]
    numbers = [{name: _number(value) for name, value in row.items()} for row in csv.DictReader(io.StringIO(text))]
    assert numbers == [{name: _number(value) for name, value in row.items()} for row in rows]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.first_database
@each_question
def test_comparisons_and_similar_sizes_have_the_price_of_the_list(
    client: httpx.Client, purchase: str, regions: tuple[str, ...]
) -> None:
    asked = {"purchase": purchase, "region": ",".join(regions)}
    usd = {row["name"]: row["usd_per_hour"] for row in expected_rows(purchase, regions)}
    lines = client.get("/compare", params=asked | {"size": "X1,X4,X5"}).raise_for_status().json()["fields"]
    (line,) = (line for line in lines if line["field"] == "usd_per_hour")
    assert [cell["value"] for cell in line["values"]] == [usd.get(f"Standard_{name}") for name in ("X1", "X4", "X5")]
    for name in ("X3", "X4"):
        items = walk(client, f"/sizes/{name}/similar", **asked)
        assert items
        assert {item["size"]: item["usd_per_hour"] for item in items}.items() <= usd.items()


@pytest.mark.first_database
@each_question
def test_a_fit_is_priced_and_ranked_by_it(client: httpx.Client, purchase: str, regions: tuple[str, ...]) -> None:
    asked = {"purchase": purchase, "region": ",".join(regions), "min_vcpus": 4}
    expected = {row["name"]: row for row in expected_rows(purchase, regions)}
    items = walk(client, "/fit", **asked)
    assert {item["size"] for item in items} == expected.keys() - {"Standard_X1"}
    found = [item["cost"][purchase]["usd_per_hour"] for item in items]
    assert found == [expected[item["size"]]["usd_per_hour"] for item in items]
    assert found == sorted(found, key=lambda usd: inf if usd is None else usd)
    assert {frozenset(item["cost"]) for item in items} == {frozenset(("on_demand", "spot", purchase))}


@pytest.mark.first_database
def test_a_body_prices_all_six(client: httpx.Client) -> None:
    purchases = [*reversed(PURCHASE_MODELS)]
    body = {"resources": {"min_vcpus": 4}, "pricing": {"purchases": purchases}, "limit": 500}
    items = client.post("/fit", json=body).raise_for_status().json()["items"]
    expected = {row["name"]: row for row in expected_rows("savings_3y", ())}
    assert len(items) == len(SIZES) - 1
    for item in items:
        usd = {one: cost["usd_per_hour"] for one, cost in item["cost"].items()}
        assert usd == {one: expected[item["size"]][f"{one}_usd_per_hour"] for one in PURCHASE_MODELS}


def test_prices_of_a_past_day_are_ranked_by_it(client: httpx.Client) -> None:
    pricing = {"purchases": ["reserved_3y"], "as_of": "2026-08-01"}
    body = {"resources": {"min_vcpus": 4}, "pricing": pricing, "limit": 500}
    items = client.post("/fit", json=body).raise_for_status().json()["items"]
    expected = {row["name"]: (row["region"], row["usd_per_hour"]) for row in expected_rows("reserved_3y", ())}
    found = {item["size"]: (item["region"], item["cost"]["reserved_3y"]["usd_per_hour"]) for item in items}
    assert found == {name: row for name, row in expected.items() if name != "Standard_X1"}
