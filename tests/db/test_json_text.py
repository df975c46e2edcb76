"""A database writes values as JSON text: the same values on SQLite and on PostgreSQL, to the last digit."""

import json

import pytest
from sqlalchemy import Engine

from app.db.dialects import quote
from app.db.engines import read_session
from tests.sql import evaluate


def written_number(engine: Engine, number: float | None) -> str:
    with read_session(engine) as session:
        text: str = evaluate(session, lambda sql: sql.json_number("cast(:number as double precision)"), number=number)
    return text


@pytest.mark.parametrize(
    "number", [0.0, 5.0, -3.0, 0.1, 0.027286739, 98.32, 1e-7, 1234567.0625, 123.456789012345, 4e14]
)
def test_a_number_of_15_digits_is_read_back_as_it_was_and_is_no_integer(engine: Engine, number: float) -> None:
    back = json.loads(written_number(engine, number))
    assert (back, type(back)) == (number, float)


@pytest.mark.parametrize("number", [0.0, 5.0, 0.027286739, 1e-7, 4e14])
def test_a_number_behind_a_text_is_written_as_it_is_alone(engine: Engine, number: float) -> None:
    with read_session(engine) as session:
        text = evaluate(
            session, lambda sql: sql.number_after("""',"usd":'""", "cast(:number as double precision)"), number=number
        )
    assert text == f',"usd":{written_number(engine, number)}'


@pytest.mark.parametrize("text", ["eastus", "", 'a "quoted" \\ name', "Zürich\n", "5", "5 % of 'it' :name"])
def test_a_text_is_read_back_as_it_was(engine: Engine, text: str) -> None:
    with read_session(engine) as session:
        assert json.loads(evaluate(session, lambda sql: sql.json_text("cast(:text as text)"), text=text)) == text
        assert json.loads(evaluate(session, lambda sql: sql.json_text(f"cast({quote(text)} as text)"))) == text


def test_a_day_is_written_as_iso_8601_writes_it(engine: Engine) -> None:
    with read_session(engine) as session:
        assert evaluate(session, lambda sql: sql.json_text(sql.day("day")), day="2026-09-01") == '"2026-09-01"'


def test_what_is_unknown_is_null(engine: Engine) -> None:
    assert written_number(engine, None) == "null"
    with read_session(engine) as session:
        assert evaluate(session, lambda sql: sql.json_text("cast(null as text)")) == "null"
