"""`vmsizes cost` and `buy` for Windows say what the licence costs."""

import csv
from decimal import Decimal

import pytest

from tests.cli.conftest import Run

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
