"""What is judged of any size, whatever the job: its standing, its region, its price, and what a buyer should know."""

from collections.abc import Iterator
from decimal import Decimal

from app.fit.verdict import Cost, Failure, plain_failure
from app.fit.vm import Terms, Vm

_A_YEAR = 366


def standing(vm: Vm, terms: Terms) -> Iterator[Failure]:
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


def cost_of(vm: Vm, purchase: str, nodes: int, terms: Terms) -> Cost:
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


def over_budget(month: Decimal | None, terms: Terms) -> Iterator[Failure]:
    """Tell where a month costs more than it may, or nobody knows what it costs."""
    budget = terms.budget_usd_per_month
    if budget is None:
        return
    if month is None:
        yield unpriced("budget_usd_per_month", terms)
    elif month > budget:
        yield Failure(
            constraint="budget_usd_per_month",
            code="BUDGET",
            required=float(month),
            available=float(budget),
            unit="USD",
            detail=f"costs {month:.2f} USD a month, the budget is {budget:.2f}",
        )


def unpriced(constraint: str, terms: Terms) -> Failure:
    """An unknown price meets no budget, as an unknown amount meets no need."""
    where = f" in {' or '.join(terms.regions)}" if terms.regions else ""
    told = f"no source says its {terms.purchase.replace('_', '-')} price{where}, so it meets no budget"
    return plain_failure(constraint, "NO_PRICE", told)


def warnings(vm: Vm, terms: Terms) -> tuple[str, ...]:
    """Say what a buyer should know of an option; an old price is of over a year ago, or of an undated source."""
    as_of, undated = vm.as_of.get(terms.purchase), vm.approximate_date.get(terms.purchase)
    raised = {
        "NO_PRICE": vm.usd_per_hour.get(terms.purchase) is None,
        "OLD_PRICE": as_of is not None and ((terms.today - as_of).days > _A_YEAR or undated is True),
        "PREVIEW": vm.status == "preview",
        "RETIRING": vm.status == "retiring",
        "WITHDRAWN": vm.status == "withdrawn",
        "RETIRED": vm.status == "retired",
        "UNVERIFIED": not vm.verified,
    }
    return tuple(code for code, holds in raised.items() if holds)
