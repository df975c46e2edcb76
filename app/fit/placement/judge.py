"""Whether a size holds a job, and how; else every constraint that it fails."""

from collections.abc import Iterator

from app.fit.placement.attempt import Attempt
from app.fit.placement.case import Case
from app.fit.placement.checks import failures
from app.fit.placement.machine import Machine
from app.fit.placement.option import Placed, headrooms, placing_warnings
from app.fit.placement.prepare import Prepared
from app.fit.placement.serving import ServingJob
from app.fit.standing import cost_of, over_budget, standing, unpriced, warnings
from app.fit.verdict import Failure, Rejection, plain_failure
from app.fit.vm import Vm


def judge(vm: Vm, machine: Machine, asked: Prepared) -> Placed | Rejection:
    """Judge one size; every check is made, not only the first that fails, and money only where all else holds."""
    attempt = asked.job.attempt(machine, asked.limits) if machine.gpus else None
    case = Case(asked=asked, machine=machine, attempt=attempt)
    found = [*standing(vm, asked.terms), *failures(case)]
    if found or attempt is None:
        return reject(vm, found)
    option = place(vm, machine, attempt, asked)
    found = [*_late(option, asked), *_dear(option, asked)]
    return reject(vm, found) if found else option


def reject(vm: Vm, found: list[Failure]) -> Rejection:
    """Put failures in order, the one that misses most first."""
    ordered = sorted(found, key=lambda failure: (-failure.share_missing, failure.constraint))
    return Rejection(vm=vm, failures=tuple(ordered))


def place(vm: Vm, machine: Machine, attempt: Attempt, asked: Prepared) -> Placed:
    """Say all of a size that holds a job."""
    pricing, job, terms = asked.question.pricing, asked.job, asked.terms
    return Placed(
        vm=vm,
        machine=machine,
        attempt=attempt,
        speed=job.speed(machine, attempt),
        costs={purchase: cost_of(vm, purchase, attempt.nodes, terms) for purchase in pricing.purchases},
        headrooms=headrooms(job, machine, attempt),
        warnings=(*placing_warnings(job, machine, attempt), *warnings(vm, terms)),
        pricing=pricing,
        weights=job.asked.stored.type if isinstance(job, ServingJob) and job.asked.stored is not None else None,
    )


def _late(option: Placed, asked: Prepared) -> Iterator[Failure]:
    most = asked.question.constraints.max_hours
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


def _dear(option: Placed, asked: Prepared) -> Iterator[Failure]:
    yield from over_budget(option.costs[asked.terms.purchase].usd_per_month, asked.terms)
    budget, cost = asked.question.constraints.budget_usd_per_job, option.usd_per_job
    if budget is None:
        return
    if option.usd_per_hour is None:
        yield unpriced("budget_usd_per_job", asked.terms)
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
