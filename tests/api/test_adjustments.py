"""Rules of the reader's own: every answer has what is paid, the list price beside it, and orders and filters by it."""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no type information
import pytest
from sqlalchemy import select

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.readings import PriceRow
from app.db.engines import make_engine
from app.ingest.registry import read_csv_source
from app.ingest.run import forget, ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.adjusted import serve_adjusted
from tests.conftest import TODAY
from tests.databases import Databases, make_read_only, writable
from tests.factories import NOW, price, price_list, reading
from tests.servers import open_client, server
from tests.waiting import wait_until
from tests.walks import PRICED, assert_same_answers

RULES = """\
name,size,region,os,purchase,discount_percent,usd_per_hour,valid_from,valid_until
EA discount,,westeurope,,,12,,,
Linux promotion,,,linux,on_demand,1.5,,,2026-07-31
Spot markup,,,,spot,-3,,,
ND at a fixed price,ND*,,,on_demand,,40,2026-01-01,
ND rebate,Standard_ND*,eastus,,on_demand,10,,,
"""
A100, ND = "Standard_NC24ads_A100_v4", "Standard_ND96asr_v4"
MODEL = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 8}}


REGIONS, PURCHASES = ("eastus", "westeurope", "uksouth"), ("on_demand", "spot", "reserved_1y", "savings_3y")
DAYS = (date(2025, 12, 1), date(2026, 8, 20))


def prices_of(name: str, vcpus: int, gpus: float) -> Iterator[PriceRow]:
    """Return a price of a size for each region, purchase model and day; for Windows on demand alone."""
    for (number, region), purchase, day in product(enumerate(REGIONS), PURCHASES, DAYS):
        usd = Decimal((vcpus * 0.05 + gpus * 1.1) * (10 + number) / (10 + PURCHASES.index(purchase)))
        of = {"region": region, "purchase": purchase, "valid_from": day}
        yield price(name, round(usd, 4) + DAYS.index(day), **of)
        if purchase == "on_demand":
            yield price(name, round(2 * usd, 4), os="windows", **of)


@pytest.fixture(scope="module")
def priced_url(databases: Databases, few_sizes_template_url: str) -> Iterator[str]:
    """A catalog in which all sizes with GPUs are priced in three regions, to be copied."""
    url, table = databases.copy(few_sizes_template_url), table_of(Size)
    engine = make_engine(url)
    with engine.connect() as connection:
        sizes = connection.execute(select(table.c.name, table.c.vcpus, table.c.gpu_count).where(table.c.gpu_count >= 1))
        rows = [row for each in sizes for row in prices_of(*each)]
    ingest(engine, replace(reading(regions=REGIONS), prices=price_list(*rows, at_once=1000)), now=NOW)
    engine.dispose()
    yield url
    databases.drop(url)


@pytest.fixture(scope="module")
def client(priced_url: str) -> Iterator[httpx.Client]:
    """A client of a service without rules."""
    service = create_asgi_app(Settings(_env_file=None, database_url=priced_url), today=lambda: TODAY)
    make_read_only(service.app.state.database)
    with server(service) as url, open_client(url) as client:
        yield client
    service.app.state.database.dispose()


