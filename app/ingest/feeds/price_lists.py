"""Collects what a feed states of prices into lists by region, and says why an item is none.

A vendor's list has many items of a size in a region, and what distinguishes them is in texts. The reader of a feed has
an explicit condition for each way to buy; exactly one item may meet it for a size, region and operating system.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from fractions import Fraction
from sys import intern
from typing import Any, NamedTuple

from app.catalog.money import NANO_USD, to_usd_text
from app.catalog.names import region_key, size_key
from app.catalog.readings import Progress, Report, no_progress

_NANO_BOUND = 10**9 * NANO_USD
"""A billion dollars: columns hold prices below it."""
Item = Mapping[str, Any]


class Purchase(NamedTuple):
    """A way to buy a size: the operating system and the purchase model."""

    os: str
    purchase: str


class MeterPrice(NamedTuple):
    """A price of a size in the region that is mapped; `line` is the number of its item, the first is 1."""

    size: str
    os: str
    purchase: str
    nano_usd_per_hour: int
    line: int


Outcome = Sequence[tuple[str, Purchase, int]] | StrEnum
"""What an item is: size, way to buy and price in nano-USD an hour, or the reason why it is left out."""


class UnknownMeterError(ValueError):
    """An item has a value that a reader does not know: `column` is its field."""

    def __init__(self, column: str, value: object, detail: str) -> None:
        super().__init__(detail)
        self.column, self.value, self.detail = column, value, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRules:
    """How the items of a feed are read: raises UnknownMeterError for what is neither a price nor left out.

    `describe` says what an item is; `size_column` is the field that names its size.
    """

    to_prices: Callable[[Item, str, date], Outcome]
    describe: Callable[[Item], str]
    size_column: str


def to_nano(usd: Decimal | Fraction, hours: int = 1) -> int:
    """Return a price over `hours` as nano-USD an hour, rounded once, half up; raises ValueError for too much."""
    numerator, denominator = usd.as_integer_ratio()
    numerator, denominator = numerator * NANO_USD, denominator * hours
    nano = (2 * numerator + denominator) // (2 * denominator)
    if nano >= _NANO_BOUND:
        raise ValueError("is not a price: it is a billion dollars an hour or more")
    return nano


def to_usd(value: object) -> Decimal:
    """Return a price as it is written, a number or a text; raises ValueError for what is none."""
    try:
        usd = Decimal(str(value)) if isinstance(value, int | float | str | Decimal) and value is not True else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or usd < 0:
        raise ValueError("is not a price: it must be a number, 0 or more")
    return usd


# A region

REPORT_LIMIT = 50
"""Reports of a region that are kept: should a vendor change a text, each of its items would be one."""
_SHOWN = 5
"""Items of several for one price that a report names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionPrices:
    """The prices of a region, sorted by size, system and purchase model, with what was left out and reported.

    Prices are kept as columns, since all of a cloud are half a million. `reported` counts all reports, of which
    `reports` has the first.
    """

    region: str
    size: Sequence[str]
    os: Sequence[str]
    purchase: Sequence[str]
    nano_usd_per_hour: Sequence[int]
    line: Sequence[int]
    items: int
    left_out: Mapping[str, int]
    reports: tuple[Report, ...]
    reported: int

    def __len__(self) -> int:
        """Return the number of prices."""
        return len(self.size)

    @property
    def prices(self) -> Iterator[MeterPrice]:
        """Yield the prices."""
        return map(MeterPrice, self.size, self.os, self.purchase, self.nano_usd_per_hour, self.line)

    def where(self, keep: Callable[[MeterPrice], bool]) -> "RegionPrices":
        """Return the same with those prices only for which a condition holds."""
        return replace(self, **_to_columns([*filter(keep, self.prices)]))


