"""Ranks all sizes for given amounts of resources on columns: which fit, in which order, and why the others do not.

It decides as `app.fit.resources.rank_sizes` does, each check once for each different figure instead of for each size,
and tells only which sizes are shown: these are then evaluated one by one. A test compares both.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.catalog.queries.candidates import SELECTION_FILTERS
from app.catalog.queries.codes import Codes as TextCodes
from app.catalog.queries.codes import Mask
from app.catalog.queries.column_filters import COLUMN_FILTERS, ColumnScope
from app.catalog.queries.column_order import Positions
from app.catalog.queries.columns import Numbers, SizeColumns, load_sizes
from app.catalog.queries.filters import active_names
from app.catalog.queries.offer_columns import OfferColumns
from app.catalog.queries.params import FitSearch, SizeSelection
from app.catalog.queries.ranking_columns import (
    UNKNOWN_NANO_USD,
    Distinct,
    ScopePrices,
    load_gpus,
    load_name_places,
    load_numbers,
    load_prices,
)
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import QueryPlan
from app.fit.resources import (
    Quantity,
    ResourceNeeds,
    check_amount,
    check_traits,
    headroom_of,
    nodes_wanted,
    requested_quantities,
)
from app.fit.verdict import Failure, check_eligibility
from app.fit.vm import Vm, is_part_of_gpu
from app.services.misses import Misses, most_nano_usd, share_over, usd_of
from app.services.orders import Codes, Order, RejectionOrder

_COLUMNS = {
    "gpu_memory_gib_on_one_gpu": ("gpu_slice_gib", 1),
    "network_gbps": ("network_mbps", 1000),
}
"""The column of a figure that has another name, and what it is divided by."""
_ANY = Vm(name="", status="current", verified=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRanking:
    """The positions of the sizes that fit, best first, and of those that do not, nearest miss first.

    `summary` counts the latter by the code of the largest shortfall.
    """

    keys: Sequence[str]
    options: Order
    rejections: RejectionOrder
    summary: dict[str, int]


def rank_on_columns(
    search: FitSearch, needs: ResourceNeeds, known: CatalogSnapshot, today: date
) -> QueryPlan[ColumnRanking]:
    """Rank the sizes that a normalized search of today's prices selects; in a thread, as it may load columns."""
    sizes = yield from load_sizes(known)
    name_places = yield from load_name_places(known)
    gpus = yield from load_gpus(known, sizes)
    prices = yield from load_prices(known, sizes, search)
    numbers: dict[str, Distinct] = {}
    for quantity in requested_quantities(needs):
        if quantity.figure != "gpus":
            column, divisor = _COLUMNS.get(quantity.figure, (quantity.figure, 1))
            found = yield from load_numbers(known, sizes, column)
            values = [value / divisor if value is not None and divisor != 1 else value for value in found.values]
            numbers[quantity.figure] = Distinct(values, found.codes)
    columns = _Columns(
        sizes=sizes,
        statuses=sizes.status(today),
        name_places=name_places,
        gpus=gpus,
        prices=prices,
        numbers=numbers,
        at=np.flatnonzero(selected(search, sizes, today)),
    )
    return _Ranked(columns, needs).ranking(search.sort)


def selected(search: SizeSelection, sizes: SizeColumns, today: date) -> Mask:
    """Return which sizes a fit is about, whether they fit or not."""
    count = len(sizes.keys)
    none = OfferColumns(purchase=search.purchase, regions={})
    scope = ColumnScope(sizes=sizes, offers=none, ranks=np.zeros(count), statuses=sizes.status(today), today=today)
    active = active_names(search, SELECTION_FILTERS)
    masks = (COLUMN_FILTERS[name](scope, getattr(search, name)) for name in active if name != "status")
    return reduce(and_, masks, np.ones(count, dtype=bool))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    """What is known of all sizes; those `at` these positions are selected."""

    sizes: SizeColumns
    statuses: TextCodes
    name_places: Numbers
    gpus: Distinct
    prices: ScopePrices
    numbers: Mapping[str, Distinct]
    at: Positions


