"""`vmsizes cost` and `buy` for Windows say what the licence costs."""

import csv
import json
import re
from decimal import Decimal

import pytest

from app.db.engines import make_engine
from app.ingest.run import ingest
from tests.cli.conftest import Run
from tests.factories import NOW, price, reading, size

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

BENEFIT = "With Azure Hybrid Benefit Windows Server costs what Linux does: --os linux."


def test_a_cost_with_the_licence_of_windows_names_the_price_without(run: Run, seeded_url: str) -> None:
    arguments = ("cost", "d4s_v5", "--region", "westeurope", "--os")
    assert BENEFIT in run(seeded_url, *arguments, "windows").stdout
    assert BENEFIT not in run(seeded_url, *arguments, "linux").stdout
    assert "Azure Hybrid Benefit" in " ".join(run(seeded_url, "cost", "--help").stdout.split())


def test_the_licence_beside_a_commitment_has_a_column(run: Run, seeded_url: str) -> None:
    arguments = ("buy", "b16als_v2", "--region", "polandcentral", "--months", "12", "--os")
    assert "licence USD/h" in run(seeded_url, *arguments, "windows").stdout
    assert "licence" not in run(seeded_url, *arguments, "linux").stdout.partition("Cheapest")[0]
    ways = {
        way["purchase"]: way
        for way in csv.DictReader(run(seeded_url, *arguments, "windows", "--csv").stdout.splitlines())
    }
    assert ways["on_demand"]["licence_usd_per_hour"] == ""
    amounts = (Decimal(ways["reserved_1y"][name]) for name in ("usd_per_hour", "licence_usd_per_hour"))
    assert sum(amounts) * 12 * 730 == Decimal(ways["reserved_1y"]["usd_total"])


@pytest.mark.parametrize(
    ("months", "hours", "term"), [("1", "1", "1 month of 1 hour\n"), ("2", "1.5", "2 months of 1.5 hours\n")]
)
def test_the_term_of_ways_to_buy_is_in_its_number(
    run: Run, seeded_url: str, months: str, hours: str, term: str
) -> None:
    options = ("--region", "westeurope", "--months", months, "--hours-per-month", hours)
    assert term in run(seeded_url, "buy", "d4s_v5", *options).stdout


COMPUTED = ("a1.large", "--region", "eu-west-1")


@pytest.mark.parametrize("command", ["cost", "buy"])
def test_a_computed_price_is_said_to_be(run: Run, all_clouds_url: str, command: str) -> None:
    shown = run(all_clouds_url, command, *COMPUTED).stdout
    assert "computed: 0.051 in us-east-1 x 1.12941" in shown
    rows = list(csv.DictReader(run(all_clouds_url, command, *COMPUTED, "--csv").stdout.splitlines()))
    assert "us-east-1" in rows[0]["estimate_formula"]
    assert "computed" not in run(all_clouds_url, command, "a1.large", "--region", "us-east-1").stdout


def test_a_fit_and_a_comparison_say_that_prices_are_computed(run: Run, all_clouds_url: str) -> None:
    fit = ("fit", "--min-vcpus", "2", "--name", "a1.large", "--region")
    assert "computed" in run(all_clouds_url, *fit, "eu-west-1").stdout.splitlines()[1]
    assert "computed" not in run(all_clouds_url, *fit, "us-east-1").stdout
    compared = run(all_clouds_url, "compare", "a1.large", "a1.xlarge", "--region", "eu-west-1").stdout
    assert "estimate_formula" in compared


def test_ways_to_buy_without_any_price_are_named_and_nothing_is_found(run: Run, all_clouds_url: str) -> None:
    for output in ((), ("--csv",), ("--json",)):
        done = run(all_clouds_url, "buy", "m5.large", "--os", "windows", *output)
        assert done.returncode == 1
        assert done.stderr == "windows on_demand: no price is known in any region.\n"
    shown = run(all_clouds_url, "buy", "m5.large", "--os", "windows").stdout
    assert shown.startswith("m5.large (no price): 1 VM, Windows,")
    assert "Unknown: on_demand, spot, reserved_1y, reserved_3y, savings_1y, savings_3y." in shown


def test_a_size_without_a_price_is_not_said_to_have_none_where_others_have(run: Run, all_clouds_url: str) -> None:
    done = run(all_clouds_url, "cost", "d4s_v5", "--known-at", "2020-01-01")
    assert done.stdout.startswith("Standard_D4s_v5 (no price), as known on 2020-01-01: Linux, on demand,")
    assert done.stderr == (
        "linux on_demand: no price of Standard_D4s_v5 is known in any region, as the catalog knew them on 2020-01-01.\n"
    )
    assert "region has a price" not in run(all_clouds_url, "cost", "m5.large", "--os", "windows").stdout


