"""Evictions of spot VMs: the expected time and cost against a simulation, and the best time between checkpoints."""

from dataclasses import replace
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.fit.formulas.training_speed import SpotTerms, best_interval, interruptions, time_factor

TERMS = SpotTerms(
    evictions_per_hour=0.025, restart_hours=1 / 6, bytes_per_s=7.5e9, usd_per_gb_month=0.02, checkpoints=2
)


def simulated_hours(work: float, interval: float, write: float, *, restart: float, between: float, seed: int) -> float:
    """Return how long a job takes whose VMs are evicted at random, restarting from its last checkpoint."""
    random, clock, done = Random(seed), 0.0, 0.0
    eviction = random.expovariate(1 / between)
    while done < work:
        segment = min(interval, work - done)
        if eviction >= segment + write:
            clock, eviction, done = clock + segment + write, eviction - segment - write, done + segment
            continue
        clock += eviction
        eviction = random.expovariate(1 / between)
        while eviction < restart:  # evicted again before it went on
            clock += eviction
            eviction = random.expovariate(1 / between)
        clock, eviction = clock + restart, eviction - restart
    return clock


@pytest.mark.parametrize("vms", [1, 4, 16, 64])
@pytest.mark.parametrize("checkpoint_bytes", [112e9, 980e9, 5.6e12])
@pytest.mark.parametrize("given", [None, 0.5])
def test_the_expected_cost_is_within_a_tenth_of_a_simulation(
    vms: int, checkpoint_bytes: float, given: float | None
) -> None:
    terms, work, usd_per_hour = replace(TERMS, interval_hours=given), 500.0, 10.0 * vms
    found = interruptions(terms, checkpoint_bytes, vms, work)
    runs = [
        simulated_hours(
            work,
            found.interval_hours,
            found.checkpoint_hours,
            restart=terms.restart_hours + found.checkpoint_hours,
            between=1 / found.evictions_per_hour,
            seed=seed,
        )
        for seed in range(40)
    ]
    simulated = sum(runs) / len(runs) * (usd_per_hour + 2 * checkpoint_bytes / 1e9 * 0.02 / 730)
    assert found.cost(usd_per_hour, work) == pytest.approx(simulated, rel=0.1)


@given(write=st.floats(1e-4, 1.0), between=st.floats(0.5, 1e4), other=st.floats(0.05, 20))
def test_no_other_interval_is_much_better_than_the_best(write: float, between: float, other: float) -> None:
    best = best_interval(write, between)
    ours = time_factor(best, write, 0.1, between)
    theirs = time_factor(best * other, write, 0.1, between)
    assert ours <= theirs * 1.08


@given(fewer=st.integers(1, 100), more=st.integers(1, 100), size=st.floats(1e9, 1e13))
def test_more_vms_are_stopped_more_often(fewer: int, more: int, size: float) -> None:
    one, other = (interruptions(TERMS, size, vms, None).overhead for vms in sorted((fewer, more)))
    assert one <= other * (1 + 1e-9)


def test_without_evictions_only_given_checkpoints_take_time() -> None:
    calm = replace(TERMS, evictions_per_hour=0.0)
    assert interruptions(calm, 1e12, 8, 100.0).overhead == pytest.approx(1e12 / 7.5e9 / 3600 / 100)
    assert interruptions(calm, 1e12, 8, None).overhead == 0
    assert interruptions(replace(calm, interval_hours=1), 27e12, 8, 100.0).overhead == pytest.approx(1.0)


def test_a_job_that_is_evicted_faster_than_it_restarts_never_ends() -> None:
    hopeless = replace(TERMS, evictions_per_hour=1.0, restart_hours=10)
    assert interruptions(hopeless, 1e12, 100, 100.0).overhead == inf


def test_a_job_shorter_than_the_interval_writes_one_checkpoint() -> None:
    assert interruptions(TERMS, 1e9, 1, 0.01).interval_hours == 0.01
