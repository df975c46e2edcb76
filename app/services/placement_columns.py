"""Ranks all sizes for a model on columns: which can run it, in which order, and why the others cannot.

It decides as `app.fit.placement.evaluate.rank` does, but once for all sizes that differ in nothing that decides, and
tells only which sizes are shown: these are then evaluated one by one. A test compares both.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from math import inf, nan
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.candidates import names_sizes
from app.catalog.queries.column_order import Positions
from app.catalog.queries.columns import Numbers, SizeColumns, load_sizes
from app.catalog.queries.machine_columns import MachineColumns, load_machines
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.ranking_columns import UNKNOWN_NANO_USD, ScopePrices, load_name_places, load_prices
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.functions import NANO
from app.db.statements import QueryPlan
from app.fit.formulas.quantities import GIB
from app.fit.placement.checks import CheckContext, find_failures
from app.fit.placement.evaluate import find_late_failures, to_option, to_rejection
from app.fit.placement.layouts import Attempt
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, interrupted_cost
from app.fit.placement.prepare import PreparedRequest
from app.fit.placement.request import Pricing
from app.fit.verdict import Failure, check_eligibility, compute_cost, miss_distance
from app.fit.vm import Vm
from app.services.machines import to_machine
from app.services.resource_columns import Order, RejectionOrder, selected

Codes = NDArray[np.int64]

_KINDS_OF_VM = 8
"""Whether a size has an offer, has one everywhere where it must, and is verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementColumns:
    """The positions of the sizes that fit, best first, and of those that do not, nearest miss first.

    `summary` counts the latter by the code of the largest shortfall; `pareto_optimal` is of all sizes, NaN where it is
    not known.
    """

    keys: Sequence[str]
    options: Order
    rejections: RejectionOrder
    summary: dict[str, int]
    pareto_optimal: Numbers


def rank_on_columns(
    scope: SizeSelection, prepared: PreparedRequest, sort: str, known: CatalogSnapshot, today: date
) -> QueryPlan[PlacementColumns | None]:
    """Rank the sizes of a normalized selection at today's prices; None where the catalog changes meanwhile."""
    sizes = yield from load_sizes(known)
    name_places = yield from load_name_places(known)
    machines = yield from load_machines(known)
    prices = yield from load_prices(known, sizes, scope)
    if not len(sizes.keys) == len(machines.codes) == len(name_places):
        return None
    candidates = selected(scope, sizes, today)
    if not names_sizes(scope):
        gpus = sizes.numbers["gpu_count"]
        candidates &= np.isnan(gpus) | (gpus > 0)
    at = np.flatnonzero(candidates)
    statuses = sizes.status(today)
    kinds = statuses.codes[at].astype(np.int64) * _KINDS_OF_VM
    for flag, column in enumerate((prices.offered, prices.everywhere, sizes.is_flag("verified", True))):
        kinds += column[at].astype(np.int64) << flag
    verdicts = _Verdicts(prepared, machines, [str(status) for status in statuses.values], exact=sort == "headroom")
    verdicts.judge(at, kinds)
    verdicts.judge_prices(prices.nano_usd[at])
    return _Ranked(verdicts, sizes, name_places, prices, at).ranking(sort, prepared.request.pricing)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdict:
    """What holds for some sizes: an option without prices, else how far they miss and the code of the first failure."""

    option: PlacementOption | None = None
    distance: tuple[float, int, float] = (0.0, 0, 0.0)
    code: str = ""