@pytest.mark.parametrize("command", ["cost", "buy"])
def test_the_day_that_was_asked_for_is_in_the_heading(run: Run, seeded_url: str, command: str) -> None:
    shown = run(seeded_url, command, "d8s_v5", "--region", "westeurope", "--as-of", "2026-07-01").stdout
    assert shown.startswith("Standard_D8s_v5 in westeurope, in force on 2026-07-01: ")


def test_ways_to_buy_say_of_which_days_their_prices_are(run: Run, seeded_url: str) -> None:
    shown = run(seeded_url, "buy", "d8s_v5", "--region", "westeurope").stdout
    days = {
        row["price_as_of"]: row["purchase"]
        for row in csv.DictReader(
            run(seeded_url, "buy", "d8s_v5", "--region", "westeurope", "--csv").stdout.splitlines()
        )
        if row["price_as_of"]
    }
    assert ("Prices are of different days: " in shown) == (len(days) > 1)
    assert all(day in shown for day in days)


def test_csv_of_a_cost_and_of_the_ways_to_buy_has_every_field(run: Run, seeded_url: str) -> None:
    asked = ("nc24ads_a100_v4", "--region", "westeurope", "--csv")
    rows = list(
        csv.DictReader(run(seeded_url, "cost", *asked, "--disk", "ultra_disk:128:1000:100").stdout.splitlines())
    )
    assert [row["part"] for row in rows] == ["vm", "disks[0]", "total"]
    for row in rows:
        assert [row[name] for name in ("size", "region", "os", "purchase", "warnings")] == [
            *("Standard_NC24ads_A100_v4", "westeurope", "linux", "on_demand", "NO_ULTRA_DISK")
        ]
    assert rows[0]["approximate_date"] == "false"
    (way, *_) = csv.DictReader(run(seeded_url, "buy", *asked).stdout.splitlines())
    assert [way[name] for name in ("size", "region", "os", "unusual", "disputed", "approximate_date", "warnings")] == [
        *("Standard_NC24ads_A100_v4", "westeurope", "linux", "false", "false", "false", "")
    ]
    assert int(way["price_age_days"]) >= 0


@pytest.mark.parametrize("command", ["cost", "buy", "history"])
def test_a_region_of_another_cloud_is_a_bad_option(run: Run, all_clouds_url: str, command: str) -> None:
    done = run(all_clouds_url, command, "d8s_v5", "--region", "us-east-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert "--region=us-east-1: is a region of AWS, and Standard_D8s_v5 is a size of Azure" in done.stderr


def test_a_history_without_prices_says_that_none_is_known_there(run: Run, seeded_url: str) -> None:
    asked = ("--region", "eastus", "--purchase", "reserved_3y", "--until", "2023-11-01")
    done = run(seeded_url, "history", "d8s_v5", *asked)
    assert (done.returncode, done.stdout) == (1, "linux reserved_3y: no price is known in eastus.\n")
    elsewhere = run(seeded_url, "history", "b16als_v2", "--region", "eastus", "--purchase", "reserved_1y").stdout
    assert "no price is known in eastus, but in polandcentral." in elsewhere


def test_an_undated_price_has_no_age_and_is_said_to_be_weak(run: Run, database_url: str) -> None:
    ways = {"on_demand": ("0.2", True), "reserved_1y": ("0.1", False)}
    prices = [price("Standard_X1", usd, purchase=way, approximate_date=undated) for way, (usd, undated) in ways.items()]
    engine = make_engine(database_url)
    ingest(engine, reading(size("Standard_X1", vcpus=2), regions=("eastus",), prices=prices), now=NOW)
    engine.dispose()
    row = run(database_url, "cost", "x1").stdout.splitlines()[3].split("  ")
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells[:2] == ["vm", "1 VM"]
    assert cells[5:7] == ["≈2026-06-18", "-"]
    shown = run(database_url, "buy", "x1").stdout
    on_demand, reserved = (line for line in shown.splitlines() if re.match(r"(on_demand|reserved_1y) ", line))
    assert ("≈2026-06-18" in on_demand, "OLD_PRICE" in on_demand) == (True, True)
    assert ("≈" in reserved, "OLD_PRICE" in reserved) == (False, False)
    assert "Prices are of different days: on_demand ≈2026-06-18; reserved_1y 2026-06-18." in shown
    (vm, _) = csv.DictReader(run(database_url, "cost", "x1", "--csv").stdout.splitlines())
    assert (vm["price_as_of"], vm["approximate_date"], vm["warnings"]) == (
        "2026-06-18",
        "true",
        "OLD_PRICE",
    )


def test_objects_in_csv_are_json(run: Run, seeded_url: str) -> None:
    asked = ("fit", "--min-gpu-mem", "80", "--name", "*nc24ads_a100_v4", "--csv")
    (row,) = csv.DictReader(run(seeded_url, *asked).stdout.splitlines())
    assert json.loads(row["headroom"])[0]["resource"] == "gpu_memory"
