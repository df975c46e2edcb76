"""A database writes values as JSON text: the same values on SQLite and on PostgreSQL, to the last digit."""

import json
from datetime import date
from typing import Any

import pytest
from sqlalchemy import Date, Double, Engine, String, cast, literal, literal_column, null, select
from sqlalchemy.types import TypeEngine

from app.db.engines import read_session
from app.db.functions import json_text, number_after


def written(engine: Engine, value: Any, kind: TypeEngine[Any]) -> str:
    given = literal(value, kind) if value is not None else cast(null(), kind)
    with read_session(engine) as session:
        text: str = session.execute(select(json_text(given))).scalar_one()
    return text


@pytest.mark.parametrize(
    "number", [0.0, 5.0, -3.0, 0.1, 0.027286739, 98.32, 1e-7, 1234567.0625, 123.456789012345, 4e14]
)
def test_a_number_of_15_digits_is_read_back_as_it_was_and_is_no_integer(engine: Engine, number: float) -> None:
    back = json.loads(written(engine, number, Double()))
    assert (back, type(back)) == (number, float)


@pytest.mark.parametrize("number", [0.0, 5.0, 0.027286739, 1e-7, 4e14])
def test_a_number_behind_a_text_is_written_as_it_is_alone(engine: Engine, number: float) -> None:
    with read_session(engine) as session:
        joined = number_after(literal_column("""',"usd":'"""), literal(number, Double()))
        text = session.execute(select(joined)).scalar_one()
    assert text == f',"usd":{written(engine, number, Double())}'


@pytest.mark.parametrize("text", ["eastus", "", 'a "quoted" \\ name', "Zürich\n", "5"])
def test_a_text_is_read_back_as_it_was(engine: Engine, text: str) -> None:
    assert json.loads(written(engine, text, String())) == text


def test_a_day_is_written_as_iso_8601_writes_it(engine: Engine) -> None:
    assert written(engine, date(2026, 9, 1), Date()) == '"2026-09-01"'


@pytest.mark.parametrize("kind", [Double(), String(), Date()])
def test_what_is_unknown_is_null(engine: Engine, kind: TypeEngine[Any]) -> None:
    assert written(engine, None, kind) == "null"
