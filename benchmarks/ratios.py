"""The statistics of a benchmark: spreads of paired ratios, percentiles and goals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The median and the range of several measurements."""

    median: float
    min: float
    max: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Compute the spread of at least one measurement."""
    return Spread(median=median(values), min=min(values), max=max(values), count=len(values))


def paired(subject: Sequence[float], reference: Sequence[float]) -> Spread:
    """Compute the ratios of measurements taken in turn, each to its neighbour, so that slow drift cancels out."""
    return spread([one / other for one, other in zip(subject, reference, strict=True)])


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    rank = -(-len(ordered) * percent // 100)
    return ordered[max(0, int(rank) - 1)]


def latencies(scheduled: Sequence[float], finished: Sequence[float]) -> list[float]:
    """Return the seconds from when each request was due, not from when it was sent: waiting in a queue counts."""
    return [end - due for due, end in zip(scheduled, finished, strict=True)]


def schedule(per_second: float, seconds: float) -> list[float]:
    """Return when requests are due at a fixed rate, in seconds from 0."""
    return [number / per_second for number in range(int(per_second * seconds))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The bound that a figure must meet; without one it is only reported."""

    figure: str
    how: Literal["at least", "at most", "below"] | None = None
    bound: float | None = None

    def reached(self, value: float) -> bool | None:
        """Return whether a value meets the bound; None without one."""
        if self.bound is None or self.how is None:
            return None
        return {
            "at least": value >= self.bound,
            "at most": value <= self.bound,
            "below": value < self.bound,
        }[self.how]
