"""Counts pairs of measured runs that the estimates put in the right order: `python -m benchmarks.accuracy.order`.

A pair differs in the tensor ranks, or in the GPU, and in nothing else; tokens a second and GPU differ by more than 5 %.

Then it asks, for each model, GPU, engine and request with at least four measured configurations, and each quartile of
their times per output token as a limit, which tensor ranks and load give most tokens a second and GPU: how often the
one that the estimates choose meets the limit, and how much of the best rate it has, for each confidence. Loads between
two measured ones have the time on the straight line through both.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise
from math import ceil, log2
from operator import itemgetter
from statistics import median, quantiles

from app.fit.estimator.service_level import CONFIDENCE
from benchmarks.accuracy.estimates import estimate, figure_range
from benchmarks.accuracy.runs import ServingRun, serving_runs

DIFFERENT = 1.05
STEP = "inference.decode.expected_step"


def by_tensor(run: ServingRun) -> tuple[object, ...]:
    """Return what a pair that differs in tensor ranks has in common."""
    return run.gpu, run.tensor_parallel


def by_gpu(run: ServingRun) -> tuple[object, ...]:
    """Return what tells the two of a pair that differs in the GPU apart."""
    return run.tensor_parallel, run.gpu


def ordered(key: Callable[[ServingRun], tuple[object, ...]]) -> tuple[int, int]:
    """Return how many pairs are in the right order, and how many there are.

    `key` has what both runs of a pair share, and then what they differ in. Runs of one configuration are one, by their
    median.
    """
    groups: dict[tuple[object, ...], dict[object, list[ServingRun]]] = {}
    for run, _ in serving_runs():
        shared, differs = key(run)
        load = (run.engine, run.model, run.dtype, run.input_tokens, run.output_tokens, run.batch)
        groups.setdefault((*load, shared), {}).setdefault(differs, []).append(run)
    right = total = 0
    for group in groups.values():
        for some, others in combinations(group.values(), 2):
            measured, expected = (
                [rate(one[0], median(step(run) for run in one)) for one in (some, others)]
                for step in (lambda run: run.tpot_s * 1e3, expected_ms)
            )
            if max(measured) / min(measured) > DIFFERENT:
                total += 1
                right += (measured[0] > measured[1]) == (expected[0] > expected[1])
    return right, total


CONFIGURATIONS = 4
"""Fewer of them leave no choice."""
LOADS_OF_A_DOUBLING = 8
"""Loads that are tried from a measured load up to its double."""

Split = tuple[int, int]
"""Tensor ranks, and GPUs that experts are distributed over."""


def measured_steps() -> list[dict[Split, dict[int, tuple[ServingRun, float]]]]:
    """Return, of each model, GPU, engine and request, a run and its time per output token, ms, by split and load.

    Runs of one configuration are one, by their median. Those with fewer than four configurations are left out.
    """
    groups: dict[tuple[object, ...], dict[Split, dict[int, list[ServingRun]]]] = {}
    for run, _ in serving_runs():
        asked = (run.model, run.gpu, run.engine, run.dtype, run.input_tokens, run.output_tokens)
        splits = groups.setdefault(asked, {})
        splits.setdefault((run.tensor_parallel, run.expert_parallel), {}).setdefault(run.batch, []).append(run)
    found = [
        {
            split: {load: (runs[0], median(run.tpot_s * 1e3 for run in runs)) for load, runs in sorted(loads.items())}
            for split, loads in splits.items()
        }
        for splits in groups.values()
    ]
    return [splits for splits in found if sum(map(len, splits.values())) >= CONFIGURATIONS]


def between(loads: dict[int, tuple[ServingRun, float]]) -> dict[int, tuple[ServingRun, float]]:
    """Return the measured loads and those between two of them, whose time is on the straight line through both."""
    found = dict(loads)
    for (low, (run, least)), (high, (_, most)) in pairwise(loads.items()):
        steps = ceil(LOADS_OF_A_DOUBLING * log2(high / low))
        for load in {round(low * (high / low) ** (step / steps)) for step in range(1, steps)} - loads.keys():
            found[load] = (replace(run, batch=load), least + (most - least) * (load - low) / (high - low))
    return found


def line_errors() -> list[float]:
    """Return how far each measured time is from the straight line through the loads next to it: |line / measured - 1|.

    These are four times apart, where those that `between` joins are twice.
    """
    errors = []
    for splits in measured_steps():
        for loads in splits.values():
            for (low, (_, least)), (middle, (_, measured)), (high, (_, most)) in _triples(loads):
                line = least + (most - least) * (middle - low) / (high - low)
                errors.append(abs(line / measured - 1))
    return errors


def _triples(loads: dict[int, tuple[ServingRun, float]]) -> Iterator[tuple[tuple[int, tuple[ServingRun, float]], ...]]:
    ordered = list(loads.items())
    return zip(ordered, ordered[1:], ordered[2:], strict=False)


def choices(
    range_of: Callable[[ServingRun, float], tuple[float, float]], distance: float, *, interpolated: bool
) -> tuple[int, int, int, float]:
    """Return how many questions are asked, answered and met, and the median share of the best rate, of those answered.

    `range_of` has the middle and the high end of a time by its run and what was measured, and `distance` is that of the
    confidence: how far toward the high end it must meet the limit. `interpolated`: loads between the measured ones may
    be chosen, too.
    """
    questions, met, shares = 0, 0, []
    for splits in measured_steps():
        limits = quantiles((ms for loads in splits.values() for _, ms in loads.values()), n=4, method="inclusive")
        tried = [one for loads in splits.values() for one in (between(loads) if interpolated else loads).values()]
        ranges = [range_of(run, measured) for run, measured in tried]
        for limit in limits:
            questions += 1
            allowed = [
                (rate(run, mid), run, measured)
                for (run, measured), (mid, high) in zip(tried, ranges, strict=True)
                if mid * (high / mid) ** distance <= limit
            ]
            if not allowed:
                continue
            _, chosen, step_ms = max(allowed, key=itemgetter(0))
            met += step_ms <= limit
            best = max(rate(run, measured) for run, measured in tried if measured <= limit)
            shares.append(rate(chosen, step_ms) / best)
    return questions, len(shares), met, median(shares)


@cache
def expected_range(run: ServingRun) -> tuple[float, float]:
    """Return the middle and the high end of the expected time per output token, ms."""
    return figure_range(estimate(run.body()), STEP)[1:]


def _expected(run: ServingRun, _measured: float) -> tuple[float, float]:
    return expected_range(run)


MARGIN = 0.1
"""How far below the limit the choice stays that knows the measured times: what an error of that size costs at least."""


def _with_margin(_run: ServingRun, measured: float) -> tuple[float, float]:
    return measured, measured * (1 + MARGIN)


def expected_ms(run: ServingRun) -> float:
    """Return the expected time per output token, ms."""
    return expected_range(run)[0]


def rate(run: ServingRun, step_ms: float) -> float:
    """Return the tokens a millisecond and GPU of a run."""
    return run.batch / step_ms / run.tensor_parallel


def main() -> int:
    """Print the shares."""
    errors = line_errors()
    worst = quantiles(errors, n=10)[-1]
    print(f"a line over four times the load: {median(errors):.1%} off in the median, {worst:.1%} in a tenth")
    for title, interpolated in (("measured loads", False), ("loads between them, too", True)):
        levels = [(confidence, _expected, distance) for confidence, distance in CONFIDENCE.items()]
        for confidence, range_of, distance in [*levels, (f"the measured time + {MARGIN:.0%}", _with_margin, 1.0)]:
            asked, answered, met, share = choices(range_of, distance, interpolated=interpolated)
            print(
                f"choice of {title}, {confidence}: {answered} of {asked} limits answered, {met} met: "
                f"{met / answered:.1%}, at {share:.0%} of the best rate"
            )
    for name, key in (("tensor ranks", by_tensor), ("GPU", by_gpu)):
        right, total = ordered(key)
        print(f"{name:14} {right} of {total} pairs in the right order: {right / total:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
