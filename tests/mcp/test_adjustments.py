"""Tools of a catalog with the reader's own discounts: what is paid, with the list price and the rules beside it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.db.databases import open_database
from app.db.engines import make_engine
from app.ingest.registry import read_csv_source
from app.ingest.run import ingest
from app.mcp.catalog import CatalogReader
from app.mcp.tool import MAX_TOKENS
from tests.conftest import TODAY
from tests.databases import Databases
from tests.factories import NOW
from tests.mcp.asking import ask, call
from tests.mcp.test_budget import tokens

A100, NAME = "nc24ads_a100_v4", "Standard_NC24ads_A100_v4"
ADJUSTMENT = {"list_usd_per_hour": 3.673, "rules": ["EA discount"]}


def reader_with(rules: str, databases: Databases, template_url: str, folder: Path) -> Iterator[CatalogReader]:
    path, url = folder / "contoso.csv", databases.copy(template_url)
    path.write_text(f"name,size,region,discount_percent\n{rules}", encoding="utf-8")
    ingest(make_engine(url, pooled=False), read_csv_source("adjustments", path), now=NOW)
    database = open_database(url)
    reader = CatalogReader(database, lambda: TODAY)
    yield reader
    reader.close()
    database.dispose()
    databases.drop(url)


@pytest.fixture(scope="module")
def adjusted(
    databases: Databases, few_sizes_template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogReader]:
    """A catalog with 12 % off everything in East US."""
    folder = tmp_path_factory.mktemp("rules")
    yield from reader_with("EA discount,,eastus,12\n", databases, few_sizes_template_url, folder)


def text_of(catalog: CatalogReader, tool: str, **arguments: Any) -> str:
    return str(call(catalog, tool, arguments).content[0].text)  # type: ignore[union-attr]  # it is text


def test_a_list_of_sizes_has_the_list_price(adjusted: CatalogReader) -> None:
    for fields in ({}, {"fields": "usd_per_hour"}):
        (item,) = ask(adjusted, "find_sizes", name=f"*{A100}", region="eastus", **fields)["items"]
        assert (item["usd_per_hour"], item["adjustment"]) == (3.23224, ADJUSTMENT)
    assert "adjustment" not in ask(adjusted, "find_sizes", name=f"*{A100}", region="eastus", fields="vcpus")["items"][0]
    assert "3.23224 USD/h (list 3.673) on_demand" in text_of(adjusted, "find_sizes", name=f"*{A100}", region="eastus")


def test_prices_of_a_size_have_the_list_price(adjusted: CatalogReader) -> None:
    cheapest, *others = ask(adjusted, "explain_size", size=A100)["regions"]["cheapest"]
    assert (cheapest["region"], cheapest["adjustment"]) == ("eastus", ADJUSTMENT)
    elsewhere = [other["region"] for other in others]
    prices = ask(adjusted, "explain_size", size=A100, region=", ".join(["eastus", *elsewhere]))["prices"]
    assert {price["region"] for price in prices} == {"eastus", *elsewhere} > {"eastus"}
    assert {price["region"] for price in prices if "adjustment" in price} == {"eastus"}
    assert next(price for price in prices if price["purchase"] == "on_demand")["adjustment"] == ADJUSTMENT
    assert "from 3.23224 USD/h (list 3.673) in eastus" in text_of(adjusted, "explain_size", size=A100)


def test_costs_of_a_fit_have_the_list_price(adjusted: CatalogReader) -> None:
    options = ask(adjusted, "fit_workload", model="llama-3.1-8b", gpu="A100", region="eastus")["options"]
    (cost,) = [option["on_demand"] for option in options if option["size"] == NAME]
    assert (cost["usd_per_hour"], cost["adjustment"]) == (3.23224, ADJUSTMENT)


def test_the_price_in_force_is_what_is_paid_and_a_history_has_list_prices(adjusted: CatalogReader) -> None:
    history = ask(adjusted, "price_history", size=A100, region="eastus", as_of=TODAY.isoformat())
    assert (history["in_force"]["usd_per_hour"], history["in_force"]["adjustment"]) == (3.23224, ADJUSTMENT)
    assert history["prices"][0]["usd_per_hour"] == 3.673


def test_a_comparison_has_the_list_price(adjusted: CatalogReader) -> None:
    lines = ask(adjusted, "compare_sizes", sizes=f"{A100}, nc48ads_a100_v4", region="eastus")["fields"]
    assert [line["values"] for line in lines if line["field"] == "list_usd_per_hour"] == [[3.673, 7.346]]


def test_replies_with_many_rules_stay_short(databases: Databases, few_sizes_template_url: str, tmp_path: Path) -> None:
    rules = "".join(f"{'Framework agreement of the group part ' * 2} {number},,,1\n" for number in range(40))
    for catalog in reader_with(rules, databases, few_sizes_template_url, tmp_path):
        for tool, arguments in (
            ("find_sizes", {"gpu": "A100"}),
            ("explain_size", {"size": A100}),
            ("fit_workload", {"model": "llama-3.1-8b", "gpu": "A100"}),
            ("price_history", {"size": A100, "region": "eastus", "as_of": TODAY.isoformat()}),
        ):
            result = call(catalog, tool, arguments)
            assert not result.is_error, result.content
            taken = tokens(result.content[0].text) + tokens(result.structured_content)  # type: ignore[union-attr]
            assert taken <= MAX_TOKENS, (tool, taken)
