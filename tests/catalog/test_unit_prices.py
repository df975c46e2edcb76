"""Unit prices on columns are those that SQL computes, to the last bit."""

import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from app.catalog.queries.columns import SizeColumns
from app.catalog.queries.unit_prices import unit_prices
from app.db.functions import ratio

pytestmark = pytest.mark.one_database


def columns(**numbers: list[Any]) -> SizeColumns:
    return cast("SizeColumns", SimpleNamespace(numbers={name: np.array(each, float) for name, each in numbers.items()}))


def test_unit_prices_are_the_exact_quotients_rounded_once() -> None:
    rng = random.Random(1)
    usd = [rng.randrange(1, 10 ** rng.randint(1, 12)) / 1e9 for _ in range(5_000)]
    memory = [rng.choice((1, 3, 7, 0.5, 3.5, 27.125, 0.4375, 2.6666666667, 11_400, 1e-4)) for _ in usd]
    found = unit_prices(np.array(usd), columns(memory_gib=memory), "usd_per_memory_gib_hour", np.arange(len(usd)))
    assert found.tolist() == [ratio(price, 1, gib) for price, gib in zip(usd, memory, strict=True)]


def test_the_price_of_a_gpu_of_a_part_of_one_is_that_of_the_whole() -> None:
    of = columns(gpu_count_numerator=[1, 8, 5, 1], gpu_count_denominator=[6, 1, 8, 3])
    usd = [0.454, 98.32, 0.000000001, 123_456_789.123]
    found = unit_prices(np.array(usd), of, "usd_per_gpu_hour", np.arange(len(usd)))
    assert found.tolist() == [ratio(usd[0], 6, 1), ratio(usd[1], 1, 8), ratio(usd[2], 8, 5), ratio(usd[3], 3, 1)]


def test_what_is_unknown_or_zero_has_no_unit_price() -> None:
    usd = np.array([np.inf, np.nan, 1.0, 1.0])
    assert np.isnan(unit_prices(usd, columns(vcpus=[4, 4, np.nan, 0]), "usd_per_vcpu_hour", np.arange(4))).all()
