"""The published figures that are carried in pass through the endpoint, and the runner can fail."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from app.main import create_app
from app.settings import PROJECT, Settings
from tests.cases.__main__ import main
from tests.cases.case_file import Case, read_cases
from tests.cases.markdown import table
from tests.cases.requests import KINDS
from tests.cases.runner import Result, run
from tests.servers import open_client, server

pytestmark = pytest.mark.first_database

HERE = Path(__file__).parent
PUBLISHED = read_cases(HERE / "published.csv")
FEASIBILITY = read_cases(HERE / "feasibility.csv")


@pytest.fixture(scope="module")
def service() -> Iterator[httpx.Client]:
    """The service without a catalog: its requests need none."""
    app = create_app(Settings(_env_file=None, database_url="sqlite://"))
    with server(app) as url, open_client(url) as client:
        yield client


@pytest.fixture(scope="module")
def results(service: httpx.Client) -> list[Result]:
    return list(run(PUBLISHED, service))


@pytest.mark.parametrize("case", PUBLISHED, ids=[case.id for case in PUBLISHED])
def test_a_published_figure_is_reached_within_its_tolerance(case: Case, results: list[Result]) -> None:
    (result,) = [result for result in results if result.case == case]
    assert result.passed, (result.got, case.expected, result.trouble)


@pytest.mark.parametrize("case", FEASIBILITY, ids=[case.id for case in FEASIBILITY])
def test_a_model_fits_where_it_was_published_to_and_nowhere_else(case: Case, client: httpx.Client) -> None:
    (result,) = run([case], client)
    assert result.passed, (result.got, case.expected, result.trouble)


def test_the_snapshot_has_every_published_fit_with_its_source(client: httpx.Client) -> None:
    page = (PROJECT / "tests" / "cases" / "feasibility.md").read_text(encoding="utf-8")
    hint = "python -m tests.cases tests/cases/feasibility.csv --table prints what belongs there"
    assert table(run(FEASIBILITY, client)) in page, hint


def test_the_open_cases_are_of_every_kind() -> None:
    assert {case.kind for case in (*PUBLISHED, *FEASIBILITY)} == set(KINDS)


def test_a_wrong_figure_fails_and_says_how_far_it_is(service: httpx.Client) -> None:
    (result,) = run([replace(PUBLISHED[0], expected=PUBLISHED[0].expected * 1.1)], service)
    assert not result.passed
    assert result.deviation_percent == pytest.approx(-100 / 11)


def test_what_is_not_a_number_never_passes(service: httpx.Client) -> None:
    (result,) = run([replace(PUBLISHED[0], expected=float("nan"))], service)
    assert not result.passed


@pytest.mark.parametrize(
    ("change", "trouble"),
    [
        ({"kind": "telepathy"}, "no request for the case: KeyError('telepathy')"),
        ({"inputs": {"params": -1, "dtype": "fp16"}}, "422: architecture.params=-1"),
        ({"inputs": {"dtype": "fp16"}}, "422: inference: cannot be answered without architecture.params"),
    ],
)
def test_a_case_that_cannot_be_answered_fails_with_the_reason(
    service: httpx.Client, change: dict[str, object], trouble: str
) -> None:
    (result,) = run([replace(PUBLISHED[0], **change)], service)  # type: ignore[arg-type]  # fields by name
    assert not result.passed
    assert trouble in result.trouble


def test_the_command_prints_a_line_for_each_case_and_the_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cases.csv"
    rows = (HERE / "published.csv").read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([*rows[:3], rows[1].replace(",140,", ",150,")]) + "\n", encoding="utf-8")
    assert main([str(file)]) == 1
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.split() == ["W01", "140", "140", "GB", "+0.000%", "pass"]
    assert last == "2 passed, 1 failed"


def test_a_file_without_cases_is_rejected_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "cases.csv"
    file.write_text(
        "id,kind,inputs_json,expected,unit,tolerance_pct,source\nX,kv_cache,{,1,GB,1,me\n", encoding="utf-8"
    )
    with pytest.raises(ValueError, match=re.escape(f"{file}:2: ")):
        read_cases(file)


def test_the_snapshot_shows_these_results(results: list[Result]) -> None:
    page = (PROJECT / "tests" / "cases" / "published.md").read_text(encoding="utf-8")
    assert table(results) in page, "python -m tests.cases tests/cases/published.csv --table prints what belongs there"
