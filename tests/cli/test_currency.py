"""`--currency`: columns in another currency, headed by its name."""

import csv
import json

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

RATE = "1 USD = 0.862813 EUR by the rates of 2026-09-01 (ecb-reference-rates-2026-10-30)."


def test_a_search_has_its_prices_in_the_currency(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "search", "A100", "--limit", "1", "--currency", "eur")
    heading, row = done.stdout.splitlines()[:2]
    assert "EUR/h" in heading
    assert "spot EUR/h" in heading
    assert "USD" not in heading
    assert "3.1691" in row
    assert RATE in done.stdout
    assert "EUR" not in run(seeded_url, "search", "A100", "--limit", "1").stdout


def test_json_has_what_the_api_sends_and_csv_flat_columns(run: Run, seeded_url: str) -> None:
    arguments = ("search", "A100", "--limit", "1", "--currency", "EUR")
    (item,) = json.loads(run(seeded_url, *arguments, "--json").stdout)
    assert item["converted"]["currency"] == "EUR"
    (row,) = csv.DictReader(run(seeded_url, *arguments, "--csv").stdout.splitlines())
    assert (row["currency"], row["price_per_hour"]) == ("EUR", str(item["converted"]["price_per_hour"]))
    assert "converted" not in row
    chosen = run(seeded_url, *arguments, "--columns", "name,converted.price_per_hour,usd_per_hour", "--json").stdout
    assert json.loads(chosen)[0]["converted.price_per_hour"] == item["converted"]["price_per_hour"]


def test_a_size_is_shown_with_its_prices_in_the_currency(run: Run, seeded_url: str) -> None:
    shown = run(seeded_url, "show", "nc24ads_a100_v4", "--currency", "EUR").stdout
    assert "3.1691 EUR/h on demand (as of " in shown
    assert "USD/h" not in shown
    assert RATE in shown
    prices = run(seeded_url, "show", "nc24ads_a100_v4", "--currency", "EUR", "--prices").stdout
    assert "EUR/h" in prices.splitlines()[0]
    whole = json.loads(run(seeded_url, "show", "nc24ads_a100_v4", "--currency", "EUR", "--json").stdout)
    assert whole["exchange_rate"]["day"] == "2026-09-01"
    assert whole["prices"][0]["converted"]["currency"] == "EUR"


def test_a_comparison_names_the_currency_of_its_rows(run: Run, seeded_url: str) -> None:
    arguments = ("compare", "nc24ads_a100_v4", "nc40ads_h100_v5", "--currency", "EUR")
    shown = run(seeded_url, *arguments).stdout
    assert "price_per_hour (EUR)" in shown
    assert "price_per_fp16_tflops_hour (EUR)" in shown
    assert RATE in shown
    chosen = run(seeded_url, *arguments, "--columns", "price_per_hour", "--json").stdout
    assert [field["unit"] for field in json.loads(chosen)["fields"]] == ["EUR/h"]


@pytest.mark.parametrize("what", [("--min-gpus", "4", "--hours", "24"), ("llama-3.1-70b", "--context", "8k")])
def test_a_fit_has_its_costs_in_the_currency(run: Run, seeded_url: str, what: tuple[str, ...]) -> None:
    done = run(seeded_url, "fit", *what, "--limit", "2", "--currency", "EUR")
    heading = done.stdout.splitlines()[0]
    assert "EUR/h" in heading
    assert "USD" not in heading
    assert RATE in done.stdout


def test_a_cost_is_shown_in_the_currency(run: Run, seeded_url: str) -> None:
    arguments = ("cost", "nc24ads_a100_v4", "--region", "westeurope", "--disk", "premium_ssd:1024", "--currency", "EUR")
    shown = run(seeded_url, *arguments)
    heading, vm, disk, total = shown.stdout.splitlines()[2:6]
    assert "EUR/h" in heading
    assert "USD" not in heading
    assert [vm.split()[0], disk.split()[0], total.split()[0]] == ["vm", "disks[0]", "total"]
    assert RATE in shown.stdout
    answer = json.loads(run(seeded_url, *arguments, "--json").stdout)
    assert answer["vm"]["converted"]["price_per_hour"] == 4.119930975
    assert f"{answer['total']['converted']['price_per_month']:,.2f}" in total


@pytest.mark.parametrize(
    "arguments",
    [("search",), ("show", "nd40rs_v2"), ("cost", "nd40rs_v2"), ("fit", "llama-3.1-70b"), ("fit", "--min-gpus", "1")],
)
def test_a_currency_that_cannot_be_had_is_refused_by_the_name_of_the_option(
    run: Run, seeded_url: str, arguments: tuple[str, ...]
) -> None:
    done = run(seeded_url, *arguments, "--currency", "ZZZ")
    assert done.returncode == 2
    assert "--currency=ZZZ: allowed are AUD, " in done.stderr
