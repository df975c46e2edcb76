"""Maps items of the Azure Retail Prices API to prices an hour, and says why an item is none.

An item is one meter of one way to buy. A size in a region has about 13 of them, of which up to eight are prices of the
catalog; what tells them apart is in texts (`productName`, `skuName`, `type`, `reservationTerm`), so each way to buy has
an explicit condition here, and exactly one item may meet it for a size, region and operating system.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from sys import intern
from typing import Any, NamedTuple

from app.catalog.names import region_key, size_key
from app.catalog.readings import Report

NANO = 10**9
_NANO_BOUND = 10**9 * NANO
"""A billion dollars: columns hold prices below it."""
Item = Mapping[str, Any]


class LeftOut(StrEnum):
    """Why an item is no price of the catalog although nothing is wrong with it."""

    OTHER_SERVICE = "another service than Virtual Machines"
    LOW_PRIORITY = "Low Priority, which is of Azure Batch"
    CLOUD_SERVICES = "Cloud Services"
    DEDICATED_HOST = "dedicated host"
    DEV_TEST = "Dev/Test, for subscribers only"
    PROMOTION = "promotional meter under the name of the regular size"
    EXPIRED = "expired meter"
    LONG_TERM = "reservation of 5 years"
    UNPRICED = "price 0, which means that it is not known yet"
    NO_SIZE = "names no size"
    NOT_IN_FORCE = "not in force on the day"


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


class UnknownMeterError(ValueError):
    """An item has a value that this mapping does not know: `column` is its field."""

    def __init__(self, column: str, value: object, detail: str) -> None:
        super().__init__(detail)
        self.column, self.value, self.detail = column, value, detail


# Ways to buy

HOURS_OF_TERM = {"1 Year": 8_760, "3 Years": 26_280}
"""Hours in a reservation's term: 365 days a year, which is how Azure divides its totals."""
_IGNORED_TERMS = {"5 Years"}
_TERM_SUFFIX = {"1 Year": "1y", "3 Years": "3y"}

_WINDOWS = re.compile(r" (?:Windows|Win)$")
_SIZE_NAME = re.compile(r"(?:Standard|Basic)_[A-Za-z0-9_-]+")
_HOST_NAME = re.compile(r"[ _-]Type[ _]?\d+$")
_CLOUD_SERVICES = re.compile(r"Cloud ?Services")
_PROMOTION = re.compile(r"\bpromo\b", re.IGNORECASE)


def _has_suffix(item: Item, suffix: str) -> bool:
    return any(_text(item, name).endswith(suffix) for name in ("skuName", "meterName"))


_EXCLUSIONS: tuple[tuple[LeftOut, Callable[[Item], bool]], ...] = (
    (LeftOut.OTHER_SERVICE, lambda item: _text(item, "serviceName") != "Virtual Machines"),
    (LeftOut.CLOUD_SERVICES, lambda item: _CLOUD_SERVICES.search(_text(item, "productName")) is not None),
    (
        LeftOut.DEDICATED_HOST,
        lambda item: "Dedicated" in _text(item, "productName") or _HOST_NAME.search(_size(item)) is not None,
    ),
    (LeftOut.LOW_PRIORITY, lambda item: _has_suffix(item, " Low Priority")),
    (LeftOut.DEV_TEST, lambda item: item.get("type") == "DevTestConsumption"),
    (LeftOut.EXPIRED, lambda item: _has_suffix(item, " - Expired")),
    (LeftOut.NO_SIZE, lambda item: not _size(item)),
    (
        LeftOut.PROMOTION,
        lambda item: (
            _PROMOTION.search(_text(item, "productName")) is not None and not _size(item).lower().endswith("_promo")
        ),
    ),
    (
        LeftOut.LONG_TERM,
        lambda item: item.get("type") == "Reservation" and _text(item, "reservationTerm") in _IGNORED_TERMS,
    ),
)
"""What is left out before anything else is asked of an item, in this order."""


def _is_spot(item: Item) -> bool:
    return _has_suffix(item, " Spot")


PURCHASES: Mapping[str, Callable[[Item], bool]] = {
    "on_demand": lambda item: item.get("type") == "Consumption" and not _is_spot(item),
    "spot": lambda item: item.get("type") == "Consumption" and _is_spot(item),
    "reserved_1y": lambda item: item.get("type") == "Reservation" and item.get("reservationTerm") == "1 Year",
    "reserved_3y": lambda item: item.get("type") == "Reservation" and item.get("reservationTerm") == "3 Years",
}
"""The condition of each purchase model that has items of its own; savings plans are a list inside `on_demand` items."""


def to_prices(item: Item, *, region: str, day: date) -> tuple[tuple[str, Purchase, int], ...] | LeftOut:
    """Map one item to size, way to buy and price in nano-USD an hour, or return why it is left out.

    An on-demand item also gives its savings plans. Raises UnknownMeterError for an item of another region or currency,
    and for a type, term, unit, tier or price that is not known.
    """
    for reason, applies in _EXCLUSIONS:
        if applies(item):
            return reason
    _check(item, region)
    if not _in_force(item, day):
        return LeftOut.NOT_IN_FORCE
    size, os = _size(item), "windows" if _WINDOWS.search(_text(item, "productName")) else "linux"
    purchase = next((name for name, applies in PURCHASES.items() if applies(item)), None)
    if purchase is None:
        column = "reservationTerm" if item.get("type") == "Reservation" else "type"
        raise UnknownMeterError(column, item.get(column), f"is not a known {column}")
    hours = HOURS_OF_TERM[item["reservationTerm"]] if purchase.startswith("reserved") else 1
    prices = [(size, Purchase(os, purchase), _nano_per_hour(item, "retailPrice", hours))]
    for plan in _plans(item):
        if purchase != "on_demand":
            raise UnknownMeterError("savingsPlan", plan, f"is not expected for {purchase}")
        term = _TERM_SUFFIX.get(_text(plan, "term"))
        if term is None:
            raise UnknownMeterError("savingsPlan", plan.get("term"), "is not a known term of a savings plan")
        prices.append((size, Purchase(os, f"savings_{term}"), _nano_per_hour(plan, "retailPrice", 1)))
    known = tuple(price for price in prices if price[2])
    return known or LeftOut.UNPRICED


