"""Checks the prices of a vendor's retail lists against each other: which of them are the price of something else.

Price lists are drawn from meters that differ in a text only, so that a list of Linux prices may have the meter of
Windows, or that of Cloud Services, which includes Windows. Such a price is refused, with the rule and the evidence; the
offer keeps the newest price of another day, or has none that is known. All prices of an offer are judged together,
whatever the order in which they were ingested.

Only what a vendor publishes for everybody is checked. A price list of one's own may well have Linux equal to Windows:
with the Azure Hybrid Benefit it is.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from itertools import pairwise
from operator import attrgetter
from statistics import median
from typing import Literal, NamedTuple

from app.catalog.column_types import to_usd_text

Rule = Literal["equals_windows", "cloud_services", "flapping", "unlike_parent"]

REFUSAL_REASONS: Mapping[str, str] = {
    "equals_windows": "which are the Windows price",
    "cloud_services": "which are the price of Cloud Services",
    "flapping": "which go back and forth, unlike another list",
    "unlike_parent": "which are not the price of the size that a constrained one is of",
}
"""What each rule refuses, in words."""

FLAPPING_SHARE = Fraction(1, 4)
"""A list whose price of an offer goes up by this share, or more, and back again is doubtful."""
PREMIUM_SHARE = Fraction(1, 50)
"""Lists round prices to three digits or so: a difference within this share of a Windows premium is one."""
SIBLING_SHARE = Fraction(1, 100)
"""Sizes of a series cost the same in proportion in every region, up to this share."""
MIN_SIBLINGS = 3
COMMITMENT_SHARE = Fraction(1, 100)
"""Reservations and savings plans of one machine differ by up to 0.02 % in the vendor's own meters."""

UNUSUAL_BELOW, UNUSUAL_ABOVE = Fraction(2, 5), Fraction(5, 2)
"""A price below or above so many medians of its size over regions is unusual."""
MIN_REGIONS = 5
"""Of fewer regions no median says what is usual."""


class ListedPrice(NamedTuple):
    """A run of a retail list: nano-dollars an hour, from the first to the last day on which the list has it."""

    size_key: str
    region: str
    os: str
    purchase: str
    valid_from: date
    source_id: str
    known_from: date
    seen_until: date
    nano_usd: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """A price that is refused: the rule, and what it was compared with."""

    price: ListedPrice
    rule: Rule
    evidence: str


Machine = tuple[str, str]
"""The size that constrained sizes are of, or the size itself, and a region: all of these cost the same there."""


def check_prices(
    prices: Iterable[ListedPrice], *, parents: Mapping[str, str], series: Mapping[str, str]
) -> list[Refusal]:
    """Return the prices that are refused, in the order of the rules.

    `parents` are the sizes that constrained sizes are of, `series` those of the sizes whose meters of Cloud Services
    stand among those of Linux. Spot prices are not checked: they may be anything. Reservations cost the same with
    Windows, so that only constrained sizes are compared with their parents.
    """
    check = _Check(parents, series)
    offers: dict[tuple[str, ...], list[ListedPrice]] = defaultdict(list)
    for price in sorted(prices):  # of several prices that are evidence it is the first, in whatever order they come
        if price.purchase == "on_demand":
            check.add(price)
        if price.purchase != "spot" and price.os == "linux":
            offers[price.size_key, price.region, price.purchase].append(price)
    check.refuse_windows_prices()
    check.refuse_cloud_services_prices()
    for (*_, purchase), of_offer in offers.items():
        if purchase == "on_demand" and len(of_offer) > 2:  # noqa: PLR2004  # A, B, A
            check.refuse_flapping(of_offer)
    for (size, region, purchase), of_offer in offers.items():
        if size in parents:
            check.refuse_unlike_parent(of_offer, offers.get((parents[size], region, purchase), ()))
    return list(check.refusals.values())


