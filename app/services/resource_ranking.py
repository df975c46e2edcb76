"""Ranks all sizes for given amounts of resources: which fit, in which order, and why the others do not.

A verdict depends on few figures of a size, so it is found once for all sizes that have the same ones. What is ranked
are the places of sizes: only those that are shown are read, and evaluated with their prices.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from app.catalog.queries.candidates import SELECTION_FILTERS
from app.catalog.queries.size_sets import IS_SET, UNKNOWN, SizeQuestion
from app.db.functions import NANO
from app.fit.resources import (
    ResourceNeeds,
    find_failures,
    headroom_of,
    nodes_needed,
    reject,
    requested_quantities,
    unused_gpu_memory_gib,
)
from app.fit.verdict import NEAREST_MISSES, Failure, check_budget, miss_distance
from app.fit.vm import Vm

_COLUMNS = {"gpu_memory_gib_on_one_gpu": "gpu_slice_gib", "network_gbps": "network_mbps"}
"""Columns of figures whose names differ."""


@dataclass(frozen=True, slots=True)
class RankedSizes:
    """The places of the sizes that fit, best first, and of those that do not, nearest miss first.

    `codes` gives the code of the largest shortfall of each rejected size.
    """

    options: Sequence[int]
    rejections: Sequence[int]
    codes: Sequence[str]

    @property
    def summary(self) -> Mapping[str, int]:
        """The number of rejected sizes by code; each counts once, for its largest shortfall."""
        return dict(sorted(Counter(self.codes).items()))

    def nearest(self, most: int, *, most_of_code: int | None = None) -> Sequence[int]:
        """Return the nearest misses; with `most_of_code`, at most that many of each code besides the NEAREST_MISSES."""
        if most_of_code is None:
            return self.rejections[:most]
        before: Counter[str] = Counter()
        chosen: list[int] = []
        for number, (place, code) in enumerate(zip(self.rejections, self.codes, strict=True)):
            if number < NEAREST_MISSES or before[code] < most_of_code:
                chosen.append(place)
            before[code] += 1
        return chosen[:most]


def rank_sizes(question: SizeQuestion, needs: ResourceNeeds, sort: str) -> RankedSizes:
    """Rank the sizes that a search selects: by a sort, then cost, then fewer VMs, then name."""
    names, prices = question.values("name"), question.prices()
    figures = _deciding_figures(question, needs)
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    of_places = list(zip(*figures.values(), strict=True))
    for place in _selected(question):
        alike[of_places[place]].append(place)
    ranking = _Ranking(needs, sort, names, prices.usd)
    for found, places in alike.items():
        ranking.add(_to_vm(dict(zip(figures, found, strict=True)), needs), places)
    return ranking.ranked()


class _Ranking:
    """Collects the verdicts on sizes."""

    def __init__(self, needs: ResourceNeeds, sort: str, names: Sequence[str], usd: Sequence[float]) -> None:
        self._needs, self._sort, self._names, self._usd = needs, sort, names, usd
        self._options: list[tuple[Any, ...]] = []
        self._rejections: list[tuple[Any, ...]] = []

    def add(self, vm: Vm, places: Sequence[int]) -> None:
        """Add the sizes at some places, which have the figures of a VM."""
        failures = find_failures(vm, self._needs)
        if failures:
            self._reject(vm, failures, places)
            return
        nodes = nodes_needed(vm, self._needs)
        order = self._order_of(vm, nodes)
        for place in places:
            usd = self._usd[place]
            nano = None if usd == UNKNOWN else round(usd * NANO) * nodes  # a price has nine decimals
            if self._needs.budget_usd_per_month is not None:
                month = None if nano is None else Decimal(nano).scaleb(-9) * self._needs.hours_per_month
                over_budget = list(check_budget(month, self._needs))
                if over_budget:
                    self._reject(vm, over_budget, [place])
                    continue
            cost = nano or 0
            by = cost if order is None else order
            self._options.append((nano is None, by, cost, nodes, self._names[place], place))

    def ranked(self) -> RankedSizes:
        """Return the order of all."""
        self._options.sort()
        self._rejections.sort()
        return RankedSizes(
            options=[option[-1] for option in self._options],
            rejections=[rejection[-1] for rejection in self._rejections],
            codes=[rejection[-2] for rejection in self._rejections],
        )

    def _reject(self, vm: Vm, failures: Sequence[Failure], places: Sequence[int]) -> None:
        rejection = reject(vm, failures)
        share, count, total, _ = miss_distance(rejection)
        code = rejection.failures[0].code
        self._rejections += [(share, count, total, self._names[place], code, place) for place in places]

    def _order_of(self, vm: Vm, nodes: int) -> float | None:
        """Return the figure that options are sorted by; None where it is their cost."""
        needs = self._needs
        if self._sort == "headroom":
            headrooms = (headroom_of(quantity, vm, nodes, needs) for quantity in requested_quantities(needs))
            return -min((headroom.percent for headroom in headrooms), default=0.0)
        if self._sort == "waste":
            return unused_gpu_memory_gib(vm, nodes, needs) or 0.0
        return nodes if self._sort == "nodes" else None


def _selected(question: SizeQuestion) -> Sequence[int]:
    """Find the sizes that a fit is about, whether they fit or not."""
    selected = question.sets.all
    for name in question.names:
        if name in SELECTION_FILTERS:
            selected &= question.meets(name)
    return list(question.sets.places_in(selected))


def _deciding_figures(question: SizeQuestion, needs: ResourceNeeds) -> Mapping[str, Sequence[Any]]:
    """Return the figures that a verdict depends on, by place, under the fields of a VM and the names of traits."""
    sets, everywhere = question.sets, question.sets.all
    if "available_in" in question.names:
        everywhere = question.meets("available_in")
    offered = question.offered()
    figures: dict[str, Sequence[Any]] = {
        "status": question.values("status"),
        "verified": question.values("verified"),
        "offered": sets.flags(offered),
        "in_every_region": sets.flags(everywhere),
        "gpus": question.gpu_counts(),
    }
    for quantity in requested_quantities(needs):
        if quantity.figure not in figures:
            column = _COLUMNS.get(quantity.figure, quantity.figure)
            figures[quantity.figure] = question.values(column)
    for name in needs.traits:
        figures[name] = question.values(name)
    return figures


def _to_vm(found: Mapping[str, Any], needs: ResourceNeeds) -> Vm:
    """Return a VM that has the figures a verdict depends on."""
    amounts = {quantity.figure: found[quantity.figure] for quantity in requested_quantities(needs)}
    if amounts.get("network_gbps") is not None:
        amounts["network_gbps"] /= 1000
    return Vm(
        name="",
        status=found["status"],
        verified=bool(found["verified"]),
        region="offered" if found["offered"] == IS_SET else None,
        in_every_region=found["in_every_region"] == IS_SET,
        traits={name: found[name] for name in needs.traits},
        **{"gpus": found["gpus"]} | amounts,
    )
