"""From verdicts to an answer: options in order, rejections with the nearest miss first."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from math import inf
from typing import Any

from app.fit.placement.judge import judge
from app.fit.placement.machine import Machine
from app.fit.placement.option import Placed
from app.fit.placement.prepare import Prepared
from app.fit.ranking import Ranking, miss
from app.fit.verdict import Rejection
from app.fit.vm import Vm


def _known(value: float | Decimal | None) -> float:
    return inf if value is None else float(value)


SORTS: dict[str, Callable[[Placed], Any]] = {
    "cost_per_hour": lambda option: _known(option.usd_per_hour),
    "cost_per_job": lambda option: _known(option.usd_per_job),
    "cost_per_1m_tokens": lambda option: _known(option.usd_per_million_tokens),
    "time": lambda option: option.time,
    "headroom": lambda option: -option.limiting.percent if option.limiting else 0.0,
    "nodes": lambda option: option.attempt.nodes,
}
"""What options can be ranked by; an unknown figure comes last."""


def rank(sizes: Iterable[tuple[Vm, Machine]], asked: Prepared, sort: str = "cost_per_hour") -> Ranking[Placed]:
    """Judge every size and put the options in order; those without a price come last.

    Ties: cost an hour, fewer VMs, the newer GPU, the name.
    """
    verdicts = [judge(vm, machine, asked) for vm, machine in sizes]
    key, hourly = SORTS[sort], SORTS["cost_per_hour"]
    options = sorted(
        (verdict for verdict in verdicts if isinstance(verdict, Placed)),
        key=lambda one: (
            one.usd_per_hour is None,
            key(one),
            hourly(one),
            one.attempt.nodes,
            -one.generation,
            one.vm.name,
        ),
    )
    rejections = sorted((verdict for verdict in verdicts if isinstance(verdict, Rejection)), key=miss)
    return Ranking(options=tuple(mark(options)), rejections=tuple(rejections))


def mark(options: list[Placed]) -> list[Placed]:
    """Mark the options that no other beats in cost and time at once; not marked where either is unknown."""
    known = [one for one in options if one.cost is not None and one.time < inf]
    best: dict[str, bool] = {}
    least = (inf, inf)
    for one in sorted(known, key=lambda one: (one.cost or 0.0, one.time)):
        here = (one.cost or 0.0, one.time)
        best[one.vm.name] = one.time < least[1] or here == least
        least = here if one.time < least[1] else least
    return [replace(one, optimal=best.get(one.vm.name)) for one in options]
