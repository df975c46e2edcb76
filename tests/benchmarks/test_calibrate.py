"""The constants of serving speed are those of the fit to the measured runs."""

from dataclasses import asdict

import numpy as np
import pytest

from app.fit.formulas.serving_speed import FIRST_TOKEN, STEP
from benchmarks.calibrate import (
    AMD_LIMITS,
    FIRST_TOKEN_LIMITS,
    HOST_LIMITS,
    STEP_LIMITS,
    Fit,
    fit,
    median_error,
    read_runs,
)

RECORDED = Fit(step=STEP, first_token=FIRST_TOKEN)


@pytest.fixture(scope="module")
def found() -> Fit:
    return fit(read_runs(), RECORDED)


@pytest.mark.takes_seconds
def test_the_recorded_constants_are_those_that_the_fit_finds(found: Fit) -> None:
    runs = read_runs()
    for errors in (Fit.step_errors, Fit.first_token_errors):
        differences = np.abs(errors(found, runs) - errors(RECORDED, runs))
        assert np.nanquantile(differences, 0.95) < 0.02, "run python -m benchmarks.calibrate --write"
    # Bytes of weights and caches that are counted differently move the fit a little, and it need not be recorded again.
    assert asdict(found.step) == pytest.approx(asdict(STEP), rel=0.2, abs=0.02)
    assert asdict(found.first_token) == pytest.approx(asdict(FIRST_TOKEN), rel=0.2, abs=0.02)


def test_every_constant_is_within_its_limits() -> None:
    of_steps = {**STEP_LIMITS, **HOST_LIMITS, **AMD_LIMITS}
    for limits, constants in ((of_steps, asdict(STEP)), (FIRST_TOKEN_LIMITS, asdict(FIRST_TOKEN))):
        assert set(limits) == set(constants)
        assert all(low <= constants[name] <= high for name, (low, high) in limits.items())


def test_of_an_engine_or_a_vendor_that_no_run_has_nothing_is_known() -> None:
    runs = read_runs()
    step, first = fit(runs.where((runs.labels["engine"] == "vllm") & (runs.step.amd == 0)), RECORDED), RECORDED
    assert (step.step.sglang_layer_us, step.step.amd, step.step.amd_latent) == (0.0, 0.0, 0.0)
    assert (step.first_token.sglang_waiting, step.first_token.trtllm_ms) == (0.0, 0.0)
    assert step.step.host_ms > 0 < first.step.sglang_layer_us


def test_the_fit_reaches_what_it_is_for(found: Fit) -> None:
    runs = read_runs()
    assert median_error(found.step_errors(runs)) < 0.15
    assert median_error(found.first_token_errors(runs)) < 0.35
