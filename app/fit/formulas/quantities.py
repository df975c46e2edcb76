"""Figures: a number with its unit and how sure it is; ranges, for what can only be estimated."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

Certainty = Literal["exact", "bound", "estimate"]
Number = int | float | Decimal

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A quantity that is estimated: its lowest, middle and highest plausible value, in one unit."""

    low: float
    mid: float
    high: float

    def __add__(self, other: "Range | float") -> "Range":
        """Add what is estimated or known; ends add up with ends."""
        if isinstance(other, Range):
            return Range(low=self.low + other.low, mid=self.mid + other.mid, high=self.high + other.high)
        return Range(low=self.low + other, mid=self.mid + other, high=self.high + other)

    def times(self, factor: float) -> "Range":
        """Multiply by a factor that is not negative."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)

    @property
    def spread(self) -> "Range":
        """How far the ends are from the middle: what an uncertain part adds to a sum that has its middle already."""
        return Range(low=self.low - self.mid, mid=0.0, high=self.high - self.mid)

    def divide(self, amount: float) -> "Range":
        """Divide an amount by this: the most of this gives the least of that."""
        return Range(low=amount / self.high, mid=amount / self.mid, high=amount / self.low)


def plus_minus(mid: float, share: float) -> Range:
    """A middle and the same share of it to either side: 10 and 0.4 make 6 to 14."""
    return Range(low=mid * (1 - share), mid=mid, high=mid * (1 + share))


def single_value(value: float) -> Range:
    """A range of one value."""
    return Range(low=value, mid=value, high=value)


ZERO = single_value(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What is shown of a quantity: `value` where it is exact or a bound, else `low`, `mid` and `high`."""

    unit: str
    certainty: Certainty
    value: Number | None = None
    low: Number | None = None
    mid: Number | None = None
    high: Number | None = None


def exact(value: Number, unit: str) -> Figure:
    """Arithmetic on what was given: nothing about it is uncertain."""
    return Figure(unit=unit, certainty="exact", value=value)


def bound(value: Number, unit: str) -> Figure:
    """A limit: no system does better, or no GPU holds more."""
    return Figure(unit=unit, certainty="bound", value=value)


def estimate(value: Range, unit: str) -> Figure:
    """A value with the range that practice shows."""
    return Figure(unit=unit, certainty="estimate", low=value.low, mid=value.mid, high=value.high)


def exact_gib(size_bytes: float) -> Figure:
    """Bytes that are known exactly, shown in GiB (2^30 bytes)."""
    return exact(size_bytes / GIB, "GiB")


def exact_or_bound_gib(size_bytes: float, *, is_exact: bool) -> Figure:
    """Bytes of the GPU that holds most, shown in GiB; a bound where how layers and stages divide is rounded up."""
    return exact_gib(size_bytes) if is_exact else bound(size_bytes / GIB, "GiB")


def estimate_gib(size_bytes: Range) -> Figure:
    """Bytes that are estimated, shown in GiB (2^30 bytes)."""
    return estimate(size_bytes.times(1 / GIB), "GiB")