def _to_columns(prices: Sequence[MeterPrice]) -> dict[str, Any]:
    return {
        "size": [price.size for price in prices],
        "os": [price.os for price in prices],
        "purchase": [price.purchase for price in prices],
        "nano_usd_per_hour": array("q", (price.nano_usd_per_hour for price in prices)),
        "line": array("l", (price.line for price in prices)),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSpec:
    """What the price of a size is computed from where a vendor only lists prices of parts; None is unknown.

    `regions` are those that have it by any list of availability, None where no list names it.
    """

    name: str
    family: str | None
    vcpus: int | None
    memory_gib: Decimal | None
    gpu_model: str | None
    gpu_count: Fraction | None
    nvme_disk_gib: Decimal | None
    regions: frozenset[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadScope:
    """What is read from files: `regions` only, on a `day`; `sizes` are those of the provider.

    `identify` returns the key of a size by any of its names.
    All items are of `only_region` where files were fetched for it; one that names another region is reported then.
    `stated_parts` has the parts of sizes that do not follow from their figures: part and quantity by size.
    """

    source_id: str
    day: date
    regions: frozenset[str]
    identify: Callable[[str], str] = size_key
    only_region: str | None = None
    sizes: Sequence[SizeSpec] = ()
    stated_parts: Mapping[str, Mapping[str, Fraction]] = field(default_factory=dict)
    progress: Progress = no_progress


@dataclass(slots=True, kw_only=True)
class RegionMapper:
    """Collects the items of a region; of several prices for one way to buy none is taken."""

    region: str
    rules: ItemRules
    scope: ReadScope
    _items: int = 0
    _left_out: Counter[str] = field(default_factory=Counter)
    _reports: list[Report] = field(default_factory=list)
    _reported: int = 0
    _found: dict[tuple[str, str, str], list[MeterPrice]] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Map one item; what cannot be mapped is reported."""
        self._items += 1
        try:
            outcome = self.rules.to_prices(item, self.region, self.scope.day)
        except UnknownMeterError as error:
            detail = f"{error.detail} ({self.rules.describe(item)})"
            self._report(self._items, error.column, error.value, detail)
            return
        if isinstance(outcome, StrEnum):
            self._left_out[outcome] += 1
            return
        for size, (os, purchase), nano in outcome:
            price = MeterPrice(intern(size), os, purchase, nano, self._items)
            self._found.setdefault((self.scope.identify(size), os, purchase), []).append(price)

    def finish(self) -> RegionPrices:
        """Return the prices for which exactly one item remained, and reports of the others."""
        prices = [price for several in self._found.values() if (price := self._only(several))]
        prices.sort(key=lambda price: (size_key(price.size), price.os, price.purchase))
        return RegionPrices(
            region=self.region,
            **_to_columns(prices),
            items=self._items,
            left_out=dict(self._left_out),
            reports=tuple(self._reports),
            reported=self._reported,
        )

    def _only(self, several: list[MeterPrice]) -> MeterPrice | None:
        """Return the one price; None, with a report, where several items claim to be it.

        Items that name one size by different names may agree; two items of the same name never count as one.
        """
        first = several[0]
        if len(several) == 1:
            return first
        names = {size_key(price.size) for price in several}
        if len(names) == len(several) and len({price.nano_usd_per_hour for price in several}) == 1:
            return min(several, key=lambda price: price.size)
        shown = several[:_SHOWN]
        lines = ", ".join(str(price.line) for price in shown)
        figures = ", ".join(to_usd_text(price.nano_usd_per_hour) for price in shown)
        more = f" and {len(several) - _SHOWN:,} more" if len(several) > _SHOWN else ""
        detail = f"items {lines}{more} are each the price of {first.os} {first.purchase} ({figures}); none is taken"
        self._report(first.line, self.rules.size_column, first.size, detail)
        return None

    def _report(self, line: int, column: str, value: object, detail: str) -> None:
        self._reported += 1
        if self._reported <= REPORT_LIMIT:
            file = f"{self.scope.source_id}/{self.scope.day}/{self.region}"
            self._reports.append(Report(file=file, line=line, column=column, cell=str(value), detail=detail))


def map_items(
    items: Iterable[Item], region_of: Callable[[Item], str], rules: ItemRules, scope: ReadScope
) -> Iterator[RegionPrices]:
    """Yield the prices of items in the order of the regions' codes."""
    mappers: dict[str, RegionMapper] = {}
    for number, item in enumerate(items, 1):
        region = scope.only_region or region_key(region_of(item))
        if scope.regions and region not in scope.regions:
            continue
        if (mapper := mappers.get(region)) is None:
            mapper = mappers[region] = RegionMapper(region=region, rules=rules, scope=scope)
        mapper.add(item)
        if number % 1_000 == 0:
            scope.progress("reading prices", None, number)
    for region in sorted(mappers):
        yield mappers.pop(region).finish()
