"""How slow this machine is, so that bounds of CPU time hold the program and not the machine to account."""

import time
from functools import cache

REFERENCE_SECONDS = 0.057
"""CPU time of `_compute` on the machine on which the bounds were set, where all tests take 765 CPU seconds."""


def _compute() -> int:
    return sum(number * number % 7 for number in range(1_000_000))


@cache
def slowness() -> float:
    """Return by how much more CPU time this machine takes for the same, as measured now; at least 1."""
    times = []
    for _ in range(3):
        begun = time.process_time()
        _compute()
        times.append(time.process_time() - begun)
    return max(1.0, min(times) / REFERENCE_SECONDS)
