"""The constants of the time of training are those that the published rates give."""

from dataclasses import asdict

import pytest

from app.fit.formulas.training_speed import FITTED, SpeedConstants
from benchmarks.accuracy.training import training_rates
from benchmarks.calibrate_training import fit, fitted_rates, minimize, quantile


@pytest.mark.takes_seconds
def test_the_constants_are_those_of_the_fit() -> None:
    assert asdict(fit(fitted_rates())) == pytest.approx(asdict(FITTED), rel=0.02)


@pytest.mark.takes_seconds
def test_a_generation_without_rates_keeps_the_pace_of_its_peaks() -> None:
    known = fit([one for one in fitted_rates() if one.rate.gpu in {"B200", "GB200"}])
    assert (known.hopper, known.ultra) == (1.0, 1.0)


def test_no_fitted_share_is_above_one() -> None:
    assert isinstance(FITTED, SpeedConstants)
    assert 0 < FITTED.fp4_share < FITTED.matrix_share < 1
    assert 0 < FITTED.exchange_share < 1


def test_every_rate_names_its_source() -> None:
    assert all(rate.source for rate in training_rates())
    assert sum(rate.fitted for rate in training_rates()) == 134


def test_the_search_finds_the_least_of_a_curved_valley() -> None:
    found = minimize(lambda point: (point[0] - 1) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2, [-1.0, 1.0])
    assert found == pytest.approx([1, 1], abs=1e-3)


def test_quantiles_are_interpolated() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.25) == 1.5
