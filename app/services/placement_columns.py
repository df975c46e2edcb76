"""Ranks all sizes for a model on columns: which can run it, in which order, and why the others cannot.

It decides as `app.fit.placement.evaluate.rank` does, but once for all sizes that differ in nothing that decides, and
tells only which sizes are shown: these are then evaluated one by one. A test compares both.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import lru_cache, partial
from math import inf, nan, nextafter
from typing import Any, TypeVar, cast

import numpy as np

from app.catalog.queries.candidates import names_sizes
from app.catalog.queries.codes import Codes as TextCodes
from app.catalog.queries.codes import Mask
from app.catalog.queries.column_order import Positions
from app.catalog.queries.columns import Numbers, SizeColumns, load_sizes
from app.catalog.queries.machine_columns import MachineColumns, load_machines
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.ranking_columns import UNKNOWN_NANO_USD, Distinct, ScopePrices, load_name_places, load_prices
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.functions import NANO
from app.db.statements import QueryPlan
from app.fit.formulas.quantities import GIB
from app.fit.placement.checks import check_local_disk, check_memory
from app.fit.placement.evaluate import Placed, find_time_failures, place, to_option
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption, interrupted_cost, to_headroom
from app.fit.placement.prepare import PreparedRequest
from app.fit.verdict import Failure, check_eligibility
from app.fit.vm import Vm
from app.services.machines import to_machine
from app.services.misses import Misses, most_nano_usd, share_over, usd_of
from app.services.orders import Codes, Order, RejectionOrder
from app.services.resource_columns import selected

T = TypeVar("T")
HostNeeds = Sequence[float | None]
"""What each placement needs of a resource of a VM, bytes; None is not checked."""
HostCheck = Callable[[float, float | None], Failure | None]

BuildMachine = Callable[[int, float | None], Machine]
"""Builds one of the machines by its code and the memory of its VM, GiB."""

MAX_MACHINES = 1_000
"""So many machines are kept: 1 MB."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What is known of all sizes; those `at` these positions are candidates."""

    sizes: SizeColumns
    statuses: TextCodes
    name_places: Numbers
    machines: MachineColumns
    build_machine: BuildMachine
    prices: ScopePrices
    at: Positions


def rank_on_columns(
    scope: SizeSelection, prepared: PreparedRequest, sort: str, known: CatalogSnapshot, today: date
) -> QueryPlan[PlacementColumns | None]:
    """Rank the sizes of a normalized selection at today's prices; None where the catalog changes meanwhile."""
    sizes = yield from load_sizes(known)
    name_places = yield from load_name_places(known)
    machines = yield from load_machines(known)
    build_machine = yield from _load_builder(known, machines)
    prices = yield from load_prices(known, sizes, scope)
    if not len(sizes.keys) == len(machines.codes) == len(name_places):
        return None
    candidates = selected(scope, sizes, today)
    if not names_sizes(scope):
        gpus = sizes.numbers["gpu_count"]
        candidates &= np.isnan(gpus) | (gpus > 0)
    columns = _Columns(
        sizes=sizes,
        statuses=sizes.status(today),
        name_places=name_places,
        machines=machines,
        build_machine=build_machine,
        prices=prices,
        at=np.flatnonzero(candidates),
    )
    return _Ranked(columns, prepared).ranking(sort)


def _load_builder(known: CatalogSnapshot, machines: MachineColumns) -> QueryPlan[BuildMachine]:
    """Return what builds the machines of a revision, each once, as every request places the same ones."""

    def make() -> QueryPlan[BuildMachine]:
        yield from ()  # a plan that reads nothing

        @lru_cache(maxsize=MAX_MACHINES)
        def build(code: int, memory_gib: float | None) -> Machine:
            return to_machine({**machines.machines[code], "memory_gib": memory_gib})

        return build

    return (yield from known.keep("built machines", make))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placement:
    """A job on the GPUs of some sizes, whatever else they have: an option without prices, or what it fails.

    `late` is what the option fails by time. `host_bytes` and `disk_bytes` are what a VM needs; None is not checked.
    """

    option: PlacementOption | None
    failures: tuple[Failure, ...]
    late: tuple[Failure, ...]
    host_bytes: float | None
    disk_bytes: float | None


