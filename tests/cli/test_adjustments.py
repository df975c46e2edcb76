"""Commands on a catalog with the reader's own discounts: what is paid, with the list price beside it."""

import csv
import json
from collections.abc import Iterator

import pytest

from app.db.engines import make_engine
from app.ingest.registry import read_csv_source
from app.ingest.run import ingest
from tests.cli.conftest import Run
from tests.databases import Databases
from tests.factories import NOW

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

RULES = "name,size,region,discount_percent\nEA discount,,eastus,12\n"
A100 = "Standard_NC24ads_A100_v4"
FIT = ("fit", "--min-gpu-mem", "160", "--max-nodes", "2", "--name", A100, "--region", "eastus")


@pytest.fixture(scope="module")
def adjusted_url(
    databases: Databases, few_sizes_template_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """A catalog with 12 % off everything in East US."""
    path = tmp_path_factory.mktemp("rules") / "contoso.csv"
    path.write_text(RULES)
    url = databases.copy(few_sizes_template_url)
    engine = make_engine(url)
    ingest(engine, read_csv_source("adjustments", path), now=NOW)
    engine.dispose()
    yield url
    databases.drop(url)


def test_a_fit_of_amounts_costs_what_is_paid_beside_the_list_price_of_all_vms(run: Run, adjusted_url: str) -> None:
    shown = run(adjusted_url, *FIT)
    assert shown.returncode == 0, shown.stderr
    header, row = shown.stdout.splitlines()[:2]
    assert "list USD/h" in header
    assert "6.46448" in row
    assert "7.346" in row
    assert "EA discount" in row
    (option,) = csv.DictReader(run(adjusted_url, *FIT, "--csv").stdout.splitlines())
    assert (option["usd_per_hour"], option["list_usd_per_hour"], option["adjustments"]) == (
        "6.46448",
        "7.346",
        "EA discount",
    )
    (item,) = json.loads(run(adjusted_url, *FIT, "--json").stdout)["items"]
    assert item["cost"]["on_demand"]["adjustment"] == {"list_usd_per_hour": 3.673, "rules": ["EA discount"]}
    assert "list" not in run(adjusted_url, *FIT[:-1], "westeurope").stdout.splitlines()[0]


def test_a_fit_of_a_model_has_the_list_price(run: Run, adjusted_url: str) -> None:
    shown = run(adjusted_url, "fit", "llama-3.1-8b", "--name", A100, "--region", "eastus").stdout
    header, row = shown.splitlines()[:2]
    assert "list USD/h" in header
    assert ("3.23224" in row, "3.673" in row, "EA discount" in row) == (True, True, True)


def test_a_size_its_cost_and_its_ways_to_buy_have_the_list_price(run: Run, adjusted_url: str) -> None:
    asked = (A100, "--region", "eastus")
    for command in ("cost", "buy"):
        header, row = run(adjusted_url, command, *asked).stdout.splitlines()[2:4]
        assert "list USD/h" in header
        assert ("3.23224" in row, "3.673" in row, "EA discount" in row) == (True, True, True)
        (priced, *_) = csv.DictReader(run(adjusted_url, command, *asked, "--csv").stdout.splitlines())
        assert (priced["list_usd_per_hour"], priced["adjustments"]) == ("3.673", "EA discount")
    shown = " ".join(run(adjusted_url, "show", A100).stdout.split())
    assert "3.23224 USD/h on demand" in shown
    assert "Linux, eastus, list price 3.673 USD/h, adjusted by EA discount" in shown
