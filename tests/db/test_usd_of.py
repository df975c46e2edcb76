"""Nano-dollars as dollars: the double nearest to the exact quotient, on both databases."""

import pytest
from sqlalchemy import Engine

from app.db.engines import read_session
from app.db.functions import NANO
from tests.sql import select_rows

AMOUNTS = [0, 1, 3, 123_456_789, 10**15 - 1, 2**53 - 1, 2**53, 2**53 + 1, 665_254_580_340_503_029]
"""A double holds the integers up to 2**53; the last amount rounded to a double first has another quotient."""


def dollars(engine: Engine, nano: int | None, written: str) -> float | None:
    with read_session(engine) as session:
        ((usd,),) = select_rows(
            session,
            lambda sql: (
                f"""select cast({sql.usd_of(written)} as double precision) as usd
                from (select cast(:nano as bigint) as nano) as amount"""
            ),
            nano=nano,
        )
    return None if usd is None else float(usd)


@pytest.mark.parametrize("nano", AMOUNTS)
def test_an_amount_is_divided_exactly_and_rounded_once(engine: Engine, nano: int) -> None:
    for written in ("amount.nano", "abs(amount.nano)"):  # a column, and an amount that is computed
        assert dollars(engine, nano, written) == nano / NANO


def test_an_unknown_amount_stays_unknown(engine: Engine) -> None:
    assert dollars(engine, None, "amount.nano") is None
