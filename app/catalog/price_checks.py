"""Checks a vendor's retail prices against each other, and finds those that belong to another meter.

The meters of Linux, Windows and Cloud Services (which includes Windows) differ only in their descriptions, and lists
that are generated from them mix them up. A mismatched price is refused with the rule and the evidence; the offer falls
back to its newest price of another day, or to unknown. All prices of an offer are judged together, so the order of
ingests does not matter.

Only retail lists are checked. In a customer's own price list Linux may well cost the same as Windows, because of the
Azure Hybrid Benefit.
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

from app.catalog.money import to_usd_text

Rule = Literal["equals_windows", "cloud_services", "flapping", "unlike_parent"]

REFUSAL_REASONS: Mapping[str, str] = {
    "equals_windows": "which equal the Windows price",
    "cloud_services": "which are the Cloud Services price",
    "flapping": "which change back and forth where another list does not",
    "unlike_parent": "which differ from the price of the parent size",
}
"""What each rule refuses, in words."""

FLAPPING_SHARE = Fraction(1, 4)
"""A list is doubtful if its price of an offer rises by at least this share and then falls back."""
PREMIUM_SHARE = Fraction(1, 50)
"""Tolerance when matching a price difference to a premium, because lists round to about three digits."""
SIBLING_SHARE = Fraction(1, 100)
"""Tolerance of the price ratios between sizes of a series, which are the same in every region."""
MIN_SIBLINGS = 3
"""How many other sizes of the series it takes to predict a price."""
COMMITMENT_SHARE = Fraction(1, 100)
"""Tolerance for reservations and savings plans: the vendor's own meters differ by up to 0.02 % within a machine."""

UNUSUAL_BELOW, UNUSUAL_ABOVE = Fraction(2, 5), Fraction(5, 2)
"""A price is unusual if it is below or above these multiples of the median over regions."""
MIN_REGIONS = 5
"""The median of fewer regions is not meaningful."""


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
    """A refused price, with the rule and the price it was compared with."""

    price: ListedPrice
    rule: Rule
    evidence: str


Machine = tuple[str, str]
"""The parent of a constrained size, else the size itself, and a region: these all cost the same there."""


def check_prices(
    prices: Iterable[ListedPrice], *, parents: Mapping[str, str], series: Mapping[str, str]
) -> list[Refusal]:
    """Return the prices that are refused, in the order of the rules.

    `parents` maps constrained sizes to their parents; `series` maps sizes that also have Cloud Services meters to their
    series. Spot prices are not checked, because they may be anything. Reservations do not include Windows, so they are
    only compared with those of the parent.
    """
    check = _Check(parents, series)
    offers: dict[tuple[str, ...], list[ListedPrice]] = defaultdict(list)
    for price in sorted(prices):  # so that the evidence does not depend on the order of ingests
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
    """On-demand prices by machine and operating system, and the refusals so far."""

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
        """Refuse Linux prices that equal a Windows price of the machine in any list on any day."""
        for machine, windows in self._windows.items():
            for price in self._linux.get(machine, ()):
                if same := windows.get(price.nano_usd):
                    self._refuse(price, "equals_windows", f"equals the Windows price in {_place(same)}")

    def refuse_cloud_services_prices(self) -> None:
        """Refuse prices that exceed the Linux price by a premium of Cloud Services, in series that have its meters.

        Premiums are the same in all regions. They are learned where lists have both prices, and from lists that change
        back and forth between two meters.
        """
        mixed = {machine: prices for machine, prices in self._linux.items() if machine[0] in self._series}
        premiums = self._find_premiums(mixed)
        for (size, _), prices in mixed.items():
            lower: list[ListedPrice] = []
            for price in self._accepted(sorted(prices, key=attrgetter("nano_usd", "valid_from"))):
                base = next(
                    (other for other in lower if _is_premium(price.nano_usd - other.nano_usd, premiums[size])), None
                )
                if base is None:
                    lower.append(price)
                else:
                    what = f"the Linux price of {to_usd_text(base.nano_usd)} in {_place(base)}"
                    self._refuse_premium(price, what, base.nano_usd)
        self._refuse_above_siblings(mixed, premiums)

    def _find_premiums(self, mixed: Mapping[Machine, Sequence[ListedPrice]]) -> Mapping[str, set[int]]:
        """Return the premiums of the other meters over that of Linux, nano-dollars an hour, by size."""
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
        """Refuse prices that exceed what the other sizes of the series predict by a premium.

        This finds machines whose Linux price is missing from a list altogether.
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
        middle = {size: Fraction(median(figures)) for size, figures in usual.items()}
        for (series, region, _), prices in of_series.items():
            for price in prices:
                others = [other for other in prices if other.size_key != price.size_key and _overlap(other, price)]
                if len(others) < MIN_SIBLINGS:
                    continue
                factor = Fraction(median(other.nano_usd / middle[other.size_key] for other in others))
                expected = round(factor * middle[price.size_key])
                if price.nano_usd <= expected * (1 + 2 * SIBLING_SHARE):
                    continue
                noise = SIBLING_SHARE * expected
                if any(abs(price.nano_usd - expected - premium) <= noise for premium in premiums[price.size_key]):
                    what = f"the {to_usd_text(expected)} predicted by the other sizes of {series} in {region}"
                    self._refuse_premium(price, what, expected)

    def _refuse_premium(self, price: ListedPrice, what: str, base: int) -> None:
        premium = to_usd_text(price.nano_usd - base)
        self._refuse(price, "cloud_services", f"exceeds {what} by {premium}, which separates these meters")

    def refuse_flapping(self, prices: Sequence[ListedPrice]) -> None:
        """Refuse prices of a list that change back and forth where another list has another price."""
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
                    evidence = f"the list goes from {here} to {there} and back; {to_usd_text(other.nano_usd)} in"
                    self._refuse(price, "flapping", f"{evidence} {_place(other)}")

    def refuse_unlike_parent(self, prices: Iterable[ListedPrice], of_parent: Iterable[ListedPrice]) -> None:
        """Refuse prices of a constrained size that differ from the parent's in its list, or on demand in any list."""
        parent = [*self._accepted(of_parent)]
        for price in self._accepted(prices):
            same_list = [listed for listed in parent if listed.source_id == price.source_id and _overlap(listed, price)]
            if same_list:
                other = next((listed for listed in same_list if not _is_same(listed, price)), None)
            else:
                others = parent if price.purchase == "on_demand" else []
                is_known = any(_is_same(listed, price) for listed in others)
                other = None if is_known else max(others, key=attrgetter("seen_until", "source_id"), default=None)
            if other:
                evidence = f"its parent {other.size_key} costs {to_usd_text(other.nano_usd)} in {_place(other)}"
                self._refuse(price, "unlike_parent", evidence)

    def _accepted(self, prices: Iterable[ListedPrice]) -> Iterator[ListedPrice]:
        return (price for price in prices if price not in self.refusals)

    def _refuse(self, price: ListedPrice, rule: Rule, evidence: str) -> None:
        self.refusals[price] = Refusal(price, rule, evidence)


