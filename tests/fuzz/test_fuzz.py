"""The short part of `python -m tests.fuzz`: the same inputs each time, and those that once ended a command."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from sqlalchemy import Engine

from app.db.engines import make_engine
from app.errors import BadData
from app.ingest.registry import read_csv_source
from app.ingest.run import ingest
from tests.databases import SELECTED_KINDS, Databases, first_on_each_kind, one_in
from tests.factories import reading, size
from tests.fuzz.__main__ import inputs_of
from tests.fuzz.inputs import SEEDS, STRATEGIES, Input
from tests.fuzz.requests import QUERIES, REQUESTS
from tests.fuzz.target import NOW, fill, run, send
from tests.ingest.feeds.meters import item
from tests.ingest.feeds.skus import entry
from tests.processes import ServiceProcess, run_service


@pytest.fixture(scope="module")
def filled_url(databases: Databases, template_url: str) -> str:
    """A catalog with what inputs refer to, to be copied."""
    url = databases.copy(template_url)
    engine = make_engine(url)
    fill(engine)
    engine.dispose()
    return url


@pytest.fixture
def database_url(databases: Databases, filled_url: str) -> Iterator[str]:
    """A new catalog with what inputs refer to."""
    url = databases.copy(filled_url)
    yield url
    databases.drop(url)


@pytest.mark.takes_seconds
@pytest.mark.parametrize("name", first_on_each_kind(1, one_in(2, STRATEGIES)))
def test_a_hostile_file_is_taken_or_refused(engine: Engine, tmp_path: Path, name: str) -> None:
    few = 8 if engine.dialect.name == SELECTED_KINDS[0] else 3  # most are refused before anything is written
    outcomes = [run(engine, tmp_path / "input", each) for each in inputs_of(name, 1, few)]
    assert outcomes
    assert [outcome.trace for outcome in outcomes if outcome.signature] == []


@pytest.fixture(scope="module")
def service(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with run_service(seeded_url, tmp_path_factory.mktemp("serve") / "log") as running:
        yield running


@pytest.mark.slow
@pytest.mark.one_database
def test_what_hostile_queries_are_made_of_is_taken(service: ServiceProcess) -> None:
    for path, queries in QUERIES.items():
        for query in queries:
            target = f"{path.replace('{name}', 'd4s_v5')}?{urlencode(query)}"
            answer = httpx.get(service.url + target, headers={"accept": "text/html"}, follow_redirects=True, timeout=60)
            assert (target, answer.status_code) == (target, 200)


@pytest.mark.takes_seconds
@pytest.mark.parametrize("name", first_on_each_kind(1, one_in(2, REQUESTS)))
def test_a_hostile_request_is_answered(service: ServiceProcess, name: str) -> None:
    outcomes = [send(service, each) for each in inputs_of(name, 1, 20)]
    assert outcomes
    assert [outcome.signature for outcome in outcomes if outcome.signature] == []


def _prices(**changed: Any) -> Input:
    items = [item(armRegionName="eastus", **changed)]
    page = {"BillingCurrency": "USD", "Items": items, "NextPageLink": None, "Count": 1}
    return Input("azure-prices", "page.json", json.dumps(page).encode())


def _skus(**changed: Any) -> Input:
    return Input("azure-skus", "skus.json", json.dumps({"value": [entry() | changed]}).encode())


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


ONCE: dict[str, Callable[[], Input]] = {
    "a plan that is a text": lambda: _prices(savingsPlan="soon"),
    "plans that are texts": lambda: _prices(savingsPlan=["1 Year"]),
    "a term that is a list": lambda: _prices(type="Reservation", reservationTerm=[]),
    "a term of a plan that is a list": lambda: _prices(savingsPlan=[{"term": [], "retailPrice": 1}]),
    "a price of no column": lambda: _prices(retailPrice=1e300),
    "places that are a text": lambda: _skus(locationInfo="eastus", locations="eastus"),
    "places that are numbers": lambda: _skus(locationInfo=[1], locations=[1]),
    "zones that are a number": lambda: _skus(locationInfo=[{"location": "eastus", "zones": 1}]),
    "capabilities that are a number": lambda: _skus(capabilities=1),
    "capabilities that are texts": lambda: _skus(capabilities=["vCPUs"]),
    "a count of no column": lambda: Input(
        "documents", "page.md", b"# NX\n\n| Size | vCPU | GPU |\n|---|---|---|\n| Standard_NX8_v1 | 8 | 7966759756 |\n"
    ),
    "a count of no column in CSV": lambda: Input(
        "sizes", "sizes.csv", b"id,source,gpu_count\nStandard_NX8_v1,azure-retail-prices-names,7966759756\n"
    ),
    "a text that is not UTF-8": lambda: Input("azure-skus", "skus.json", b'{"value": [{"name": "\xff\xfe"}]}'),
    "capabilities that are nested": lambda: _skus(capabilities=_nested(300)),
}


@pytest.mark.parametrize("name", first_on_each_kind(2, ONCE))
def test_a_file_that_once_ended_a_command_does_not(engine: Engine, tmp_path: Path, name: str) -> None:
    outcome = run(engine, tmp_path / "input", ONCE[name]())
    assert (outcome.signature, outcome.trace) == ("", "")


def test_an_alias_of_an_alias_is_refused_with_its_line(engine: Engine, tmp_path: Path) -> None:
    header = "alias,size,source,reason\n"
    row = "{},{},azure-retail-prices-names,a test\n"
    ingest(engine, reading(size("Standard_NC2_v1", vcpus=2)), now=NOW)
    path = tmp_path / "aliases.csv"
    path.write_text(header + row.format("NC1", "Standard_NC2_v1") + row.format("NC2_v1", "Standard_NC3_v1"))
    with pytest.raises(BadData, match=r"aliases\.csv:2: column 'size': 'Standard_NC2_v1': is itself another name"):
        ingest(engine, read_csv_source("aliases", path, SEEDS / "sources.csv"), now=NOW)
    path.write_text(header + row.format("NC1", "Standard_NC2_v1"))
    ingest(engine, read_csv_source("aliases", path, SEEDS / "sources.csv"), now=NOW)
    other = tmp_path / "more.csv"
    other.write_text(header + row.format("NC2_v1", "Standard_NC3_v1"))
    with pytest.raises(BadData, match=r"more\.csv:2: column 'alias': 'NC2_v1': is the size that the alias nc1 means"):
        ingest(engine, read_csv_source("aliases", other, SEEDS / "sources.csv"), now=NOW)