class _Ranked:
    """The verdicts on some sizes: of each its failures as the share that is missing, and how many VMs it takes."""

    def __init__(self, known: _Columns, needs: ResourceNeeds) -> None:
        self._needs, self._at = needs, known.at
        self._keys, self._name_places = known.sizes.keys, known.name_places[known.at]
        self._columns = {name: Distinct(one.values, one.codes[known.at]) for name, one in known.numbers.items()}
        self._gpus = Distinct(known.gpus.values, known.gpus.codes[known.at])
        self._nano = known.prices.nano_usd[known.at]
        self._misses = Misses(len(self._at))
        self._check_size(known)
        self._check_amounts()

    def _check_size(self, known: _Columns) -> None:
        """Check what does not depend on the number of VMs: status, regions, traits."""
        at, needs = self._at, self._needs
        somewhere = replace(_ANY, region="somewhere")
        one_status = replace(needs, statuses=frozenset({_ANY.status}))  # so that each check finds its own failure
        statuses = [replace(somewhere, status=str(status)) for status in known.statuses.values]
        self._add(known.statuses.codes[at], statuses, _eligible(needs))
        self._add(known.prices.offered[at], [_ANY, somewhere], _eligible(one_status))
        inside = [replace(somewhere, in_every_region=is_in) for is_in in (False, True)]
        self._add(known.prices.everywhere[at], inside, _eligible(one_status))
        verified = [replace(somewhere, verified=is_so) for is_so in (False, True)]
        self._add(known.sizes.is_flag("verified", True)[at], verified, _eligible(one_status))
        for name, wanted in needs.traits.items():
            values, codes = _trait(known.sizes, name)
            only = replace(needs, traits={name: wanted})
            self._add(codes[at], [replace(_ANY, traits={name: value}) for value in values], _has_traits(only))

    def _check_amounts(self) -> None:
        self._wanted = np.ones(len(self._at), dtype=np.int64)
        for quantity in requested_quantities(self._needs):
            vms, codes = self._representatives(quantity)
            self._add(codes, vms, _amount(quantity, self._needs))
            nodes = np.array([nodes_wanted(quantity, vm, self._needs) for vm in vms], dtype=np.int64)
            self._wanted = np.maximum(self._wanted, nodes[codes])

    def _representatives(self, quantity: Quantity) -> tuple[list[Vm], Codes]:
        """Return a VM for each different figure of an amount, and which of them each size is like.

        Amounts on GPUs depend on whether a size has a part of a GPU, too.
        """
        if quantity.figure == "gpus":
            return [replace(_ANY, gpus=gpus) for gpus in self._gpus.values], self._gpus.codes.astype(np.int64)
        column = self._columns[quantity.figure]
        if not quantity.on_gpus:
            return [replace(_ANY, **{quantity.figure: value}) for value in column.values], column.codes.astype(np.int64)
        parts = np.array([is_part_of_gpu(gpus) for gpus in self._gpus.values], dtype=np.int64)
        vms = [
            replace(_ANY, gpus=gpus, **{quantity.figure: value})
            for value in column.values
            for gpus in (Fraction(1), Fraction(1, 2))
        ]
        return vms, 2 * column.codes.astype(np.int64) + parts[self._gpus.codes]

    def _add(self, codes: NDArray[Any], vms: Sequence[Vm], check: Callable[[Vm], Failure | None]) -> None:
        """Check a VM for each code, and keep what the sizes with its code miss."""
        self._misses.add(codes, [() if (failure := check(vm)) is None else (failure,) for vm in vms])

    def ranking(self, sort: str) -> ColumnRanking:
        """Return which sizes fit, and the order of all."""
        nodes = np.minimum(self._wanted, self._needs.max_nodes)
        self._check_budget(~self._misses.rejected(), nodes)
        fit = np.flatnonzero(~self._misses.rejected())
        rejections, summary = self._misses.rank(self._at, self._name_places)
        return ColumnRanking(
            keys=self._keys,
            options=Order(self._at[fit], list(self._option_keys(sort, fit, nodes[fit]))),
            rejections=rejections,
            summary=summary,
        )

    def _check_budget(self, fit: Mask, nodes: Codes) -> None:
        needs, budget = self._needs, self._needs.budget_usd_per_month
        if budget is None:
            return
        unpriced = self._nano == UNKNOWN_NANO_USD
        total = np.where(unpriced, 0, self._nano) * nodes
        over = fit & ~unpriced & (total > most_nano_usd(budget, needs.hours_per_month))
        shares = share_over(usd_of(total[over], needs.hours_per_month), budget)
        self._misses.add_shares("budget_usd_per_month", "BUDGET", over, shares)
        self._misses.add_shares("budget_usd_per_month", "NO_PRICE", fit & unpriced)

    def _option_keys(self, sort: str, fit: Positions, nodes: Codes) -> Iterator[NDArray[Any]]:
        nano = self._nano[fit]
        unpriced = nano == UNKNOWN_NANO_USD
        cost = np.where(unpriced, 0, nano) * nodes
        yield unpriced
        if sort == "headroom":
            yield -self._limiting_percent(fit, nodes)
        elif sort == "waste":
            yield self._waste(fit, nodes)
        elif sort == "nodes":
            yield nodes
        yield cost
        yield nodes
        yield self._name_places[fit]

    def _waste(self, fit: Positions, nodes: Codes) -> Numbers:
        required = self._needs.amounts.get("min_gpu_mem")
        if not required:
            return np.zeros(len(fit))
        column = self._columns["gpu_memory_gib"]
        have = np.array([np.nan if value is None else value for value in column.values], dtype=np.float64)
        waste: Numbers = have[column.codes[fit]] * nodes - float(required)
        return waste

    def _limiting_percent(self, fit: Positions, nodes: Codes) -> Numbers:
        """Return the least headroom of each size, percent; 0 where no amount is required."""
        least: Numbers = np.full(len(fit), np.inf)
        for quantity in requested_quantities(self._needs):
            vms, codes = self._representatives(quantity)
            pairs, back = np.unique(codes[fit] * (self._needs.max_nodes + 1) + nodes, return_inverse=True)
            percents = [
                headroom_of(quantity, vms[code], count, self._needs).percent
                for code, count in (divmod(pair, self._needs.max_nodes + 1) for pair in pairs.tolist())
            ]
            np.minimum(least, np.array(percents, dtype=np.float64)[back], out=least)
        least[np.isinf(least)] = 0.0
        return least


def _trait(sizes: SizeColumns, name: str) -> tuple[Sequence[Any], Codes]:
    """Return the different values of a trait, and which of them each size has."""
    if name in sizes.flags:
        return (None, False, True), sizes.flags[name].astype(np.int64) + 1
    column = sizes.texts[name]
    return column.values, column.codes.astype(np.int64)


def _eligible(needs: ResourceNeeds) -> Callable[[Vm], Failure | None]:
    return lambda vm: next(check_eligibility(vm, needs), None)


def _has_traits(needs: ResourceNeeds) -> Callable[[Vm], Failure | None]:
    return lambda vm: next(check_traits(vm, needs), None)


def _amount(quantity: Quantity, needs: ResourceNeeds) -> Callable[[Vm], Failure | None]:
    return lambda vm: check_amount(quantity, vm, needs)
