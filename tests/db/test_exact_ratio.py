"""Prices divided exactly and rounded once, the same digits on both databases."""

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.db.engines import read_session
from app.db.functions import DECIMALS, ratio
from tests.sql import evaluate

CASES = [
    (3.6, 1, 1.5, 2.4),
    (0.4, 6, 1, 2.4),
    (1.2, 2, 1, 2.4),
    (98.32, 1, 8, 12.29),
    (3.673, 1, 80.0, 0.0459125),
    (0.123457, 1, 16, 0.007716063),  # a tie at the tenth place: up
    (1, 1, 3, 0.333333333),
    (0, 1, 8, 0.0),
    (2.5, 1, 0, None),
    (2.5, 1, None, None),
    (None, 1, 8, None),
]


def divided(session: Session, usd: float | None, denominator: int, numerator: float | None) -> float | None:
    parts = ("cast(:usd as double precision)", "cast(:by as integer)", "cast(:of as double precision)")
    value: float | None = evaluate(session, lambda sql: sql.exact_ratio(*parts), usd=usd, by=denominator, of=numerator)
    return value


@pytest.mark.parametrize(("usd", "denominator", "numerator", "expected"), CASES)
def test_a_database_divides_exactly_and_rounds_once(
    engine: Engine, usd: float | None, denominator: int, numerator: float | None, expected: float | None
) -> None:
    with read_session(engine) as session:
        assert divided(session, usd, denominator, numerator) == expected
    assert ratio(usd, denominator, numerator) == expected


def test_databases_divide_prices_of_any_kind_to_the_bits_of_python(engine: Engine) -> None:
    rng = random.Random("prices")
    prices = (
        lambda: round(rng.uniform(0, 400), rng.randrange(10)),
        lambda: rng.uniform(0, 3e6),
        lambda: 1e-9,
        lambda: 1e6,
    )
    denominators, numerators = (1, 1, 3, 8, 9, 24), (1, 3, 7, 96, 10**9, 10**9 + 1, 0.5, 3.5, 0.1)
    cases = [(rng.choice(prices)(), rng.choice(denominators), rng.choice(numerators)) for _ in range(400)]
    with read_session(engine) as session:
        for usd, denominator, numerator in cases:
            found = divided(session, usd, denominator, numerator)
            assert found == ratio(usd, denominator, numerator), (usd, denominator, numerator)


@given(st.integers(0, 10**9), st.integers(1, 24), st.integers(1, 20_000))
def test_it_is_the_number_nearest_to_the_quotient_of_what_is_written(micro: int, denominator: int, gib: int) -> None:
    exactly = Fraction(micro, 10**6) * denominator / Fraction(gib, 10)
    scaled = exactly * 10**DECIMALS
    rounded = (scaled + Fraction(1, 2)).__floor__()
    assert ratio(micro / 10**6, denominator, gib / 10) == float(Decimal(rounded).scaleb(-DECIMALS))
