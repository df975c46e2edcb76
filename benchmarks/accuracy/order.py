"""Counts pairs of measured runs that the estimates put in the right order: `python -m benchmarks.accuracy.order`.

A pair differs in the tensor ranks, or in the GPU, and in nothing else; tokens a second and GPU differ by more than 5 %.
"""

import sys
from collections.abc import Callable
from itertools import combinations
from statistics import median

from benchmarks.accuracy.estimates import estimate, figure_range
from benchmarks.accuracy.runs import ServingRun, serving_runs

DIFFERENT = 1.05


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


def expected_ms(run: ServingRun) -> float:
    """Return the expected time per output token, ms."""
    return figure_range(estimate(run.body()), "inference.decode.expected_step")[1]


def rate(runs: list[ServingRun], step_ms: float) -> float:
    """Return the tokens a second and GPU of runs of one configuration."""
    return runs[0].batch / step_ms / runs[0].tensor_parallel


def main() -> int:
    """Print the shares."""
    for name, key in (("tensor ranks", by_tensor), ("GPU", by_gpu)):
        right, total = ordered(key)
        print(f"{name:14} {right} of {total} pairs in the right order: {right / total:.1%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
