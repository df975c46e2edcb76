"""Recipes that cannot run in a test: their URLs respond and the columns they name exist."""

import csv
import io
import json
import re
from typing import Any

import httpx
import pytest
import yaml

from app.settings import PROJECT
from tests.docs.pages import read

SERVED = "http://127.0.0.1:8000"


@pytest.fixture
def page() -> str:
    return read(PROJECT / "docs" / "recipes.md")


def fence(page: str, language: str) -> str:
    (text,) = re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("region", ["", "eastus", "eastus,westeurope"])
def test_the_panel_of_grafana_shows_what_is_served(page: str, client: httpx.Client, region: str) -> None:
    panel = json.loads(fence(page, "json"))
    source = yaml.safe_load(fence(page, "yaml"))["datasources"][0]
    (target,) = panel["targets"]
    assert target["url"].startswith(tuple(source["jsonData"]["allowedHosts"]))
    assert source["type"] == panel["datasource"]["type"]
    answer: Any = client.get(target["url"].removeprefix(SERVED).replace("${region:csv}", region)).json()
    rows = answer[target["root_selector"]]
    assert rows
    kinds = {"string": str, "number": float}
    for column in target["columns"]:
        assert isinstance(rows[0][column["selector"]], kinds[column["type"]])


def test_the_query_of_excel_reads_what_is_served(page: str, client: httpx.Client) -> None:
    query = fence(page, "powerquery")
    (path,) = re.findall(r'RelativePath = "([^"]+)"', query)
    params = re.findall(r'(\w+) = "([^"]*)"', re.findall(r"Query = \[(.*?)\]", query)[0])
    answer = client.get(f"/{path}", params=dict(params))
    assert answer.status_code == 200
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8"))))
    readers = {"Int64.Type": int, "type number": float, "type date": str}
    for column, kind in re.findall(r'\{"(\w+)", ([\w. ]+)\}', query):
        assert all(readers[kind](row[column]) is not None for row in rows if row[column]), column


@pytest.mark.parametrize(
    "address", sorted(set(re.findall(rf"{SERVED}(/[^\s\"'`)]+)", read(PROJECT / "docs/recipes.md"))))
)
def test_every_address_answers(client: httpx.Client, address: str) -> None:
    answer = client.get(address.replace("${region:csv}", ""))
    assert answer.status_code == 200, answer.text
