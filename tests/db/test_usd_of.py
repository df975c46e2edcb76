"""Nano-dollars as dollars: the double nearest to the exact quotient, on both databases."""

import pytest
from sqlalchemy import BigInteger, Double, Engine, cast, func, literal, select

from app.db.engines import read_session
from app.db.functions import NANO, usd_of

AMOUNTS = [0, 1, 3, 123_456_789, 10**15 - 1, 2**53 - 1, 2**53, 2**53 + 1, 665_254_580_340_503_029]
"""A double holds the integers up to 2**53; the last amount rounded to a double first has another quotient."""


@pytest.mark.parametrize("nano", AMOUNTS)
def test_an_amount_is_divided_exactly_and_rounded_once(engine: Engine, nano: int) -> None:
    amount = select(literal(nano, BigInteger).label("nano")).subquery().c.nano
    for asked in (amount, func.abs(amount)):  # a column, and an amount that is computed
        with read_session(engine) as session:
            assert session.execute(select(cast(usd_of(asked), Double))).scalar_one() == nano / NANO


def test_an_unknown_amount_stays_unknown(engine: Engine) -> None:
    amount = select(literal(None, BigInteger).label("nano")).subquery().c.nano
    with read_session(engine) as session:
        assert session.execute(select(cast(usd_of(amount), Double))).scalar_one() is None