class _Verdicts:
    """The verdicts on all sizes: each one once, and for each size its index.

    With `exact` amounts of memory and disk it is told how much of them is to spare, too, not only whether they suffice.
    """

    def __init__(
        self, prepared: PreparedRequest, machines: MachineColumns, statuses: Sequence[str], *, exact: bool
    ) -> None:
        self._prepared, self._machines, self._statuses, self._exact = prepared, machines, statuses, exact
        budgets = prepared.size_constraints.budget_usd_per_month, prepared.request.constraints.budget_usd_per_job
        self._has_budget = any(budget is not None for budget in budgets)
        self._steps: dict[int, list[float] | None] = {}
        self._attempts: dict[tuple[int, float | None], Attempt | None] = {}
        self.different: list[_Verdict] = []
        self.codes: Codes = np.zeros(0, dtype=np.int64)

    def judge(self, at: Positions, kinds: Codes) -> None:
        """Judge the sizes at some positions, whatever they cost."""
        machines, of_machine = self._machines, self._machines.codes[at]
        memory, disk = machines.memory_gib[at] * GIB, machines.local_disk_gib[at] * GIB
        if not self._exact:
            memory = np.where(memory >= self._enough_memory(of_machine), inf, memory)
            needs_disk = self._prepared.request.constraints.checkpoint_on_local_disk
            disk = np.where(disk >= (self._prepared.job.disk_bytes if needs_disk else -inf), inf, disk)
        first, back = _combine(of_machine, _places(memory), _places(disk))
        different_kinds, kind_of = np.unique(kinds, return_inverse=True)
        reasons: dict[tuple[Failure, ...], int] = {}
        reason_of = [reasons.setdefault(self._find_ineligible(kind), len(reasons)) for kind in different_kinds.tolist()]
        of_reason = np.array(reason_of, dtype=np.int64)[kind_of]
        first_of_each, self.codes = _combine(back, of_reason)
        judged = [self._judge_machine(position) for position in at[first].tolist()]
        ineligible = list(reasons)
        for index, reason in zip(back[first_of_each].tolist(), of_reason[first_of_each].tolist(), strict=True):
            machine, attempt, failures = judged[index]
            self.different.append(self._to_verdict(machine, attempt, [*ineligible[reason], *failures]))

    def judge_prices(self, nano_usd: Codes) -> None:
        """Judge the sizes that fit by what they cost, where a budget is given."""
        if not self._has_budget:
            return
        fit = np.flatnonzero(self.figures(lambda one: one.option is not None, bool))
        first, back = _combine(self.codes[fit], _places(nano_usd[fit]))
        offset = len(self.different)
        for index in fit[first].tolist():
            option = self.different[self.codes[index]].option
            if option is not None:
                self.different.append(self._to_priced(option, int(nano_usd[index])))
        self.codes[fit] = offset + back

    def figures(self, find: Callable[[_Verdict], Any], dtype: type) -> NDArray[Any]:
        """Return a figure of each size by that of its verdict."""
        return np.array([find(one) for one in self.different], dtype=dtype)[self.codes]

    def reasons(self) -> Codes:
        """Return a code of the reason of each size that does not fit."""
        reasons: dict[str, int] = {}
        return self.figures(lambda one: reasons.setdefault(one.code, len(reasons)), np.int64)

    def _enough_memory(self, of_machine: Codes) -> Numbers:
        """Return for each size how much memory is enough, bytes."""
        enough = np.zeros(len(self._machines.machines))
        for code in np.unique(of_machine).tolist():
            enough[code] = self._prepared.job.enough_host_bytes(to_machine(self._machines.machines[code]))
        return enough[of_machine]

    def _judge_machine(self, position: int) -> tuple[Machine, Attempt | None, list[Failure]]:
        """Return the machine of a size, the best attempt on it, and what it fails whatever size it is."""
        columns, prepared = self._machines, self._prepared
        code = int(columns.codes[position])
        amounts = {
            "memory_gib": _or_none(columns.memory_gib[position]),
            "local_disk_gib": _or_none(columns.local_disk_gib[position]),
        }
        machine = to_machine({**columns.machines[code], **amounts})
        attempt = self._find_attempt(code, machine) if machine.gpus else None
        context = CheckContext(prepared=prepared, machine=machine, attempt=attempt)
        return machine, attempt, list(find_failures(context))

    def _find_attempt(self, code: int, machine: Machine) -> Attempt | None:
        """Return the best attempt on a machine, the same for all with the same GPUs and about as much memory."""
        job, limits, memory = self._prepared.job, self._prepared.limits, machine.memory_bytes
        if code not in self._steps:
            self._steps[code] = job.host_steps(machine, limits)
        steps = self._steps[code]
        key = (code, memory if steps is None or memory is None else bisect_right(steps, memory))
        if key not in self._attempts:
            self._attempts[key] = job.find_attempt(machine, limits)
        return self._attempts[key]

    def _find_ineligible(self, kind: int) -> tuple[Failure, ...]:
        status, flags = divmod(kind, _KINDS_OF_VM)
        vm = Vm(
            name="",
            status=self._statuses[status],
            region="somewhere" if flags & 1 else None,
            in_every_region=bool(flags & 2),
            verified=bool(flags & 4),
        )
        return tuple(check_eligibility(vm, self._prepared.size_constraints))

    def _to_verdict(self, machine: Machine, attempt: Attempt | None, failures: list[Failure]) -> _Verdict:
        if failures or attempt is None:
            return _to_miss(failures)
        unpriced: dict[str, Decimal | None] = dict.fromkeys(self._prepared.request.pricing.purchases)
        vm = Vm(name="", status="current", verified=True, usd_per_hour=unpriced)
        option = to_option(vm, machine, attempt, self._prepared)
        late = find_late_failures(option, self._prepared) if not self._has_budget else []
        return _to_miss(late) if late else _Verdict(option=option)

    def _to_priced(self, option: PlacementOption, nano_usd: int) -> _Verdict:
        terms = self._prepared.size_constraints
        usd = None if nano_usd == UNKNOWN_NANO_USD else Decimal(nano_usd).scaleb(-9)
        vm = replace(option.vm, usd_per_hour={terms.purchase: usd})
        costs = {terms.purchase: compute_cost(vm, terms.purchase, option.attempt.nodes, terms)}
        late = find_late_failures(replace(option, costs=costs), self._prepared)
        return _to_miss(late) if late else _Verdict(option=option)


