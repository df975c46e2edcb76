"""Amounts after discounts and fixed prices: exact, rounded once, the same on both databases."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Engine

from app.db.dialects import Step, quote
from app.db.engines import read_session
from app.db.functions import apply_steps
from tests.sql import evaluate

CASES = [
    (10_000_000_000, (), 10_000_000_000),
    (10_000_000_000, ("*0.88",), 8_800_000_000),
    (10_000_000_000, ("*0.88", "*0.95"), 8_360_000_000),  # of what is left, not 17 %
    (10_000_000_000, ("*0.88", "=40000000000"), 40_000_000_000),
    (10_000_000_000, ("=40000000000", "*0.9"), 36_000_000_000),
    (5, ("*0.5",), 3),  # a tie: up
    (5, ("*0.9", "*0.9"), 4),  # 4.05, where rounding after each rule would make it 5 x 0.9 = 5, then 5
    (10_000_000_000, ("*1.03",), 10_300_000_000),
    (999_999_999_999_999, ("*0.0001",), 100_000_000_000),
]


@pytest.mark.parametrize(("nano", "steps", "expected"), CASES)
def test_a_database_applies_rules_exactly_and_rounds_once(
    engine: Engine, nano: int, steps: tuple[str, ...], expected: int
) -> None:
    holding = [Step("true", "*" if step[0] == "*" else "=", step[1:]) for step in steps]
    with read_session(engine) as session:
        paid = evaluate(
            session,
            lambda sql: sql.adjusted_nano("cast(:nano as bigint)", [*holding, Step("false", "*", "0.5")]),
            nano=nano,
        )
    assert paid == expected


@pytest.mark.takes_seconds
@given(st.integers(0, 10**15), st.lists(st.integers(-10_000, 9_999).filter(bool), max_size=6))
def test_discounts_are_of_what_is_left_whatever_their_order(nano: int, basis_points: list[int]) -> None:
    factors = [f"*{1 - Fraction(points, 10_000)}" for points in basis_points]
    exact = Fraction(nano)
    for points in basis_points:
        exact *= 1 - Fraction(points, 10_000)
    paid = apply_steps(nano, "".join(f"{factor} " for factor in factors))
    assert paid == apply_steps(nano, "".join(f"{factor} " for factor in reversed(factors)))
    assert paid is not None
    assert abs(paid - exact) <= Fraction(1, 2)


@pytest.mark.parametrize(("text", "end"), [("a|b|c", "c"), ("abc", "abc"), ("a|", ""), ("", "")])
def test_a_database_tells_what_comes_after_the_last_separator(engine: Engine, text: str, end: str) -> None:
    with read_session(engine) as session:
        assert evaluate(session, lambda sql: sql.after_last(quote(text), "'|'")) == end
