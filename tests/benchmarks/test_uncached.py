from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.cases import CASES
from benchmarks.catalogs import FEW, name_of, sizes
from benchmarks.servers import running, uvicorn
from benchmarks.uncached import (
    Question,
    QuestionFactory,
    cpu_milliseconds,
    facets,
    fit_of_amounts,
    fit_of_layers,
    fit_of_model,
    similar,
    unknown_name,
)


@pytest.mark.parametrize("make", [facets, fit_of_amounts, fit_of_layers, fit_of_model, similar, unknown_name])
def test_questions_of_cpu_time_hardly_ever_repeat_and_are_the_same_in_each_run(make: QuestionFactory) -> None:
    asked = [repr(make(rng, FEW)) for rng in [Random(1)] for _ in range(200)]
    assert asked == [repr(make(rng, FEW)) for rng in [Random(1)] for _ in range(200)]
    assert len(set(asked)) > 180


def test_a_case_on_postgresql_differs_from_that_on_sqlite_in_its_database_alone() -> None:
    cases = {case.name: case for case in CASES}
    assert len(cases) == len(CASES)
    panel, on_postgresql = cases["panel"], cases["panel-postgresql"]
    assert on_postgresql.database == "postgresql"
    again = replace(on_postgresql, name="panel", description=panel.description, database="sqlite")
    assert again == panel


def test_a_name_by_its_place_is_that_of_the_catalog() -> None:
    names = [str(row["name"]) for row, _ in zip(sizes(FEW), range(5), strict=False)]
    assert names == [name_of(index) for index in range(5)]


def test_a_response_of_another_status_than_expected_is_no_measurement(tmp_path: Path) -> None:
    with running(uvicorn("benchmarks.raw:two_kilobytes"), tmp_path / "log") as server:
        assert cpu_milliseconds(server, [Question(target="/any", body={"a": 1})] * 3) >= 0
        with pytest.raises(RuntimeError, match="200 to /missing"):
            cpu_milliseconds(server, [Question(target="/missing", status=404)])
