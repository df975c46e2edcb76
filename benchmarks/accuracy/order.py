"""Counts pairs of measured runs that the estimates put in the right order: `python -m benchmarks.accuracy.order`.

A pair differs in the tensor ranks, or in the GPU, and in nothing else; tokens a second and GPU differ by more than 5 %.

Then it asks, for each model, GPU, engine and request with at least four measured configurations, and each quartile of
their times per output token as a limit, which tensor ranks and load give most tokens a second and GPU: how often the
one that the estimates choose meets the limit, and how much of the best rate it has, for each confidence.
"""

import sys
from collections.abc import Callable
from itertools import combinations
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
                [rate(one, median(step(run) for run in one)) for one in (some, others)]
                for step in (lambda run: run.tpot_s * 1e3, expected_ms)
            )
            if max(measured) / min(measured) > DIFFERENT:
                total += 1
                right += (measured[0] > measured[1]) == (expected[0] > expected[1])
    return right, total


CONFIGURATIONS = 4
"""Fewer of them leave no choice."""


def choices(distance: float) -> tuple[int, int, int, float]:
    """Return how many questions are asked, answered and met, and the median share of the best rate, of those answered.

    `distance` is that of the confidence: how far toward the high end of its range an estimate must meet the limit.
    """
    groups: dict[tuple[object, ...], dict[tuple[int, int, int], list[ServingRun]]] = {}
    for run, _ in serving_runs():
        asked = (run.model, run.gpu, run.engine, run.dtype, run.input_tokens, run.output_tokens)
        split = (run.tensor_parallel, run.expert_parallel, run.batch)
        groups.setdefault(asked, {}).setdefault(split, []).append(run)
    questions, met, shares = 0, 0, []
    for group in groups.values():
        if len(group) < CONFIGURATIONS:
            continue
        measured = {split: median(run.tpot_s * 1e3 for run in runs) for split, runs in group.items()}
        ranges = {split: figure_range(estimate(runs[0].body()), STEP)[1:] for split, runs in group.items()}
        for limit in quantiles(measured.values(), n=4, method="inclusive"):
            questions += 1
            allowed = [split for split, (mid, high) in ranges.items() if mid * (high / mid) ** distance <= limit]
            if not allowed:
                continue
            chosen = max(allowed, key=lambda split: rate(group[split], ranges[split][0]))
            met += measured[chosen] <= limit
            best = max(rate(group[split], ms) for split, ms in measured.items() if ms <= limit)
            shares.append(rate(group[chosen], measured[chosen]) / best)
    return questions, len(shares), met, median(shares)


def expected_ms(run: ServingRun) -> float:
    """Return the expected time per output token, ms."""
    return figure_range(estimate(run.body()), STEP)[1]


def rate(runs: list[ServingRun], step_ms: float) -> float:
    """Return the tokens a second and GPU of runs of one configuration."""
    return runs[0].batch / step_ms / runs[0].tensor_parallel


def main() -> int:
    """Print the shares."""
    for confidence, distance in CONFIDENCE.items():
        asked, answered, met, share = choices(distance)
        print(
            f"choice, {confidence}: {answered} of {asked} limits answered, {met} met: {met / answered:.1%}, "
            f"at {share:.0%} of the best rate"
        )
    for name, key in (("tensor ranks", by_tensor), ("GPU", by_gpu)):
        right, total = ordered(key)
        print(f"{name:14} {right} of {total} pairs in the right order: {right / total:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