class _Placer:
    """Places a job on all sizes: once on all that have the same GPUs, and memory with which nothing else is chosen."""

    def __init__(self, prepared: PreparedRequest, machines: MachineColumns, build: BuildMachine) -> None:
        self._prepared, self._machines, self._build = prepared, machines, build
        unpriced: dict[str, Decimal | None] = dict.fromkeys(prepared.request.pricing.purchases)
        self._vm = Vm(name="", status="current", verified=True, usd_per_hour=unpriced)
        self.different: list[_Placement] = []

    def place(self, at: Positions) -> Codes:
        """Return the index of the placement of each size at some positions."""
        amounts = self._machines.memory_gib
        pairs, pair_of = _pairs(self._machines.codes[at], amounts.codes[at], len(amounts.values))
        indexes: list[int] = []
        last, first_other = -1, 0.0
        for code, amount in pairs:  # the amounts of a machine ascend
            gib = amounts.values[amount]
            if code != last or gib is None or gib * GIB >= first_other:
                machine = self._build(code, gib)
                placed = place(machine, self._prepared)
                self.different.append(self._placement(machine, placed.found))
                last, first_other = code, placed.next_bytes
            indexes.append(len(self.different) - 1)
        return np.array(indexes, dtype=np.int64)[pair_of]

    def _placement(self, machine: Machine, placed: Placed) -> _Placement:
        prepared, attempt, blocked = self._prepared, placed.attempt, placed.blocked
        checks_disk = prepared.request.constraints.checkpoint_on_local_disk
        option = None
        if not placed.failures and attempt is not None:
            option = to_option(self._vm, machine, placed, prepared)
        return _Placement(
            option=option,
            failures=placed.failures,
            late=tuple(find_time_failures(option, prepared)) if option is not None else (),
            host_bytes=prepared.job.host_bytes(machine, attempt) if attempt is not None and not blocked else None,
            disk_bytes=prepared.job.disk_bytes if checks_disk and not blocked else None,
        )


