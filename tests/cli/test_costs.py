"""`vmsizes cost` for Windows says what Azure Hybrid Benefit makes of the price."""

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

BENEFIT = "With Azure Hybrid Benefit Windows Server costs what Linux does: --os linux."


def test_a_cost_with_the_licence_of_windows_names_the_price_without(run: Run, seeded_url: str) -> None:
    arguments = ("cost", "d4s_v5", "--region", "westeurope", "--os")
    assert BENEFIT in run(seeded_url, *arguments, "windows").stdout
    assert BENEFIT not in run(seeded_url, *arguments, "linux").stdout
    assert "Azure Hybrid Benefit" in " ".join(run(seeded_url, "cost", "--help").stdout.split())
