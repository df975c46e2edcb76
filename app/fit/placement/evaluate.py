"""Whether a size holds a job, and how; else every constraint that it fails."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Any

from app.fit.placement.checks import CheckContext, find_failures
from app.fit.placement.layouts import Attempt
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, find_headrooms, find_warnings
from app.fit.placement.prepare import PreparedRequest
from app.fit.placement.serving import ServingJob
from app.fit.verdict import (
    Failure,
    Ranking,
    Rejection,
    check_budget,
    check_eligibility,
    compute_cost,
    miss_distance,
    plain_failure,
    unknown_price_failure,
    warning_codes,
)
from app.fit.vm import Vm


def evaluate(vm: Vm, machine: Machine, prepared: PreparedRequest) -> PlacementOption | Rejection:
    """Judge one size; every check is made, not only the first that fails, and money only where all else holds."""
    attempt = prepared.job.find_attempt(machine, prepared.limits) if machine.gpus else None
    case = CheckContext(prepared=prepared, machine=machine, attempt=attempt)
    found = [*check_eligibility(vm, prepared.terms), *find_failures(case)]
    if found or attempt is None:
        return to_rejection(vm, found)
    option = to_option(vm, machine, attempt, prepared)
    found = [*_time_failures(option, prepared), *_budget_failures(option, prepared)]
    return to_rejection(vm, found) if found else option


def to_rejection(vm: Vm, found: list[Failure]) -> Rejection:
    """Put failures in order, the one that misses most first."""
    ordered = sorted(found, key=lambda failure: (-failure.share_missing, failure.constraint))
    return Rejection(vm=vm, failures=tuple(ordered))


def to_option(vm: Vm, machine: Machine, attempt: Attempt, prepared: PreparedRequest) -> PlacementOption:
    """Say all of a size that holds a job."""
    pricing, job, terms = prepared.request.pricing, prepared.job, prepared.terms
    return PlacementOption(
        vm=vm,
        machine=machine,
        attempt=attempt,
        speed=job.speed(machine, attempt),
        costs={purchase: compute_cost(vm, purchase, attempt.nodes, terms) for purchase in pricing.purchases},
        headrooms=find_headrooms(job, machine, attempt),
        warnings=(*find_warnings(job, machine, attempt), *warning_codes(vm, terms)),
        pricing=pricing,
        weights=job.serving.weights.type if isinstance(job, ServingJob) and job.serving.weights is not None else None,
    )


def _time_failures(option: PlacementOption, prepared: PreparedRequest) -> Iterator[Failure]:
    most = prepared.request.constraints.max_hours
    hours = option.speed.hours if option.speed is not None else None
    if most is None:
        return
    if hours is None:
        yield plain_failure("max_hours", "TIME", "no source says how fast its GPU is")
    elif hours.mid > most:
        yield Failure(
            constraint="max_hours",
            code="TIME",
            required=hours.mid,
            available=most,
            unit="hours",
            detail=f"takes about {hours.mid:.1f} hours on {option.attempt.nodes} VMs, {most:g} are allowed",
        )


def _budget_failures(option: PlacementOption, prepared: PreparedRequest) -> Iterator[Failure]:
    yield from check_budget(option.costs[prepared.terms.purchase].usd_per_month, prepared.terms)
    budget, cost = prepared.request.constraints.budget_usd_per_job, option.usd_per_job
    if budget is None:
        return
    if option.usd_per_hour is None:
        yield unknown_price_failure("budget_usd_per_job", prepared.terms)
    elif cost is None:
        told = "no source says how fast its GPU is, so nobody knows what the job costs"
        yield plain_failure("budget_usd_per_job", "TIME", told)
    elif cost > budget:
        yield Failure(
            constraint="budget_usd_per_job",
            code="BUDGET",
            required=cost,
            available=float(budget),
            unit="USD",
            detail=f"the job costs about {cost:.2f} USD, the budget is {budget:.2f}",
        )


def _or_infinity(value: float | Decimal | None) -> float:
    return inf if value is None else float(value)


SORTS: dict[str, Callable[[PlacementOption], Any]] = {
    "cost_per_hour": lambda option: _or_infinity(option.usd_per_hour),
    "cost_per_job": lambda option: _or_infinity(option.usd_per_job),
    "cost_per_1m_tokens": lambda option: _or_infinity(option.usd_per_million_tokens),
    "time": lambda option: option.time,
    "headroom": lambda option: -option.limiting.percent if option.limiting else 0.0,
    "nodes": lambda option: option.attempt.nodes,
}
"""What options can be ranked by; an unknown figure comes last."""


def rank(
    sizes: Iterable[tuple[Vm, Machine]], prepared: PreparedRequest, sort: str = "cost_per_hour"
) -> Ranking[PlacementOption]:
    """Judge every size and put the options in order; those without a price come last.

    Ties: cost an hour, fewer VMs, the newer GPU, the name.
    """
    verdicts = [evaluate(vm, machine, prepared) for vm, machine in sizes]
    key, hourly = SORTS[sort], SORTS["cost_per_hour"]
    options = sorted(
        (verdict for verdict in verdicts if isinstance(verdict, PlacementOption)),
        key=lambda one: (
            one.usd_per_hour is None,
            key(one),
            hourly(one),
            one.attempt.nodes,
            -one.generation,
            one.vm.name,
        ),
    )
    rejections = sorted((verdict for verdict in verdicts if isinstance(verdict, Rejection)), key=miss_distance)
    return Ranking(options=tuple(mark_pareto_optimal(options)), rejections=tuple(rejections))


def mark_pareto_optimal(options: list[PlacementOption]) -> list[PlacementOption]:
    """Mark the options that no other beats in cost and time at once; not marked where either is unknown."""
    known = [one for one in options if one.cost is not None and one.time < inf]
    best: dict[str, bool] = {}
    least = (inf, inf)
    for one in sorted(known, key=lambda one: (one.cost or 0.0, one.time)):
        here = (one.cost or 0.0, one.time)
        best[one.vm.name] = one.time < least[1] or here == least
        least = here if one.time < least[1] else least
    return [replace(one, pareto_optimal=best.get(one.vm.name)) for one in options]