def _by_list(prices: Iterable[ListedPrice]) -> Iterator[list[ListedPrice]]:
    """Yield the prices of each size and list in chronological order."""
    lists: dict[tuple[str, str], list[ListedPrice]] = defaultdict(list)
    for price in prices:
        lists[price.size_key, price.source_id].append(price)
    for of_list in lists.values():
        yield sorted(of_list, key=attrgetter("valid_from", "known_from"))


def _returns(of_list: Sequence[ListedPrice]) -> Iterator[tuple[int, int]]:
    """Yield A and B, nano-dollars an hour, for each sequence of prices A, B, A."""
    steps = [(before.nano_usd, after.nano_usd) for before, after in pairwise(of_list)]
    steps = [(before, after) for before, after in steps if before != after]
    for (first, second), (_, third) in pairwise(steps):
        if first == third:
            yield first, second


def _is_premium(difference: int, premiums: Collection[int]) -> bool:
    return any(abs(difference - premium) <= PREMIUM_SHARE * premium for premium in premiums)


def _is_same(price: ListedPrice, other: ListedPrice) -> bool:
    """Return whether prices are equal: exactly on demand, within the rounding of commitments otherwise."""
    tolerance = 0 if price.purchase == "on_demand" else COMMITMENT_SHARE * price.nano_usd
    return abs(price.nano_usd - other.nano_usd) <= tolerance


def _overlap(price: ListedPrice, other: ListedPrice) -> bool:
    return price.valid_from <= other.seen_until and other.valid_from <= price.seen_until


def _place(price: ListedPrice) -> str:
    return f"{price.source_id}, {price.seen_until}"


def find_unusual(nano_usd: Mapping[str, int]) -> Mapping[str, int]:
    """Return the regions whose price of an offer is unusual, each with the median over all regions, nano-dollars.

    The median of an even number of prices is rounded to a nano-dollar, half away from zero.
    """
    if len(nano_usd) < MIN_REGIONS:
        return {}
    ordered = sorted(nano_usd.values())
    twice = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
    least, most = UNUSUAL_BELOW * twice / 2, UNUSUAL_ABOVE * twice / 2
    if least <= ordered[0] and ordered[-1] <= most:
        return {}
    return {region: (twice + 1) // 2 for region, nano in nano_usd.items() if not least <= nano <= most}
