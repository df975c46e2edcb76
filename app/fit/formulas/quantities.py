"""Figures (a number with its unit and certainty) and ranges, for quantities that can only be estimated."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Literal

from app.fit.shapes import ALWAYS_WRITTEN, WrittenAs, about, if_known

Certainty = Literal["exact", "bound", "estimate"]
Number = int | float | Decimal

JsonFloat = Annotated[Number, WrittenAs("float")]

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An estimated quantity: its lowest, most likely and highest plausible value, in one unit."""

    low: float
    mid: float
    high: float

    def __add__(self, other: "Range | float") -> "Range":
        """Add a range end by end, or a known value to every end."""
        if isinstance(other, Range):
            return Range(low=self.low + other.low, mid=self.mid + other.mid, high=self.high + other.high)
        return Range(low=self.low + other, mid=self.mid + other, high=self.high + other)

    def times(self, factor: float) -> "Range":
        """Return the range multiplied by a factor, which must not be negative."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)

    def within(self, factors: "Range") -> "Range":
        """Return the range multiplied by factors end by end."""
        return Range(low=self.low * factors.low, mid=self.mid * factors.mid, high=self.high * factors.high)

    @property
    def spread(self) -> "Range":
        """The range relative to its middle: the uncertainty that a part adds to a sum of middles."""
        return Range(low=self.low - self.mid, mid=0.0, high=self.high - self.mid)

    def divide(self, amount: float) -> "Range":
        """Return `amount / self`: the highest divisor gives the lowest quotient."""
        return Range(low=amount / self.high, mid=amount / self.mid, high=amount / self.low)


def plus_minus(mid: float, share: float) -> Range:
    """Return `mid` with the same share of it to either side: 10 and 0.4 give 6 to 14."""
    return Range(low=mid * (1 - share), mid=mid, high=mid * (1 + share))


def single_value(value: float) -> Range:
    """Return a range of one known value."""
    return Range(low=value, mid=value, high=value)


ZERO = single_value(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measurements that the range of an estimate rests on."""

    __pydantic_config__ = ALWAYS_WRITTEN

    family: str = field(metadata=about("The family in GET /accuracy: `decode_step`. Extensible."))
    n: int = field(metadata=about("The measurements of the family."))
    outside: tuple[str, ...] = field(
        default=(),
        metadata=about("In what the request departs from them, so that the range is wider: gpu, link, … Extensible."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure: `value` where it is exact or a bound, `low`, `mid` and `high` where it is an estimate."""

    __pydantic_config__ = ALWAYS_WRITTEN

    certainty: Annotated[Certainty, WrittenAs("str")] = field(
        metadata=about("exact, bound or estimate. Extensible.", alias="class")
    )
    unit: str = field(metadata=about("The unit of all of them."))
    value: JsonFloat | None = field(default=None, metadata=about("The figure, or the bound; null of an estimate."))
    low: JsonFloat | None = field(default=None, metadata=about("The low end of an estimate."))
    mid: JsonFloat | None = field(default=None, metadata=about("The middle of an estimate."))
    high: JsonFloat | None = field(default=None, metadata=about("The high end of an estimate."))
    evidence: Evidence | None = field(
        default=None, metadata=if_known("What the range rests on, where it was compared with measurements.")
    )


def exact(value: Number, unit: str) -> Figure:
    """Return an exact figure: plain arithmetic on the input, without uncertainty."""
    return Figure(unit=unit, certainty="exact", value=value)


def bound(value: Number, unit: str) -> Figure:
    """Return a limit: no system does better, or no GPU holds more."""
    return Figure(unit=unit, certainty="bound", value=value)


def estimate(value: Range, unit: str, evidence: Evidence | None = None) -> Figure:
    """Return an estimate with the range seen in practice, and the measurements that say so."""
    return Figure(unit=unit, certainty="estimate", low=value.low, mid=value.mid, high=value.high, evidence=evidence)


def exact_within(value: float, unit: str, factors: Range) -> Figure:
    """Return an exact figure where the factors are 1, else an estimate: the value multiplied by them."""
    return exact(value, unit) if factors.low == factors.high else estimate(single_value(value).within(factors), unit)


def exact_gib(size_bytes: float) -> Figure:
    """Convert an exact number of bytes to a figure in GiB (2^30 bytes)."""
    return exact(size_bytes / GIB, "GiB")


def exact_or_bound_gib(size_bytes: float, *, is_exact: bool) -> Figure:
    """Convert bytes on the fullest GPU to GiB; a bound where layers were rounded up to whole ones per stage."""
    return exact_gib(size_bytes) if is_exact else bound(size_bytes / GIB, "GiB")


def estimate_gib(size_bytes: Range) -> Figure:
    """Convert an estimated number of bytes to a figure in GiB (2^30 bytes)."""
    return estimate(size_bytes.times(1 / GIB), "GiB")
