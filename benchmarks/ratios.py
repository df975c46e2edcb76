"""The arithmetic of a benchmark: spreads of paired ratios, percentiles, and whether what was asked is reached."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Several measurements of one thing: the middle one, and how far they lie apart."""

    median: float
    min: float
    max: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Sum up measurements; there must be one at least."""
    return Spread(median=median(values), min=min(values), max=max(values), count=len(values))


def paired(subject: Sequence[float], reference: Sequence[float]) -> Spread:
    """The ratios of measurements that were taken in turn: each to its own neighbour, so that a slow drift cancels."""
    return spread([one / other for one, other in zip(subject, reference, strict=True)])


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that `percent` of them do not exceed."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def latencies(scheduled: Sequence[float], finished: Sequence[float]) -> list[float]:
    """Seconds from when each request was due, not from when it could be sent: waiting in a queue counts."""
    return [end - due for due, end in zip(scheduled, finished, strict=True)]


def schedule(per_second: float, seconds: float) -> list[float]:
    """When requests are due, from 0 on: a fixed rate, whatever the server does."""
    return [number / per_second for number in range(int(per_second * seconds))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is asked of a figure; none says only what is measured."""

    figure: str
    how: Literal["at least", "at most", "below"] | None = None
    bound: float | None = None

    def reached(self, value: float) -> bool | None:
        """Whether a value is enough; None where nothing is asked."""
        if self.bound is None or self.how is None:
            return None
        return {
            "at least": value >= self.bound,
            "at most": value <= self.bound,
            "below": value < self.bound,
        }[self.how]
