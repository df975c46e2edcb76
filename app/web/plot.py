"""Points on logarithmic axes: where they are drawn, which ticks an axis has, and which points no other one beats.

Positions are percentages of the plot, so a drawing fits any width without a script; y is measured from the top.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log, log2, log10
from typing import TypeVar

T = TypeVar("T")

_MARGIN = 0.04
"""The part of the axis that is left free beyond the first and the last point."""
_MAX_TICKS = 12
_FEW_TICKS = 6
"""From this number of ticks on every other one is minor: it has no label on narrow screens."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A value with its line, and where it is; a minor one has no label where there is little space."""

    value: float
    position: float
    minor: bool


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from the least to the greatest value, both above zero."""

    least: float
    greatest: float

    def position(self, value: float) -> float:
        """Return where a value is, in percent of the axis."""
        share = log(value / self.least) / log(self.greatest / self.least)
        return round(100 * share, 3)

    def ticks(self, base: int) -> Sequence[Tick]:
        """Return the ticks of an axis: powers of two for `base` 2, else 1, 2 and 5 times powers of ten."""
        values = _powers_of_two(self) if base == 2 else _one_two_five(self)  # noqa: PLR2004  # a base
        crowded = len(values) >= _FEW_TICKS
        return [Tick(value, self.position(value), crowded and index % 2 == 1) for index, value in enumerate(values)]


def log_axis(values: Iterable[float]) -> LogAxis:
    """Return the axis of values above zero; that of one value alone reaches from its half to its double."""
    known = list(values)
    least, greatest = min(known), max(known)
    if least == greatest:
        return LogAxis(least / 2, greatest * 2)
    room = (greatest / least) ** _MARGIN
    return LogAxis(least / room, greatest * room)


def _powers_of_two(axis: LogAxis) -> list[float]:
    first, last = ceil(log2(axis.least)), floor(log2(axis.greatest))
    step = ceil((last - first + 1) / _MAX_TICKS) or 1
    return [2.0**exponent for exponent in range(first, last + 1, step)]


def _one_two_five(axis: LogAxis) -> list[float]:
    decades = range(floor(log10(axis.least)), ceil(log10(axis.greatest)) + 1)
    for digits in ((1, 2, 5), (1,)):
        values = [digit * 10.0**decade for decade in decades for digit in digits]
        shown = [value for value in values if axis.least <= value <= axis.greatest]
        if len(shown) <= _MAX_TICKS:
            break
    return shown


def pareto_front(points: Iterable[T], x: Callable[[T], float], y: Callable[[T], float]) -> list[T]:
    """Return the points that no other one beats, by x; greater is better, so what is better if less comes negated.

    A point beats another that it equals in one figure and exceeds in the other, or exceeds in both. Equal points are
    all kept.
    """
    front: list[T] = []
    best = float("-inf")
    for point in sorted(points, key=lambda one: (x(one), y(one)), reverse=True):
        equal = bool(front) and (x(front[-1]), y(front[-1])) == (x(point), y(point))
        if y(point) > best or equal:
            front.append(point)
            best = y(point)
    return front[::-1]
