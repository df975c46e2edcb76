"""What sizes miss, on columns, is what the verdicts on each of them say."""

import random
from decimal import Decimal

import numpy as np
import pytest

from app.catalog.queries.ranking_columns import UNKNOWN_NANO_USD
from app.fit.verdict import Failure, Rejection, check_budget, miss_distance, plain_failure
from app.fit.vm import SizeConstraints, Vm
from app.services.misses import Misses, most_nano_usd, share_over, usd_of
from tests.conftest import TODAY

HOURS = [
    Decimal(730),
    Decimal("0.1"),
    Decimal("500.25"),
    Decimal("1e-9"),
    Decimal(1_000_000),
    Decimal("1.23456789"),
]


def failure(constraint: str, code: str, required: float | None) -> Failure:
    return Failure(
        constraint=constraint, code=code, required=required, available=required and 1.0, unit=None, detail=""
    )


def test_sizes_are_in_the_order_of_their_distance() -> None:
    choices = [
        [(), (plain_failure("status", "STATUS", ""),), (plain_failure("status", "RETIRED", ""),)],
        [
            (),
            (failure("gpus", "A", 3), failure("gpus", "B", 3)),
            (failure("gpus", "C", 7), failure("memory", "D", 7), failure("disk", "E", 1.1)),
        ],
        [(), (failure("b", "F", 3),), (failure("a", "G", None),)],
    ]
    chance = random.Random(7)
    codes = [[chance.randrange(3) for _ in range(200)] for _ in choices]
    misses = Misses(200)
    for code, failures in zip(codes, choices, strict=True):
        misses.add(np.array(code), failures)
    each = [
        tuple(one for code, of in zip(codes, choices, strict=True) for one in of[code[size]]) for size in range(200)
    ]
    vm = Vm(name="", status="current", verified=True)
    rejections = {
        size: Rejection(vm=vm, failures=tuple(sorted(some, key=lambda one: (-one.share_missing, one.constraint))))
        for size, some in enumerate(each)
        if some
    }
    order, summary = misses.rank(np.arange(200), np.arange(200, dtype=np.float64))
    assert misses.rejected().tolist() == [bool(some) for some in each]
    assert order[:] == sorted(rejections, key=lambda size: (miss_distance(rejections[size])[:3], size))
    codes_of_first = [rejection.failures[0].code for rejection in rejections.values()]
    assert summary == {code: codes_of_first.count(code) for code in sorted(set(codes_of_first))}


def test_nobody_misses_anything() -> None:
    order, summary = Misses(3).rank(np.arange(3), np.zeros(3))
    assert (len(order), summary) == (0, {})


@pytest.mark.parametrize("hours", HOURS)
def test_costs_and_budgets_are_exact(hours: Decimal) -> None:
    chance = random.Random(str(hours))
    prices = [chance.randrange(10 ** chance.randrange(1, 17)) for _ in range(500)] + [0, 2**53, 2**61]
    usd = usd_of(np.array(prices), hours)
    exact = [Decimal(price).scaleb(-9) * hours for price in prices]
    assert usd.tolist() == [float(one) for one in exact]
    for budget in (exact[7], exact[7] + Decimal("1e-30"), Decimal("0.1"), Decimal(10**30)):
        terms = SizeConstraints(budget_usd_per_month=budget, hours_per_month=hours, today=TODAY)
        failures = [next(check_budget(one, terms), None) for one in exact]
        most = most_nano_usd(budget, hours)
        over = [price > most for price in prices]
        assert over == [one is not None for one in failures]
        shares = share_over(usd[np.array(over)], budget)
        assert shares.tolist() == [one.share_missing for one in failures if one is not None]


def test_an_unknown_price_is_over_no_threshold() -> None:
    assert most_nano_usd(Decimal(10**40), Decimal(730)) == UNKNOWN_NANO_USD
