"""What is said of a size: an option with headroom and cost, or a rejection with every failure."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from app.fit.vm import Vm

PERCENT_DECIMALS = 6
"""A percentage is rounded to this many decimal places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One constraint that a size does not meet; the figures are None where it is not about an amount, or unknown."""

    constraint: str
    code: str
    required: float | None
    available: float | None
    unit: str | None
    detail: str

    @property
    def shortfall(self) -> float | None:
        """How much is missing, in the unit of the constraint."""
        if self.required is None or self.available is None:
            return None
        return abs(self.required - self.available)

    @property
    def share_missing(self) -> float:
        """The shortfall as a share of what is required: 0 to 1; 1 where it is not about an amount."""
        if self.required is None or self.available is None:
            return 1.0
        more_is_better = self.required > self.available
        whole = self.required if more_is_better else self.available
        return abs(self.required - self.available) / whole if whole else 1.0


def plain_failure(constraint: str, code: str, detail: str) -> Failure:
    """A failure that is not about an amount."""
    return Failure(constraint=constraint, code=code, required=None, available=None, unit=None, detail=detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class Headroom:
    """How much of one resource the nodes together have beyond what is required; per node where it does not pool."""

    resource: str
    unit: str
    required: float
    available: float

    @property
    def percent(self) -> float:
        """The part of what is available that is to spare: 100 x (available - required) / available.

        Exact and rounded once, so that options with the same headroom are equals.
        """
        required, available = Decimal(repr(self.required)), Decimal(repr(self.available))
        return float(round(100 * (available - required) / available, PERCENT_DECIMALS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What all nodes cost under one purchase model; None where the price is unknown, the job's where it has no hours.

    Exact: nodes x price an hour; a month has the hours that were asked for.
    """

    usd_per_hour: Decimal | None
    usd_per_month: Decimal | None
    usd_per_job: Decimal | None
    as_of: date | None
    price_age_days: int | None
    approximate_date: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A size that fits, and on how many nodes."""

    vm: Vm
    nodes: int
    headrooms: tuple[Headroom, ...]
    costs: dict[str, Cost]
    warnings: tuple[str, ...]

    @property
    def limiting(self) -> Headroom | None:
        """The resource with the least to spare; None where no amount was asked for."""
        return min(self.headrooms, key=lambda headroom: headroom.percent, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A size that does not fit: all failures, the one that misses most first."""

    vm: Vm
    failures: tuple[Failure, ...]
