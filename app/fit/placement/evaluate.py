"""Evaluate sizes: an option where the job fits, else a rejection with every failed constraint; and rank them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from math import inf
from typing import Any

from app.fit.placement.checks import BLOCKING, GPU_CHECKS, HOST_CHECKS, CheckContext, find_failures
from app.fit.placement.layouts import Attempt, Speed
from app.fit.placement.machine import Kept, Machine
from app.fit.placement.option import PlacementOption, find_headrooms, find_target_warnings, find_warnings
from app.fit.placement.prepare import Job, PreparedRequest
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob
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


class Placed:
    """A job on the GPUs of a machine: the best attempt, and what it fails whatever else the machine has.

    The attempt is None where no partition is possible.
    """

    def __init__(self, job: Job, machine: Machine, attempt: Attempt | None, failures: tuple[Failure, ...]) -> None:
        self._job, self._machine = job, machine
        self.attempt, self.failures = attempt, failures

    @property
    def blocked(self) -> bool:
        """Whether so little is known that nothing else is checked."""
        return any(failure.code in BLOCKING for failure in self.failures)

    @cached_property
    def speed(self) -> Speed | None:
        """How fast it is; None where that is unknown."""
        return self._job.speed(self._machine, self.attempt) if self.attempt is not None else None


def place(machine: Machine, prepared: PreparedRequest) -> Kept[Placed]:
    """Place a job on the GPUs of a machine, once for all that have the same, and memory with which all is the same."""
    return prepared.kept.find(machine, "placed", lambda compared: _place(machine, prepared, compared))


def _place(machine: Machine, prepared: PreparedRequest, compared: list[float]) -> Placed:
    attempt = prepared.job.find_attempt(machine, prepared.limits, compared) if machine.gpus else None
    context = CheckContext(prepared=prepared, machine=machine, attempt=attempt, compared=compared)
    return Placed(prepared.job, machine, attempt, tuple(find_failures(context, GPU_CHECKS)))


def evaluate(vm: Vm, machine: Machine, prepared: PreparedRequest) -> PlacementOption | Rejection:
    """Evaluate one size by every check, not only up to the first failure; by time and budget only if those pass."""
    rejection = find_rejection(vm, machine, prepared)
    if rejection is not None:
        return rejection
    option, job = to_option(vm, machine, place(machine, prepared).found, prepared), prepared.job
    attempt, speed = option.attempt, option.speed
    return replace(
        option,
        headrooms=find_headrooms(job, machine, attempt),
        warnings=(
            *find_warnings(job, machine, attempt),
            *(find_target_warnings(attempt.load.level, speed) if attempt.load is not None else ()),
            *warning_codes(vm, prepared.size_constraints),
        ),
    )


def find_rejection(vm: Vm, machine: Machine, prepared: PreparedRequest) -> Rejection | None:
    """Return what a size fails of all checks, as `evaluate` does; None where it fits."""
    placed = place(machine, prepared).found
    failures = [*check_eligibility(vm, prepared.size_constraints), *placed.failures]
    if not placed.blocked:
        failures += find_failures(CheckContext(prepared=prepared, machine=machine, attempt=placed.attempt), HOST_CHECKS)
    if failures or placed.attempt is None:
        return _to_rejection(vm, failures)
    if not prepared.request.constraints.bounds_time_or_cost:  # to know how fast it is takes longer than all else
        return None
    option = to_option(vm, machine, placed, prepared)
    failures = [*find_time_failures(option, prepared), *_budget_failures(option, prepared)]
    return _to_rejection(vm, failures) if failures else None


def _to_rejection(vm: Vm, failures: list[Failure]) -> Rejection:
    """Reject a size with its failures in order, the largest shortfall first."""
    ordered = sorted(failures, key=lambda failure: (-failure.share_missing, failure.constraint))
    return Rejection(vm=vm, failures=tuple(ordered))


def to_option(vm: Vm, machine: Machine, placed: Placed, prepared: PreparedRequest) -> PlacementOption:
    """Build the option of a size that fits: its speed and costs, without headroom and warnings."""
    pricing, job, terms = prepared.request.pricing, prepared.job, prepared.size_constraints
    if placed.attempt is None:
        raise ValueError("it is placed nowhere")
    attempt, speed = placed.attempt, placed.speed
    hours = speed.hours.mid if speed is not None and speed.hours is not None else None
    return PlacementOption(
        vm=vm,
        machine=machine,
        attempt=attempt,
        speed=speed,
        costs={purchase: compute_cost(vm, purchase, attempt.nodes, terms) for purchase in pricing.purchases},
        pricing=pricing,
        interruptions=job.interruptions(attempt.nodes, hours) if isinstance(job, TrainingJob) else None,
        weights=job.serving.weights.type if isinstance(job, ServingJob) and job.serving.weights is not None else None,
        assumed=job.assumed if isinstance(job, TrainingJob) else "",
    )


def find_time_failures(option: PlacementOption, prepared: PreparedRequest) -> Iterator[Failure]:
    """Yield the failure of an option that takes longer than is allowed."""
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
    yield from check_budget(option.costs[prepared.size_constraints.purchase].usd_per_month, prepared.size_constraints)
    budget, cost = prepared.request.constraints.budget_usd_per_job, option.usd_per_job
    if budget is None:
        return
    if option.usd_per_hour is None:
        yield unknown_price_failure("budget_usd_per_job", prepared.size_constraints)
    elif cost is None:
        detail = "no source says how fast its GPU is, so the cost of the job is unknown"
        yield plain_failure("budget_usd_per_job", "TIME", detail)
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
"""Sort keys of options by the request's `sort`; an unknown figure comes last."""


