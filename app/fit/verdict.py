"""What is said of a size: an option with headroom and cost, or a rejection with every failure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Generic, TypeVar

from app.fit.vm import SizeConstraints, Vm

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


NEAREST_MISSES = 3

OptionT = TypeVar("OptionT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking(Generic[OptionT]):
    """All that fit, the best first, and all that do not, the nearest miss first."""

    options: tuple[OptionT, ...]
    rejections: tuple[Rejection, ...]

    @property
    def summary(self) -> dict[str, int]:
        """How many sizes were rejected for which reason, each counted once, by the failure that misses most."""
        return dict(sorted(Counter(rejection.failures[0].code for rejection in self.rejections).items()))

    @property
    def nearest_misses(self) -> Sequence[Rejection]:
        """The rejected sizes that miss least."""
        return self.rejections[:NEAREST_MISSES]


def miss_distance(rejection: Rejection) -> tuple[float, int, float, str]:
    """How far a size is from fitting: the worst miss, then how many, then all together."""
    shares = [failure.share_missing for failure in rejection.failures]
    return (max(shares), len(shares), sum(shares), rejection.vm.name)


OLD_PRICE_DAYS = 366


def check_eligibility(vm: Vm, terms: SizeConstraints) -> Iterator[Failure]:
    """Tell where a size may not be ordered, or not where it is asked for."""
    if vm.status not in terms.statuses:
        code = vm.status.upper() if vm.status in ("retired", "withdrawn") else "STATUS"
        yield plain_failure("status", code, f"is {vm.status}")
    if terms.regions and vm.region is None:
        yield plain_failure("region", "NOT_IN_REGION", f"has no price in {' or '.join(terms.regions)}")
    if not vm.in_every_region:
        told = "has no price in one of the regions where it must have one"
        yield plain_failure("available_in", "NOT_IN_REGION", told)
    if terms.verified_only and not vm.verified:
        yield plain_failure("verified_only", "UNVERIFIED", "only third parties name it")


NO_COST = Cost(
    usd_per_hour=None, usd_per_month=None, usd_per_job=None, as_of=None, price_age_days=None, approximate_date=None
)
"""The cost of what has no price."""


def compute_cost(vm: Vm, purchase: str, nodes: int, terms: SizeConstraints) -> Cost:
    """Say what so many VMs cost under a purchase model: nodes x price an hour, x hours; exact."""
    price = vm.usd_per_hour[purchase]
    if price is None:
        return NO_COST
    hourly, as_of = nodes * price, vm.as_of.get(purchase)
    return Cost(
        usd_per_hour=hourly,
        usd_per_month=hourly * terms.hours_per_month,
        usd_per_job=hourly * terms.hours if terms.hours is not None else None,
        as_of=as_of,
        price_age_days=(terms.today - as_of).days if as_of is not None else None,
        approximate_date=vm.approximate_date.get(purchase),
    )


def check_budget(month: Decimal | None, terms: SizeConstraints) -> Iterator[Failure]:
    """Tell where a month costs more than it may, or nobody knows what it costs."""
    budget = terms.budget_usd_per_month
    if budget is None:
        return
    if month is None:
        yield unknown_price_failure("budget_usd_per_month", terms)
    elif month > budget:
        yield Failure(
            constraint="budget_usd_per_month",
            code="BUDGET",
            required=float(month),
            available=float(budget),
            unit="USD",
            detail=f"costs {month:.2f} USD a month, the budget is {budget:.2f}",
        )


def unknown_price_failure(constraint: str, terms: SizeConstraints) -> Failure:
    """An unknown price meets no budget, as an unknown amount meets no need."""
    where = f" in {' or '.join(terms.regions)}" if terms.regions else ""
    told = f"no source says its {terms.purchase.replace('_', '-')} price{where}, so it meets no budget"
    return plain_failure(constraint, "NO_PRICE", told)


def warning_codes(vm: Vm, terms: SizeConstraints) -> tuple[str, ...]:
    """Say what a buyer should know of an option; an old price is of over a year ago, or of an undated source."""
    as_of, undated = vm.as_of.get(terms.purchase), vm.approximate_date.get(terms.purchase)
    raised = {
        "NO_PRICE": vm.usd_per_hour.get(terms.purchase) is None,
        "OLD_PRICE": as_of is not None and ((terms.today - as_of).days > OLD_PRICE_DAYS or undated is True),
        "PREVIEW": vm.status == "preview",
        "RETIRING": vm.status == "retiring",
        "WITHDRAWN": vm.status == "withdrawn",
        "RETIRED": vm.status == "retired",
        "UNVERIFIED": not vm.verified,
    }
    return tuple(code for code, holds in raised.items() if holds)