def _check(item: Item, region: str) -> None:
    """Raise UnknownMeterError for what no condition of a way to buy looks at."""
    if region_key(_text(item, "armRegionName")) != region:
        raise UnknownMeterError("armRegionName", item.get("armRegionName"), f"is not the region asked for, {region}")
    if item.get("currencyCode") != "USD":
        raise UnknownMeterError("currencyCode", item.get("currencyCode"), "is not USD")
    if item.get("unitOfMeasure") != "1 Hour":
        raise UnknownMeterError("unitOfMeasure", item.get("unitOfMeasure"), "is not '1 Hour'")
    if item.get("tierMinimumUnits", 0) != 0:
        raise UnknownMeterError("tierMinimumUnits", item["tierMinimumUnits"], "is not the first tier")
    if not _SIZE_NAME.fullmatch(_size(item)):
        raise UnknownMeterError("armSkuName", item.get("armSkuName"), "is not like the name of a size")


def _plans(item: Item) -> Sequence[Item]:
    plans = item.get("savingsPlan") or ()
    if not isinstance(plans, list | tuple) or not all(isinstance(plan, dict) for plan in plans):
        raise UnknownMeterError("savingsPlan", plans, "is not a list of plans")
    return plans


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    return value.strip() if isinstance(value, str) else ""


def _size(item: Item) -> str:
    return _text(item, "armSkuName")


def _in_force(item: Item, day: date) -> bool:
    begins, ends = _moment(item, "effectiveStartDate"), _moment(item, "effectiveEndDate")
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return (begins is None or begins.date() <= day) and (ends is None or midnight < ends)


def _moment(item: Item, name: str) -> datetime | None:
    if not (text := _text(item, name)):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except ValueError:
        raise UnknownMeterError(name, text, "is not a date") from None


def _nano_per_hour(item: Item, name: str, hours: int) -> int:
    """Return a price over `hours` as nano-USD an hour, rounded once, half up; 0 is a price not known yet."""
    value = item.get(name)
    try:
        usd = Decimal(str(value)) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        usd = None
    if usd is None or not usd.is_finite() or usd < 0:
        raise UnknownMeterError(name, value, "is not a price")
    numerator, denominator = usd.as_integer_ratio()
    numerator, denominator = numerator * NANO, denominator * hours
    nano = (2 * numerator + denominator) // (2 * denominator)
    if nano >= _NANO_BOUND:
        raise UnknownMeterError(name, value, "is not a price: it is a billion dollars an hour or more")
    return nano


# A region

REPORT_LIMIT = 50
"""Reports of a region that are kept: should the API change a text, each of its items would be one."""


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
    left_out: Mapping[LeftOut, int]
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


@dataclass(slots=True, kw_only=True)
class RegionMapper:
    """Collects the items of a region; of several prices for one way to buy none is taken.

    `identify` returns the key of a size by any of its names. `file` names the list in reports.
    """

    region: str
    day: date
    file: str
    identify: Callable[[str], str] = size_key
    _items: int = 0
    _left_out: Counter[LeftOut] = field(default_factory=Counter)
    _reports: list[Report] = field(default_factory=list)
    _reported: int = 0
    _found: dict[tuple[str, str, str], list[MeterPrice]] = field(default_factory=dict)

    def add(self, item: Item) -> None:
        """Map one item; what cannot be mapped is reported."""
        self._items += 1
        try:
            outcome = to_prices(item, region=self.region, day=self.day)
        except UnknownMeterError as error:
            self._report(self._items, error.column, error.value, f"{error.detail} ({_describe(item)})")
            return
        if isinstance(outcome, LeftOut):
            self._left_out[outcome] += 1
            return
        for size, (os, purchase), nano in outcome:
            price = MeterPrice(intern(size), os, purchase, nano, self._items)
            self._found.setdefault((self.identify(size), os, purchase), []).append(price)

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
        lines = ", ".join(str(price.line) for price in several)
        figures = ", ".join(format_usd(price.nano_usd_per_hour) for price in several)
        detail = f"items {lines} all are the price of {first.os} {first.purchase} ({figures}); none is taken"
        self._report(first.line, "armSkuName", first.size, detail)
        return None

    def _report(self, line: int, column: str, value: object, detail: str) -> None:
        self._reported += 1
        if self._reported <= REPORT_LIMIT:
            self._reports.append(Report(file=self.file, line=line, column=column, cell=str(value), detail=detail))


def _describe(item: Item) -> str:
    return f"{_text(item, 'productName')}; {_text(item, 'skuName')}; {_text(item, 'type')}"


def format_usd(nano: int) -> str:
    """Return nano-USD as USD, without trailing zeros."""
    return f"{Decimal(nano).scaleb(-9).normalize():f}"