def rank(
    sizes: Iterable[tuple[Vm, Machine]], prepared: PreparedRequest, sort: str = "cost_per_hour"
) -> Ranking[PlacementOption]:
    """Evaluate every size and sort the options; those without a price come last.

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
    rejections = sorted(
        (verdict for verdict in verdicts if isinstance(verdict, Rejection)),
        key=lambda rejection: _nearness(rejection, prepared),
    )
    return Ranking(options=tuple(mark_pareto_optimal(options)), rejections=tuple(rejections))


def _nearness(rejection: Rejection, prepared: PreparedRequest) -> tuple[bool, float, int, float, bool, Decimal, str]:
    """Return the sort key of a rejection: the share that is missing, then the price.

    Nearest are GPUs that serve the model in fp16 and lack only bf16: the change costs no memory.
    """
    job, (failure, *others) = prepared.job, rejection.failures
    lacks_bf16 = not others and (failure.code, failure.constraint) == ("DTYPE_UNSUPPORTED", "dtype")
    needs_fp16 = lacks_bf16 and isinstance(job, ServingJob) and job.dtype == "bf16"
    price = rejection.vm.usd_per_hour.get(prepared.request.pricing.purchases[0])
    share, count, total, name = miss_distance(rejection)
    return (not needs_fp16, share, count, total, price is None, price or Decimal(0), name)


def mark_pareto_optimal(options: list[PlacementOption]) -> list[PlacementOption]:
    """Set `pareto_optimal` where no other option is better in cost and time at once; None where either is unknown."""
    known = [one for one in options if one.cost is not None and one.time < inf]
    optimal: dict[str, bool] = {}
    # By rising cost, an option is optimal if it is faster than all cheaper ones; equals of an optimal one are, too.
    last_optimal = (inf, inf)
    for one in sorted(known, key=lambda one: (one.cost or 0.0, one.time)):
        point = (one.cost or 0.0, one.time)
        faster = one.time < last_optimal[1]
        optimal[one.vm.name] = faster or point == last_optimal
        last_optimal = point if faster else last_optimal
    return [replace(one, pareto_optimal=optimal.get(one.vm.name)) for one in options]
