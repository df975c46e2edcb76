"""From verdicts to an answer: options in order, rejections counted by reason, the nearest misses."""

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from app.fit.ranking import Ranking, miss
from app.fit.resources.judge import judge_vm
from app.fit.resources.needs import Needs
from app.fit.verdict import Option, Rejection
from app.fit.vm import Vm


def _cost(option: Option, needs: Needs) -> tuple[bool, Decimal]:
    """Sorts by cost an hour; an unknown one comes last."""
    cost = option.costs[needs.purchase].usd_per_hour if needs.purchase in option.costs else None
    return (cost is None, cost if cost is not None else Decimal(0))


def _least_headroom(option: Option, _needs: Needs) -> float:
    return -option.limiting.percent if option.limiting else 0.0


def unused_gpu_memory_gib(option: Option, needs: Needs) -> float | None:
    """GPU memory of all nodes that the job leaves unused, GiB; None where it asks for none, or nobody knows."""
    asked, one = needs.amounts.get("min_gpu_mem"), option.vm.gpu_memory_gib
    return one * option.nodes - asked if asked and one is not None else None


def _waste(option: Option, needs: Needs) -> float:
    return unused_gpu_memory_gib(option, needs) or 0.0


SORTS: dict[str, Callable[[Option, Needs], Any]] = {
    "cost_per_hour": _cost,
    "cost_per_job": _cost,
    "headroom": _least_headroom,
    "waste": _waste,
    "nodes": lambda option, _needs: option.nodes,
}
"""What options can be ranked by; a job's cost is the hour's times the same hours, so their order is one."""


def rank(vms: Iterable[Vm], needs: Needs, sort: str = "cost_per_hour") -> Ranking[Option]:
    """Judge every size and put the options in order: by the sort, then cost, then fewer nodes, then name."""
    verdicts = [judge_vm(vm, needs) for vm in vms]
    key = SORTS[sort]
    options = sorted(
        (verdict for verdict in verdicts if isinstance(verdict, Option)),
        key=lambda option: (
            _cost(option, needs)[0],
            key(option, needs),
            _cost(option, needs),
            option.nodes,
            option.vm.name,
        ),
    )
    rejections = sorted((verdict for verdict in verdicts if isinstance(verdict, Rejection)), key=miss)
    return Ranking(options=tuple(options), rejections=tuple(rejections))