class _Check:
    """The on-demand prices of machines by operating system, and what is refused of them so far."""

    def __init__(self, parents: Mapping[str, str], series: Mapping[str, str]) -> None:
        self._parents, self._series = parents, series
        self._linux: dict[Machine, list[ListedPrice]] = defaultdict(list)
        self._windows: dict[Machine, dict[int, ListedPrice]] = defaultdict(dict)
        self.refusals: dict[ListedPrice, Refusal] = {}

    def add(self, price: ListedPrice) -> None:
        machine = self._parents.get(price.size_key, price.size_key), price.region
        if price.os == "linux":
            self._linux[machine].append(price)
        else:
            self._windows[machine].setdefault(price.nano_usd, price)

    def refuse_windows_prices(self) -> None:
        """Refuse Linux prices that are the Windows price of the machine, by any list and on any day."""
        for machine, windows in self._windows.items():
            for price in self._linux.get(machine, ()):
                if same := windows.get(price.nano_usd):
                    self._refuse(price, "equals_windows", f"the Windows price by {_place(same)}")

    def refuse_cloud_services_prices(self) -> None:
        """Refuse prices that are above the Linux price by what Windows costs, in series with meters of Cloud Services.

        What Windows costs is the same in all regions. It is known where a list has both prices, and from lists that go
        back and forth between the two meters.
        """
        mixed = {machine: prices for machine, prices in self._linux.items() if machine[0] in self._series}
        premiums = self._find_premiums(mixed)
        for (size, _), prices in mixed.items():
            lower: list[ListedPrice] = []
            for price in self._accepted(sorted(prices, key=attrgetter("nano_usd", "valid_from"))):
                base = next((one for one in lower if _is_premium(price.nano_usd - one.nano_usd, premiums[size])), None)
                if base is None:
                    lower.append(price)
                else:
                    self._refuse_premium(price, f"the Linux price {to_usd_text(base.nano_usd)} by {_place(base)}", base)
        self._refuse_above_siblings(mixed, premiums)

    def _find_premiums(self, mixed: Mapping[Machine, Sequence[ListedPrice]]) -> Mapping[str, set[int]]:
        """Return what Windows costs more than Linux, nano-dollars an hour, by the size of a machine."""
        premiums: dict[str, set[int]] = defaultdict(set)
        for machine, prices in mixed.items():
            linux = {price.nano_usd for price in self._accepted(prices)}
            windows = self._windows.get(machine, ())
            premiums[machine[0]] |= {more - less for more in windows for less in linux if more > less}
            for of_list in _by_list(prices):
                premiums[machine[0]] |= {abs(there - here) for here, there in _returns(of_list)}
        return premiums

    def _refuse_above_siblings(
        self, mixed: Mapping[Machine, Sequence[ListedPrice]], premiums: Mapping[str, set[int]]
    ) -> None:
        """Refuse prices that are above those of the other sizes of the series, in proportion, by what Windows costs.

        It is for machines that a list never has at the Linux price.
        """
        usual: dict[str, list[int]] = defaultdict(list)
        of_series: dict[tuple[str, str, str], list[ListedPrice]] = defaultdict(list)
        for (size, region), prices in mixed.items():
            accepted = [*self._accepted(prices)]
            if accepted:
                usual[size].append(min(price.nano_usd for price in accepted))
            for price in accepted:
                if price.size_key == size:
                    of_series[self._series[size], region, price.source_id].append(price)
        middle = {size: Fraction(median(each)) for size, each in usual.items()}
        for (series, region, _), prices in of_series.items():
            for price in prices:
                others = [one for one in prices if one.size_key != price.size_key and _overlap(one, price)]
                if len(others) < MIN_SIBLINGS:
                    continue
                factor = Fraction(median(one.nano_usd / middle[one.size_key] for one in others))
                expected = round(factor * middle[price.size_key])
                if price.nano_usd <= expected * (1 + 2 * SIBLING_SHARE):
                    continue
                noise = SIBLING_SHARE * expected
                if any(abs(price.nano_usd - expected - one) <= noise for one in premiums[price.size_key]):
                    what = f"{to_usd_text(expected)}, which the other sizes of {series} in {region} let expect"
                    self._refuse_premium(price, what, None, expected)

    def _refuse_premium(self, price: ListedPrice, what: str, base: ListedPrice | None, expected: int = 0) -> None:
        premium = to_usd_text(price.nano_usd - (base.nano_usd if base else expected))
        self._refuse(price, "cloud_services", f"{premium} above {what}: what Cloud Services cost more, with Windows")

    def refuse_flapping(self, prices: Sequence[ListedPrice]) -> None:
        """Refuse what a list has for an offer if it goes back and forth, and another list has another price."""
        accepted = [*self._accepted(prices)]
        lists = [*_by_list(accepted)]
        if len(lists) == 1:
            return
        for of_list in lists:
            back_and_forth = [
                (here, there)
                for here, there in _returns(of_list)
                if abs(there - here) >= FLAPPING_SHARE * min(here, there)
            ]
            others = [price for price in accepted if price.source_id != of_list[0].source_id]
            by_others = {price.nano_usd: price for price in others}
            if not back_and_forth or not others:
                continue
            here, there = map(to_usd_text, back_and_forth[0])
            other = max(others, key=attrgetter("seen_until", "source_id"))
            for price in of_list:
                if price.nano_usd in {nano for pair in back_and_forth for nano in pair} - by_others.keys():
                    evidence = f"the list goes from {here} to {there} and back; {to_usd_text(other.nano_usd)} by"
                    self._refuse(price, "flapping", f"{evidence} {_place(other)}")

    def refuse_unlike_parent(self, prices: Iterable[ListedPrice], of_parent: Iterable[ListedPrice]) -> None:
        """Refuse prices of a constrained size that are not its parent's in the same list, or on demand in any."""
        parent = [*self._accepted(of_parent)]
        for price in self._accepted(prices):
            same_list = [one for one in parent if one.source_id == price.source_id and _overlap(one, price)]
            if same_list:
                other = next((one for one in same_list if not _is_same(one, price)), None)
            else:
                others = parent if price.purchase == "on_demand" else []
                is_known = any(_is_same(one, price) for one in others)
                other = None if is_known else max(others, key=attrgetter("seen_until", "source_id"), default=None)
            if other:
                evidence = f"{other.size_key}, of which it is, costs {to_usd_text(other.nano_usd)} by {_place(other)}"
                self._refuse(price, "unlike_parent", evidence)

    def _accepted(self, prices: Iterable[ListedPrice]) -> Iterator[ListedPrice]:
        return (price for price in prices if price not in self.refusals)

    def _refuse(self, price: ListedPrice, rule: Rule, evidence: str) -> None:
        self.refusals[price] = Refusal(price, rule, evidence)


