"""Commands without a price say where prices are known."""

import csv
import io
import json
import re

import pytest

from tests.cli.conftest import Run

pytestmark = pytest.mark.one_database  # what a command prints does not depend on the kind of database

NOTE = "no price is known in westeurope, only in polandcentral; `vmsizes refresh azure-prices` brings the others.\n"


@pytest.mark.parametrize(
    ("arguments", "purchase"),
    [
        (("search", "--gpu", "A100"), "reserved_3y"),
        (("fit", "llama-3.3-70b"), "reserved_1y"),
        (("fit", "--min-gpus", "4"), "reserved_1y"),
        (("cost", "d4s_v5"), "savings_3y"),
    ],
)
def test_a_command_without_a_price_says_where_prices_are_known(
    run: Run, seeded_url: str, arguments: tuple[str, ...], purchase: str
) -> None:
    asked = (*arguments, "--purchase", purchase, "--region")
    for output in ((), ("--csv",), ("--json",)):
        done = run(seeded_url, *asked, "westeurope", *output)
        assert done.returncode == 0
        assert done.stderr == f"linux {purchase}: {NOTE}"
    assert "no price" not in run(seeded_url, *asked, "polandcentral").stderr


def test_json_of_a_cost_has_the_note_as_the_api_sends_it(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "cost", "d4s_v5", "--purchase", "savings_3y", "--region", "westeurope", "--json")
    assert json.loads(done.stdout)["no_price"]["known_in"] == ["polandcentral"]


def test_nothing_found_says_that_it_is_for_want_of_prices(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "search", "--max-usd-per-hour", "4", "--purchase", "reserved_3y", "--region", "westeurope")
    assert done.returncode == 1
    note, undecided = done.stderr.splitlines(keepends=True)
    assert note == f"linux reserved_3y: {NOTE}"
    assert re.fullmatch(
        r"Nothing is known to match\. ([\d,]+) more sizes may match: usd_per_hour is unknown for \1\.\n", undecided
    )


def test_a_price_that_no_list_states_is_said_to_be_computed(run: Run, all_clouds_url: str) -> None:
    shown = " ".join(run(all_clouds_url, "show", "n1-standard-4-nvidia-tesla-t4-x1").stdout.split())
    assert "Computed price of the N1 machine type + GPUs x theirs" in shown
    assert "computed: n1-standard-4 0.189999 + 1 nvidia-tesla-t4 x 0.35" in shown
    listed = run(all_clouds_url, "search", "--provider", "aws", "--region", "eu-west-1", "--q", "a1.large").stdout
    assert "computed" in listed


def test_csv_has_the_fields_of_all_rows_where_the_price_of_some_is_computed(run: Run, all_clouds_url: str) -> None:
    done = run(all_clouds_url, "search", "--csv", "--limit", "100")
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    estimates = [json.loads(row["estimate"]) for row in rows if row["estimate"]]
    assert 0 < len(estimates) < len(rows)
    assert all(estimate["estimated"] for estimate in estimates)


def test_sizes_of_which_several_figures_are_unknown_are_counted_at_least(run: Run, seeded_url: str) -> None:
    done = run(seeded_url, "search", "--min-vcpus", "1", "--min-gpu-mem", "1", "--limit", "1")
    said = re.search(r"At least (\d+) more sizes may match: (.+)\.\n", done.stderr)
    assert said is not None
    counts = [int(count) for count in re.findall(r" for (\d+)", said[2])]
    assert len(counts) == 2
    assert int(said[1]) == max(counts)