def _to_miss(failures: list[Failure]) -> _Verdict:
    rejection = to_rejection(Vm(name="", status="", verified=True), failures)
    most, count, total, _ = miss_distance(rejection)
    return _Verdict(distance=(most, count, total), code=rejection.failures[0].code)


class _Ranked:
    """The order of sizes by their verdicts and prices."""

    def __init__(
        self, verdicts: _Verdicts, sizes: SizeColumns, name_places: Numbers, prices: ScopePrices, at: Positions
    ) -> None:
        self._verdicts, self._at, self._keys = verdicts, at, sizes.keys
        self._name_places, self._nano = name_places[at], prices.nano_usd[at]

    def ranking(self, sort: str, pricing: Pricing) -> PlacementColumns:
        """Return which sizes fit, and the order of all."""
        fits = self._verdicts.figures(lambda one: one.option is not None, bool)
        fit, rejected = np.flatnonzero(fits), np.flatnonzero(~fits)
        options = self._verdicts.different

        def figure(find: Callable[[PlacementOption], float | None]) -> Numbers:
            each = [nan if one.option is None else find(one.option) for one in options]
            return np.array(each, dtype=np.float64)[self._verdicts.codes[fit]]

        nodes, time = figure(lambda one: one.attempt.nodes), figure(lambda one: one.time)
        unpriced = self._nano[fit] == UNKNOWN_NANO_USD
        usd = np.where(unpriced, 0, self._nano[fit]) * nodes.astype(np.int64) / NANO
        usd[unpriced] = inf
        job = self._job_usd(self._verdicts.codes[fit], usd, pricing)
        keys: dict[str, Callable[[], Numbers]] = {
            "cost_per_hour": lambda: usd,
            "cost_per_job": lambda: job,
            "cost_per_1m_tokens": lambda: usd / figure(lambda one: one.mean_tokens_per_s) / 3600 * 1e6,
            "time": lambda: time,
            "headroom": lambda: figure(lambda one: -one.limiting.percent if one.limiting else 0.0),
            "nodes": lambda: nodes,
        }
        generation = figure(lambda one: one.generation)
        order = [unpriced, keys[sort](), usd, nodes, -generation, self._name_places[fit]]
        optimal = np.full(len(self._keys), nan)
        optimal[self._at[fit]] = _find_pareto_optimal(np.where(np.isfinite(job), job, usd), time)
        return PlacementColumns(
            keys=self._keys,
            options=Order(self._at[fit], order),
            rejections=RejectionOrder(
                self._at[rejected],
                [*self._distances(rejected), self._name_places[rejected]],
                self._verdicts.reasons()[rejected],
            ),
            summary=self._summary(rejected),
            pareto_optimal=optimal,
        )

    def _job_usd(self, codes: Codes, usd: Numbers, pricing: Pricing) -> Numbers:
        """Return the cost of the job of the sizes that fit; infinity where it is not known."""
        if pricing.hours is not None:
            return usd * float(pricing.hours) if pricing.hours else np.where(np.isfinite(usd), 0.0, inf)
        cost = np.full(len(codes), inf)
        order = np.argsort(codes, kind="stable")
        different, starts = np.unique(codes[order], return_index=True)
        for code, those in zip(different.tolist(), np.split(order, starts)[1:], strict=True):
            option = self._verdicts.different[code].option
            hours = option.speed.hours if option is not None and option.speed is not None else None
            if option is not None and hours is not None:
                cost[those] = interrupted_cost(option, pricing.purchase, cast("Any", usd[those]), hours.mid)
        return cost

    def _distances(self, rejected: Positions) -> list[Numbers]:
        distances: Numbers = np.array([one.distance for one in self._verdicts.different], dtype=np.float64)
        return list(distances.reshape(-1, 3)[self._verdicts.codes[rejected]].T)

    def _summary(self, rejected: Positions) -> dict[str, int]:
        counts = np.bincount(self._verdicts.codes[rejected], minlength=len(self._verdicts.different)).tolist()
        summary: Counter[str] = Counter()
        for verdict, count in zip(self._verdicts.different, counts, strict=True):
            if count:
                summary[verdict.code] += count
        return dict(sorted(summary.items()))