@pytest.fixture(scope="module")
def adjusted(databases: Databases, priced_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a service whose prices follow RULES."""
    path = tmp_path_factory.mktemp("rules") / "contoso.csv"
    path.write_text(RULES)
    with serve_adjusted(databases, priced_url, path) as client:
        yield client


def get(client: httpx.Client, path: str, **params: Any) -> Any:
    answer = client.get(path, params=params or None)
    assert answer.status_code == 200, answer.text
    return answer.json()


def times(usd: float, *factors: str) -> float:
    """Multiply a price exactly, and round it once to 9 decimal places."""
    exact = Decimal(repr(usd))
    for factor in factors:
        exact *= Decimal(factor)
    return float(exact.quantize(Decimal("1e-9"), ROUND_HALF_UP))


def paid(row: Mapping[str, Any], price: Mapping[str, Any], day: str) -> tuple[float, list[str]]:
    """Return what RULES make of a list price, with the rules that do, written independently of the program."""
    amount = Decimal(repr(price["usd_per_hour"]))
    names: list[str] = []
    is_nd, on_demand = row["size"].removeprefix("Standard_").startswith("ND"), row["purchase"] == "on_demand"
    if row["region"] == "westeurope":
        amount, names = amount * Decimal("0.88"), [*names, "EA discount"]
    if row["os"] == "linux" and on_demand and day <= "2026-07-31":
        amount, names = amount * Decimal("0.985"), [*names, "Linux promotion"]
    if row["purchase"] == "spot":
        amount, names = amount * Decimal("1.03"), [*names, "Spot markup"]
    if is_nd and on_demand and day >= "2026-01-01":
        amount, names = Decimal(40), ["ND at a fixed price"]
    if is_nd and on_demand and row["region"] == "eastus":
        amount, names = amount * Decimal("0.9"), [*names, "ND rebate"]
    return float(amount.quantize(Decimal("1e-9"), ROUND_HALF_UP)), names


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize("day", ["2025-12-31", "2026-07-31", str(TODAY)])
def test_every_price_is_what_the_rules_of_the_day_make_of_the_list_price(
    client: httpx.Client, adjusted: httpx.Client, day: str
) -> None:
    query = {"series": "ndasra100v4,ncadsa100v4,ncast4v3", "region": "westeurope,eastus,uksouth", "as_of": day}
    listed, rows = (get(each, "/prices", **query, limit=500)["items"] for each in (client, adjusted))
    assert len(listed) == len(rows) > 20
    for before, row in zip(listed, rows, strict=True):
        usd, names = paid(row, before, day)
        assert row["usd_per_hour"] == usd
        expected = {"list_usd_per_hour": before["usd_per_hour"], "rules": names} if names else None
        assert row.get("adjustment") == expected
        plain = {name: value for name, value in row.items() if name != "adjustment"}
        assert plain == {**before, "usd_per_hour": usd}


@pytest.mark.first_database
def test_a_history_has_list_prices(client: httpx.Client, adjusted: httpx.Client) -> None:
    for path in (f"/sizes/{A100}/price-history?region=westeurope", f"/prices?size={A100}&history=true&limit=500"):
        assert get(client, path)["items"] == get(adjusted, path)["items"]


@pytest.mark.parametrize("purchase", ["on_demand", "spot", "reserved_1y", "savings_3y"])
@pytest.mark.parametrize("region", ["westeurope", "eastus,westeurope", None])
def test_a_list_is_in_the_order_of_what_is_paid(adjusted: httpx.Client, purchase: str, region: str | None) -> None:
    where = {"region": region} if region else {}
    query = {"purchase": purchase, "sort": "usd_per_hour", "limit": 500, "gpu": "A100,H100,A10,T4,V100"}
    rows = get(adjusted, "/sizes", **query, **where)["items"]
    usd = [row["usd_per_hour"] for row in rows if row["usd_per_hour"] is not None]
    assert usd == sorted(usd)
    assert purchase not in ("on_demand", "spot") or any("adjustment" in row for row in rows)
    for row in rows:
        assert row["usd_per_hour"] == row[f"{purchase}_usd_per_hour"]
        if row["usd_per_hour"] is not None and row["gpu_count"] and row["gpu_count"] >= 1:
            assert row["usd_per_gpu_hour"] == pytest.approx(row["usd_per_hour"] / row["gpu_count"], abs=1e-9)
            assert row["usd_per_vcpu_hour"] == pytest.approx(row["usd_per_hour"] / row["vcpus"], abs=1e-9)
            assert row["usd_per_memory_gib_hour"] == pytest.approx(row["usd_per_hour"] / row["memory_gib"], abs=1e-9)


@pytest.mark.parametrize(
    "path",
    [
        *PRICED,
        "/sizes?region=eastus,westeurope&sort=-usd_per_vcpu_hour&limit=500",
        f"/sizes/{ND}",
        "/sizes/nc16as_t4_v3/similar?region=eastus,westeurope&limit=500",
        "/compare?size=nc24ads_a100_v4,nd96asr_v4&region=eastus,westeurope",
    ],
)
def test_answers_of_today_are_the_same_by_the_rules_of_the_day(adjusted: httpx.Client, path: str) -> None:
    assert_same_answers(adjusted, path, f"{path}{'&' if '?' in path else '?'}as_of={TODAY}")


@pytest.mark.first_database
def test_one_size_has_its_list_price_where_it_is_cheapest_for_the_reader(
    client: httpx.Client, adjusted: httpx.Client
) -> None:
    listed, row = get(client, f"/sizes/{ND}"), get(adjusted, f"/sizes/{ND}")
    assert "adjustment" not in listed
    assert (row["region"], row["usd_per_hour"]) == ("eastus", 36.0)
    assert row["adjustment"]["rules"] == ["ND at a fixed price", "ND rebate"]
    here = get(client, "/sizes", name=ND, region="eastus")["items"][0]
    assert row["adjustment"]["list_usd_per_hour"] == here["usd_per_hour"]


@pytest.mark.first_database
def test_filters_and_facets_are_about_what_is_paid(client: httpx.Client, adjusted: httpx.Client) -> None:
    (listed,) = get(client, "/sizes", name=A100, region="westeurope")["items"]
    usd = times(listed["usd_per_hour"], "0.88")
    for bound, found in ((usd, 1), (usd - 0.01, 0)):
        query = {"name": A100, "region": "westeurope", "max_usd_per_hour": bound}
        assert get(adjusted, "/sizes", **query)["total"] == found
        assert get(client, "/sizes", **query)["total"] == 0
        assert get(adjusted, "/sizes", **query, as_of=str(TODAY))["total"] == found
    assert get(adjusted, "/facets", name=A100, region="westeurope")["usd_per_hour"]["max"] == usd


@pytest.mark.first_database
def test_a_fit_costs_what_is_paid_and_keeps_to_the_budget_by_it(client: httpx.Client, adjusted: httpx.Client) -> None:
    query = {"name": A100, "region": "westeurope", "max_nodes": 2, "min_gpu_mem": 160}
    (listed,), (option,) = (get(each, "/fit", **query)["items"] for each in (client, adjusted))
    before, cost = listed["cost"]["on_demand"], option["cost"]["on_demand"]
    assert option["nodes"] == 2
    assert cost["usd_per_hour"] == pytest.approx(before["usd_per_hour"] * 0.88)
    assert cost["adjustment"] == {"list_usd_per_hour": before["usd_per_hour"] / 2, "rules": ["EA discount"]}
    assert option["cost"]["spot"]["adjustment"]["rules"] == ["EA discount", "Spot markup"]
    between = (before["usd_per_month"] + cost["usd_per_month"]) / 2
    assert get(client, "/fit", **query, budget_usd_per_month=between)["total"] == 0
    assert get(adjusted, "/fit", **query, budget_usd_per_month=between)["total"] == 1


@pytest.mark.first_database
@pytest.mark.parametrize("pricing", [{}, {"as_of": str(TODAY)}])
def test_a_placement_costs_what_is_paid(client: httpx.Client, adjusted: httpx.Client, pricing: dict[str, str]) -> None:
    body = {**MODEL, "pricing": pricing, "constraints": {"regions": ["westeurope"]}, "limit": 20}
    answers = [each.post("/fit", json=body) for each in (client, adjusted)]
    listed, options = ({one["size"]: one["cost"]["on_demand"] for one in each.json()["items"]} for each in answers)
    usd = {name: listed[name]["usd_per_hour"] for name in listed}
    for name in listed.keys() & options.keys():
        assert options[name]["adjustment"]["list_usd_per_hour"] <= usd[name]
    assert options["Standard_NC96ads_A100_v4"]["usd_per_hour"] == times(usd["Standard_NC96ads_A100_v4"], "0.88")


@pytest.mark.first_database
def test_a_cost_has_the_list_price_beside_it(client: httpx.Client, adjusted: httpx.Client) -> None:
    query = {"region": "westeurope", "disk": "premium_ssd:1024"}
    listed, cost = (get(each, f"/sizes/{A100}/cost", **query) for each in (client, adjusted))
    before = listed["vm"]["usd_per_hour"]
    assert cost["vm"]["usd_per_hour"] == times(before, "0.88")
    assert cost["vm"]["adjustment"] == {"list_usd_per_hour": before, "rules": ["EA discount"]}
    assert cost["disks"] == listed["disks"]
    assert "adjustment" not in listed["vm"]
    assert get(adjusted, f"/sizes/{ND}/cost")["region"] == "eastus"


@pytest.mark.first_database
@pytest.mark.parametrize("asked", [{}, {"region": "westeurope"}, {"region": "eastus,westeurope"}, {"as_of": TODAY}])
def test_similar_sizes_have_the_list_price_beside_what_is_paid(
    client: httpx.Client, adjusted: httpx.Client, asked: dict[str, Any]
) -> None:
    items = get(adjusted, f"/sizes/{A100}/similar", limit=500, **asked)["items"]
    assert any("adjustment" in one for one in items)
    for one in items:
        if one["usd_per_hour"] is None:
            assert "adjustment" not in one
            continue
        offer = {"size": one["size"], "region": one["region"], "os": "linux", "purchase": "on_demand"}
        (listed,) = get(client, "/prices", **offer)["items"]
        usd, names = paid(offer, listed, str(TODAY))
        assert one["usd_per_hour"] == usd
        expected = {"list_usd_per_hour": listed["usd_per_hour"], "rules": names} if names else None
        assert one.get("adjustment") == expected


@pytest.mark.first_database
def test_a_plan_for_retirements_has_list_prices_beside_what_is_paid(
    client: httpx.Client, adjusted: httpx.Client
) -> None:
    body = {"items": [{"size": "nc6s_v3", "region": "westeurope"}, {"size": "nv12s_v3", "region": "eastus"}]}
    listed, plan = (each.post("/retirements", json=body).raise_for_status().json() for each in (client, adjusted))
    here, there = plan["items"]
    (before, _) = listed["items"]
    assert "adjustment" not in {**before, **before["successors"][0], **there, **there["successors"][0]}
    rules = {"rules": ["EA discount"]}
    assert here["adjustment"] == {"list_usd_per_hour": before["usd_per_hour"], **rules}
    usd = {one["size"]: one["usd_per_hour"] for one in before["successors"]}
    for one in here["successors"]:
        assert one["adjustment"] == {"list_usd_per_hour": usd[one["size"]], **rules}
        assert one["usd_per_hour"] == times(usd[one["size"]], "0.88")


@pytest.mark.first_database
def test_a_comparison_has_list_prices_where_any_is_adjusted(client: httpx.Client, adjusted: httpx.Client) -> None:
    query = {"size": f"{A100},{ND}", "region": "westeurope"}
    listed, compared = ({one["field"]: one for one in get(each, "/compare", **query)["fields"]}
                        for each in (client, adjusted))  # fmt: skip
    assert [each["value"] for each in compared["list_usd_per_hour"]["values"]] == [
        each["value"] for each in listed["usd_per_hour"]["values"]
    ]
    assert compared["list_usd_per_hour"]["unit"] == "USD/h"
    assert compared["adjustments"]["values"][0]["value"] == ["EA discount"]
    assert not listed.keys() & {"list_usd_per_hour", "adjustments", "adjustment"}


@pytest.mark.first_database
@pytest.mark.parametrize("path", ["/sizes.csv?region=westeurope", "/prices.csv?region=westeurope&os=linux"])
def test_an_export_has_columns_of_list_prices_where_there_are_rules(
    client: httpx.Client, adjusted: httpx.Client, path: str
) -> None:
    before, rows = (list(csv.DictReader(io.StringIO(each.get(path).text))) for each in (client, adjusted))
    assert list(rows[0]) == [*before[0], "list_usd_per_hour", "adjustments"]
    key = "name" if "sizes" in path else "size"
    listed = {(row[key], row.get("purchase"), row.get("source_id")): row["usd_per_hour"] for row in before}
    for row in rows:
        assert row["list_usd_per_hour"] == listed[row[key], row.get("purchase"), row.get("source_id")]
        assert (row["adjustments"] == "") == (row["list_usd_per_hour"] == row["usd_per_hour"])
    named = client.get(f"{path}&fields=usd_per_hour,list_usd_per_hour,adjustments").text.splitlines()
    assert named[0] == "usd_per_hour,list_usd_per_hour,adjustments"
    usd, same, rules = next(line for line in named[1:] if line[0] != ",").split(",")
    assert (usd, rules) == (same, "")


@pytest.mark.first_database
def test_a_parquet_file_has_the_same_list_prices_and_adjustments(adjusted: httpx.Client) -> None:
    fields = "fields=size,usd_per_hour,list_usd_per_hour,adjustments"
    lines = adjusted.get(f"/prices.ndjson?{fields}").text.splitlines()
    rows = pq.read_table(io.BytesIO(adjusted.get(f"/prices.parquet?{fields}").content)).to_pylist()
    assert rows == [json.loads(line) for line in lines]
    assert {len(row["adjustments"]) for row in rows} >= {0, 1, 2}


@pytest.mark.first_database
def test_amounts_in_a_currency_are_converted_from_what_is_paid(adjusted: httpx.Client) -> None:
    page = get(adjusted, "/sizes", name=A100, region="westeurope", currency="EUR")
    (row,), rate = page["items"], page["exchange_rate"]["units_per_usd"]
    assert row["converted"]["price_per_hour"] == pytest.approx(row["usd_per_hour"] * rate)
    assert "adjustment" in row


@pytest.mark.first_database
def test_without_rules_no_answer_has_an_adjustment(client: httpx.Client) -> None:
    for path in ("/sizes?limit=500", f"/sizes/{A100}", "/prices?limit=500", "/fit?min_gpus=8", "/sizes.csv"):
        assert "adjustment" not in client.get(path).text


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_the_source_of_the_rules_is_listed_and_can_be_forgotten(few_sizes_url: str, tmp_path: Path) -> None:
    path = tmp_path / "contoso.csv"
    path.write_text(RULES)
    service = create_asgi_app(Settings(_env_file=None, database_url=few_sizes_url), today=lambda: TODAY)
    engine = writable(service)
    query = "/sizes?region=eastus&limit=500&fields=name,usd_per_hour,adjustment,spot_usd_per_hour"
    with server(service) as url, open_client(url) as client:
        listed = get(client, query)["items"]
        ingest(engine, read_csv_source("adjustments", path), now=NOW)
        wait_until(lambda: get(client, query)["items"] != listed)  # that of before may be sent for a moment
        (source,) = [one for one in get(client, "/sources?limit=500")["items"] if one["id"] == "adjustments-contoso"]
        assert source["publisher"] == "own"
        forget(engine, "adjustments-contoso", now=NOW)
        wait_until(lambda: get(client, query)["items"] == listed)
    engine.dispose()