def _by_list(prices: Iterable[ListedPrice]) -> Iterator[list[ListedPrice]]:
    """Yield the prices of each size and list, in the order of days."""
    lists: dict[tuple[str, str], list[ListedPrice]] = defaultdict(list)
    for price in prices:
        lists[price.size_key, price.source_id].append(price)
    for of_list in lists.values():
        yield sorted(of_list, key=attrgetter("valid_from", "known_from"))


def _returns(of_list: Sequence[ListedPrice]) -> Iterator[tuple[int, int]]:
    """Yield the prices A and B of each A, B, A, nano-dollars an hour."""
    steps = [(before.nano_usd, after.nano_usd) for before, after in pairwise(of_list)]
    steps = [(before, after) for before, after in steps if before != after]
    for (first, second), (_, third) in pairwise(steps):
        if first == third:
            yield first, second


def _is_premium(difference: int, premiums: Collection[int]) -> bool:
    return any(abs(difference - premium) <= PREMIUM_SHARE * premium for premium in premiums)


def _is_same(one: ListedPrice, other: ListedPrice) -> bool:
    """Return whether two prices are the same: on demand to the last digit, with a commitment as it is rounded."""
    tolerance = 0 if one.purchase == "on_demand" else COMMITMENT_SHARE * one.nano_usd
    return abs(one.nano_usd - other.nano_usd) <= tolerance


def _overlap(one: ListedPrice, other: ListedPrice) -> bool:
    return one.valid_from <= other.seen_until and other.valid_from <= one.seen_until


def _place(price: ListedPrice) -> str:
    return f"{price.source_id}, {price.seen_until}"


def find_unusual(nano_usd: Mapping[str, int]) -> Mapping[str, int]:
    """Return the regions whose price of an offer is unusual, each with the median over all regions, nano-dollars.

    The median of an even number of prices is rounded down to a nano-dollar.
    """
    if len(nano_usd) < MIN_REGIONS:
        return {}
    ordered = sorted(nano_usd.values())
    twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    least, most = UNUSUAL_BELOW * twice / 2, UNUSUAL_ABOVE * twice / 2
    if least <= ordered[0] and ordered[-1] <= most:
        return {}
    return {region: twice // 2 for region, nano in nano_usd.items() if not least <= nano <= most}