class _Ranked:
    """The order of the sizes at some positions by what a job needs of them and what they cost."""

    def __init__(self, columns: _Columns, prepared: PreparedRequest) -> None:
        self._columns, self._prepared, self._at = columns, prepared, columns.at
        self._nano = columns.prices.nano_usd[columns.at]
        self._unpriced = self._nano == UNKNOWN_NANO_USD
        placer = _Placer(prepared, columns.machines, columns.build_machine)
        self._placement_of = placer.place(columns.at)
        self._placements = placer.different
        self._misses = Misses(len(columns.at))
        self._check_size()
        self._check_host()
        fit = ~self._misses.rejected()
        nodes = self._figure(lambda one: one.attempt.nodes)
        self._nano_of_all = np.where(fit & ~self._unpriced, self._nano, 0) * np.where(fit, nodes, 0).astype(np.int64)
        self._usd = self._nano_of_all / NANO
        self._usd[self._unpriced] = inf
        self._job_usd = self._cost_of_job(fit)
        self._check_time_and_budget(fit)

    def _check_size(self) -> None:
        """Check status, regions, and everything about GPUs."""
        sizes, prices, at = self._columns.sizes, self._columns.prices, self._at
        statuses = self._columns.statuses
        kinds = statuses.codes[at].astype(np.int64) * _KINDS_OF_VM
        for flag, column in enumerate((prices.offered, prices.everywhere, sizes.is_flag("verified", True))):
            kinds += column[at].astype(np.int64) << flag
        different, kind_of = np.unique(kinds, return_inverse=True)
        self._misses.add(kind_of, [self._find_ineligible(kind) for kind in different.tolist()])
        self._misses.add(self._placement_of, [one.failures for one in self._placements])

    def _find_ineligible(self, kind: int) -> list[Failure]:
        status, flags = divmod(kind, _KINDS_OF_VM)
        vm = Vm(
            name="",
            status=str(self._columns.statuses.values[status]),
            region="somewhere" if flags & 1 else None,
            in_every_region=bool(flags & 2),
            verified=bool(flags & 4),
        )
        return list(check_eligibility(vm, self._prepared.size_constraints))

    def _check_host(self) -> None:
        """Check memory and local disk, each pair of what is needed and what there is once."""
        checks: tuple[tuple[HostNeeds, Distinct, HostCheck], ...] = (
            ([one.host_bytes for one in self._placements], self._columns.machines.memory_gib, check_memory),
            ([one.disk_bytes for one in self._placements], self._columns.machines.local_disk_gib, check_local_disk),
        )
        for needed, amounts, check in checks:
            found, codes = self._of_each(needed, amounts, check)
            self._misses.add(codes, [() if failure is None else (failure,) for failure in found])

    def _of_each(
        self, needed: HostNeeds, amounts: Distinct, find: Callable[[float, float | None], T | None]
    ) -> tuple[list[T | None], Codes]:
        """Find something for each pair of what is needed and an amount in GiB, and return which pair each size has.

        It is None where nothing is needed.
        """
        places: dict[float | None, int] = {}
        place_of = np.array([places.setdefault(one, len(places)) for one in needed], dtype=np.int64)
        pairs, pair_of = _pairs(place_of[self._placement_of], amounts.codes[self._at], len(amounts.values))
        different = list(places)
        available = [None if gib is None else gib * GIB for gib in amounts.values]
        needed_and_available = ((different[first], available[second]) for first, second in pairs)
        return [None if need is None else find(need, amount) for need, amount in needed_and_available], pair_of

    def _check_time_and_budget(self, fit: Mask) -> None:
        """Check what the sizes fail that fit otherwise."""
        late = [*(one.late for one in self._placements), ()]
        self._misses.add(np.where(fit, self._placement_of, len(self._placements)), late)
        terms, of_job = self._prepared.size_constraints, self._prepared.request.constraints.budget_usd_per_job
        unpriced, priced = fit & self._unpriced, fit & ~self._unpriced
        if terms.budget_usd_per_month is not None:
            over = priced & (self._nano_of_all > most_nano_usd(terms.budget_usd_per_month, terms.hours_per_month))
            usd = usd_of(self._nano_of_all[over], terms.hours_per_month)
            self._misses.add_shares("budget_usd_per_month", "BUDGET", over, share_over(usd, terms.budget_usd_per_month))
            self._misses.add_shares("budget_usd_per_month", "NO_PRICE", unpriced)
        if of_job is not None:
            known = np.isfinite(self._job_usd)
            over = priced & known & (self._job_usd > _greatest_within(of_job))
            self._misses.add_shares("budget_usd_per_job", "BUDGET", over, share_over(self._job_usd[over], of_job))
            self._misses.add_shares("budget_usd_per_job", "NO_PRICE", unpriced)
            self._misses.add_shares("budget_usd_per_job", "TIME", priced & ~known)

    def _cost_of_job(self, fit: Mask) -> Numbers:
        """Return the cost of the job on the sizes that fit; infinity where it is not known."""
        pricing = self._prepared.request.pricing
        if pricing.hours is not None:
            return np.where(self._unpriced, inf, usd_of(self._nano_of_all, pricing.hours))
        cost: Numbers = np.full(len(self._at), inf)
        codes = np.where(fit, self._placement_of, -1)
        order = np.argsort(codes, kind="stable")
        different, starts = np.unique(codes[order], return_index=True)
        for code, those in zip(different.tolist(), np.split(order, starts)[1:], strict=True):
            option = self._placements[code].option if code >= 0 else None
            hours = option.speed.hours if option is not None and option.speed is not None else None
            if option is not None and hours is not None:
                cost[those] = interrupted_cost(option, pricing.purchase, cast("Any", self._usd[those]), hours.mid)
        return cost

    def ranking(self, sort: str) -> PlacementColumns:
        """Return which sizes fit, and the order of all."""
        fit = np.flatnonzero(~self._misses.rejected())
        usd, job, time = self._usd[fit], self._job_usd[fit], self._figure(lambda one: one.time)[fit]
        nodes = self._figure(lambda one: one.attempt.nodes)[fit]
        keys: dict[str, Callable[[], Numbers]] = {
            "cost_per_hour": lambda: usd,
            "cost_per_job": lambda: job,
            "cost_per_1m_tokens": lambda: usd / self._figure(lambda one: one.mean_tokens_per_s)[fit] / 3600 * 1e6,
            "time": lambda: time,
            "headroom": lambda: -self._limiting_percent()[fit],
            "nodes": lambda: nodes,
        }
        name_places = self._columns.name_places[self._at]
        generation = self._figure(lambda one: one.generation)[fit]
        order = [self._unpriced[fit], keys[sort](), usd, nodes, -generation, name_places[fit]]
        optimal = np.full(len(self._columns.sizes.keys), nan)
        optimal[self._at[fit]] = _find_pareto_optimal(np.where(np.isfinite(job), job, usd), time)
        rejections, summary = self._misses.rank(self._at, name_places)
        return PlacementColumns(
            keys=self._columns.sizes.keys,
            options=Order(self._at[fit], order),
            rejections=rejections,
            summary=summary,
            pareto_optimal=optimal,
        )

    def _figure(self, find: Callable[[PlacementOption], float | None]) -> Numbers:
        """Return a figure of each size by that of its option, NaN where there is none."""
        each = [nan if one.option is None else find(one.option) for one in self._placements]
        return np.array(each, dtype=np.float64)[self._placement_of]

    def _limiting_percent(self) -> Numbers:
        """Return the least headroom of each size, percent; 0 where none is measured."""
        least = self._figure(lambda one: _percent("gpu_memory", one.attempt.required_bytes, one.attempt.budget_bytes))
        machines, disk_bytes = self._columns.machines, self._prepared.job.disk_bytes
        needs: tuple[tuple[str, HostNeeds, Distinct], ...] = (
            ("memory", [one.host_bytes for one in self._placements], machines.memory_gib),
            ("local_disk", [disk_bytes] * len(self._placements), machines.local_disk_gib),
        )
        for name, needed, amounts in needs:
            found, codes = self._of_each(needed, amounts, partial(_percent, name))
            least = np.minimum(least, np.array([inf if one is None else one for one in found])[codes])
        least[np.isinf(least)] = 0.0
        return least


def _percent(name: str, required: float, available: float | None) -> float:
    """Return the headroom of a resource, percent; infinity where it is not measured."""
    headroom = to_headroom(name, required, available)
    return inf if headroom is None else headroom.percent


def _pairs(first: Codes, second: Codes, count: int) -> tuple[list[tuple[int, int]], Codes]:
    """Return the different pairs of codes, ascending, and which of them each row has; the second are below `count`."""
    combined = first * count + second
    occurs = np.bincount(combined) > 0
    places: Codes = np.cumsum(occurs) - 1
    return [divmod(pair, count) for pair in np.flatnonzero(occurs).tolist()], places[combined]


def _greatest_within(budget: Decimal) -> float:
    """Return the greatest float that is not over a budget."""
    nearest = float(budget)
    return nearest if Decimal(nearest) <= budget else nextafter(nearest, -inf)


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
