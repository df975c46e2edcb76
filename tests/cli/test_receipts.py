"""Receipts of commands, and `vmsizes verify`: equal, altered, and of a catalog that has changed."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from app.db.engines import make_engine
from app.receipts import digest_of
from tests.cli.conftest import Run
from tests.command_line import run_command
from tests.conftest import TODAY
from tests.databases import first_on_each_kind

pytestmark = pytest.mark.first_database

COMMANDS = [
    ("search", "H100", "--region", "eastus", "--limit", "3"),
    ("fit", "--min-gpu-mem", "320", "--region", "eastus", "--hours", "24", "--sort", "cost_per_job"),
    ("show", "nd40rs_v2"),
    ("compare", "nc24ads_a100_v4", "nc40ads_h100_v5"),
    ("history", "nd40rs_v2", "--region", "eastus"),
    ("fit", "llama-3.1-70b", "--concurrency", "32", "--context", "8k", "--hours-per-month", "700.5"),
]


@pytest.mark.takes_seconds
@pytest.mark.parametrize("command", first_on_each_kind(2, COMMANDS), ids=lambda command: "-".join(command[:2]))
def test_a_receipt_is_computed_again_from_the_catalog(
    run: Run, few_sizes_url: str, tmp_path: Path, command: tuple[str, ...]
) -> None:
    file = tmp_path / "receipt.json"
    assert run(few_sizes_url, *command, "--receipt", str(file)).returncode == 0
    receipt = json.loads(file.read_text())
    rests_on = receipt["rests_on"]
    assert rests_on["fact_count"] == len(rests_on["facts"]) > 0
    assert rests_on["price_count"] == len(rests_on["prices"]) > 0
    assert {item["source_id"] for item in (*rests_on["facts"], *rests_on["prices"])} == set(rests_on["sources"])
    checked = run(few_sizes_url, "verify", str(file))
    assert (checked.returncode, checked.stdout.split(":")[0]) == (0, "Equal")


@pytest.fixture(scope="module")
def made(few_sizes_template_url: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A receipt of sizes, as the command writes it."""
    file = tmp_path_factory.mktemp("made") / "receipt.json"
    command = ("search", "H100", "--region", "eastus", "--receipt", str(file))
    assert run_command(few_sizes_template_url, *command, today=lambda: TODAY).returncode == 0
    return file.read_text()


@pytest.fixture
def receipt(made: str, tmp_path: Path) -> Path:
    """A copy of that, to be altered."""
    file = tmp_path / "receipt.json"
    file.write_text(made)
    return file


def altered(file: Path, **changes: Any) -> Path:
    data = json.loads(file.read_text())
    file.write_text(json.dumps(data | changes))
    return file


@pytest.mark.one_database  # the test before reads the catalog on each kind
@pytest.mark.parametrize(
    "changes",
    [
        {"day": "2026-08-31"},
        {"digest": "0" * 64},
        {"sha256": "0" * 64},
        {"questions": []},
        {"questions": [{"endpoint": "GET /sizes", "params": {"gpu": ["A100"]}, "answer_sha256": "0" * 64}]},
        {"questions": [{"endpoint": "GET /nothing"}]},
        {"questions": [{"endpoint": "GET /sizes/{name}"}]},
        {"rests_on": {}},
        {"receipt": 2},
        {"day": "tomorrow"},
    ],
    ids="-".join,
)
def test_an_altered_receipt_is_caught(run: Run, few_sizes_url: str, receipt: Path, changes: dict[str, Any]) -> None:
    checked = run(few_sizes_url, "verify", str(altered(receipt, **changes)))
    assert checked.returncode == 1, checked.stdout


@pytest.mark.takes_seconds
def test_an_altered_price_is_shown_with_the_one_in_the_catalog(run: Run, few_sizes_url: str, receipt: Path) -> None:
    data = json.loads(receipt.read_text())
    true = data["rests_on"]["prices"][0]["usd_per_hour"]
    data["rests_on"]["prices"][0]["usd_per_hour"] = 0.01
    receipt.write_text(json.dumps(data))
    checked = run(few_sizes_url, "verify", str(receipt))
    assert checked.returncode == 1
    assert '"usd_per_hour":0.01' in checked.stdout
    assert f'"usd_per_hour":{true}' in checked.stdout


@pytest.mark.takes_seconds
def test_a_catalog_with_another_price_is_not_equal(run: Run, few_sizes_url: str, receipt: Path) -> None:
    size = json.loads(receipt.read_text())["rests_on"]["prices"][0]["size"]
    engine = make_engine(few_sizes_url)
    with engine.begin() as connection:
        changed = text("update price set nano_usd_per_hour = nano_usd_per_hour + 1000000 where size_key = :key")
        connection.execute(changed, {"key": size.lower().removeprefix("standard_")})
    engine.dispose()
    checked = run(few_sizes_url, "verify", str(receipt))
    assert checked.returncode == 1
    assert "digest: the receipt is of a catalog" in checked.stdout
    assert "rests_on.prices: now" in checked.stdout


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before reads the catalog on each kind
def test_another_program_or_revision_is_reported_beside_an_equal_answer(
    run: Run, few_sizes_url: str, receipt: Path
) -> None:
    data = json.loads(receipt.read_text()) | {"program": "0.0.1", "revision": 77}
    data["sha256"] = digest_of({name: value for name, value in data.items() if name != "sha256"})
    receipt.write_text(json.dumps(data))
    checked = run(few_sizes_url, "verify", str(receipt))
    assert (checked.returncode, checked.stdout.split(" of ")[0]) == (0, "Equal: 1 answer")
    assert "program: 0.0.1 in the receipt" in checked.stderr
    assert "revision: 77 in the receipt" in checked.stderr


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before reads the catalog on each kind
def test_another_database_can_be_named(run: Run, seeded_url: str, few_sizes_url: str, receipt: Path) -> None:
    assert run(seeded_url, "verify", str(receipt), "--database", few_sizes_url).returncode == 0
    assert run(few_sizes_url, "verify", str(receipt), "--database", seeded_url).returncode == 1


def test_a_file_that_is_no_receipt_is_bad_data(run: Run, seeded_url: str, tmp_path: Path) -> None:
    without_facts, wrong_questions = (
        '{"receipt": 1, "rests_on": [1]}',
        '{"receipt": 1, "rests_on": {}, "questions": [1]}',
    )
    for content in ("{", "[]", '{"items": []}', '{"receipt": 1}', without_facts, wrong_questions):
        (tmp_path / "none.json").write_text(content)
        checked = run(seeded_url, "verify", str(tmp_path / "none.json"))
        assert (checked.returncode, "is not a receipt" in checked.stderr) == (3, True)


def test_a_selection_that_the_api_does_not_have_gets_no_receipt(run: Run, seeded_url: str, tmp_path: Path) -> None:
    file = tmp_path / "receipt.json"
    done = run(seeded_url, "fit", "llama-3.1-8b", "--no-verified", "--receipt", str(file))
    assert (done.returncode, file.exists()) == (2, False)