def _find_pareto_optimal(cost: Numbers, time: Numbers) -> Numbers:
    """Return 1 where no other option is better in cost and time at once, else 0; NaN where either is unknown.

    It decides as `mark_pareto_optimal` does.
    """
    optimal: Numbers = np.full(len(cost), nan)
    known = np.flatnonzero(np.isfinite(cost) & np.isfinite(time))
    if not len(known):
        return optimal
    order = known[np.lexsort((time[known], cost[known]))]
    cost, time = cost[order], time[order]
    fastest_before = np.concatenate([[inf], np.minimum.accumulate(time)[:-1]])
    is_new = np.concatenate([[True], (np.diff(cost) != 0) | (np.diff(time) != 0)])
    optimal[order] = (time < fastest_before)[np.flatnonzero(is_new)[np.cumsum(is_new) - 1]]
    return optimal


def _combine(*columns: Codes) -> tuple[Positions, Codes]:
    """Return where each different combination of codes occurs first, and which of them each row has."""
    combined = columns[0]
    for column in columns[1:]:
        combined = combined * (int(column.max(initial=0)) + 1) + column
    _, first, back = np.unique(combined, return_index=True, return_inverse=True)
    return first, back


def _places(values: NDArray[Any]) -> Codes:
    """Return the place of each value among the different ones."""
    places: Codes = np.unique(values, return_inverse=True)[1]
    return places


def _or_none(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)
