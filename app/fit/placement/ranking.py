"""Options of a model in the order that a request asks for, and rejected sizes, the nearest miss first."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from math import inf
from operator import itemgetter
from typing import Any

from app.fit.placement.evaluate import Alike, evaluate
from app.fit.placement.fixes import may_be_fixed
from app.fit.placement.jobs import ServingJob
from app.fit.placement.machine import Machine, generation
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import PreparedRequest
from app.fit.verdict import Failure, Rejection, Vm, miss_distance


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
) -> tuple[list[PlacementOption], list[Rejection]]:
    """Evaluate every size, and return the options, best first, and the rejections, the nearest miss first.

    Options without a price come last. Ties: cost an hour, fewer VMs, the newer GPU, the name.
    """
    alike: Alike = {}
    nearness = {}
    key, hourly, first = SORTS[sort], SORTS["cost_per_hour"], prepared.request.pricing.purchase
    options, rejections = [], []
    for vm, machine in sizes:
        verdict = evaluate(vm, machine, prepared, alike)
        if isinstance(verdict, PlacementOption):
            options.append(verdict)
            continue
        # What VMs may be joined to decides on what may be fixed: machines that fail alike may have other networks.
        price, same = vm.usd_per_hour.get(first), (id(verdict.failures), machine.gpu_class)
        if same not in nearness:
            nearness[same] = _nearness(verdict.failures, machine, prepared)
        rejections.append((nearness[same], price is None, price or Decimal(0), vm.name, verdict))
    options.sort(
        key=lambda candidate: (
            candidate.usd_per_hour is None,
            key(candidate),
            hourly(candidate),
            candidate.attempt.nodes,
            -generation(candidate.machine),
            candidate.vm.name,
        ),
    )
    _mark_pareto_optimal(options)
    rejections.sort(key=itemgetter(0, 1, 2, 3))
    return options, [rejection for *_, rejection in rejections]


def _nearness(
    failures: tuple[Failure, ...], machine: Machine, prepared: PreparedRequest
) -> tuple[bool, bool, float, int, float]:
    """Return the sort key of what a size fails: whether the request can be changed so that it fits, the missing share.

    Nearest are GPUs that serve the model in fp16 and lack only bf16: the change costs no memory. Of a service neither
    the memory nor the targets are checked on them.
    """
    (failure, *others), job = failures, prepared.job
    lacks_bf16 = not others and (failure.code, failure.constraint) == ("DTYPE_UNSUPPORTED", "dtype")
    needs_fp16 = lacks_bf16 and isinstance(job, ServingJob) and job.dtype == "bf16" and job.level is None
    return (not needs_fp16, not may_be_fixed(failures, machine, prepared), *miss_distance(failures))


def _mark_pareto_optimal(options: Iterable[PlacementOption]) -> None:
    """Set `pareto_optimal` where no other option is better in cost and time at once; None where either is unknown."""
    points = [((cost, option.time), option) for option in options if (cost := option.cost) is not None]
    # By rising cost, an option is optimal if it is faster than all cheaper ones; equals of an optimal one are, too.
    last_optimal = (inf, inf)
    for point, option in sorted(points, key=itemgetter(0)):
        if point[1] < inf:
            faster = point[1] < last_optimal[1]
            option.pareto_optimal = faster or point == last_optimal
            last_optimal = point if faster else last_optimal
