"""Reads the Azure Retail Prices API: which of its items is the price of a size, and why another is none.

An item is one meter of one way to buy. A size in a region has about 13 of them, of which up to eight are prices of the
catalog; what distinguishes them is in texts (`productName`, `skuName`, `type`, `reservationTerm`). Each region is a
walk of its own from page to page, since only a walk over few pages is consistent while prices change.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.catalog.names import region_key
from app.errors import FetchError
from app.ingest.feeds.fetching import Page, PageApi, PriceApi, fetch_pages, read_pages
from app.ingest.feeds.price_lists import (
    Item,
    ItemRules,
    Outcome,
    Purchase,
    ReadScope,
    RegionPrices,
    UnknownMeterError,
    map_items,
    to_nano,
    to_usd,
)


class SkipReason(StrEnum):
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


_EXCLUSIONS: tuple[tuple[SkipReason, Callable[[Item], bool]], ...] = (
    (SkipReason.OTHER_SERVICE, lambda item: _text(item, "serviceName") != "Virtual Machines"),
    (SkipReason.CLOUD_SERVICES, lambda item: _CLOUD_SERVICES.search(_text(item, "productName")) is not None),
    (
        SkipReason.DEDICATED_HOST,
        lambda item: "Dedicated" in _text(item, "productName") or _HOST_NAME.search(_size(item)) is not None,
    ),
    (SkipReason.LOW_PRIORITY, lambda item: _has_suffix(item, " Low Priority")),
    (SkipReason.DEV_TEST, lambda item: item.get("type") == "DevTestConsumption"),
    (SkipReason.EXPIRED, lambda item: _has_suffix(item, " - Expired")),
    (SkipReason.NO_SIZE, lambda item: not _size(item)),
    (
        SkipReason.PROMOTION,
        lambda item: (
            _PROMOTION.search(_text(item, "productName")) is not None and not _size(item).lower().endswith("_promo")
        ),
    ),
    (
        SkipReason.LONG_TERM,
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


def to_prices(item: Item, region: str, day: date) -> Outcome:
    """Map one item to size, way to buy and price in nano-USD an hour, or return why it is left out.

    An on-demand item also gives its savings plans. Raises UnknownMeterError for an item of another region or currency,
    and for a type, term, unit, tier or price that is not known.
    """
    for reason, applies in _EXCLUSIONS:
        if applies(item):
            return reason
    _check(item, region)
    if not _in_force(item, day):
        return SkipReason.NOT_IN_FORCE
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
    stated = tuple(price for price in prices if price[2])
    return stated or SkipReason.UNPRICED


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
    """Return a price over `hours` as nano-USD an hour; 0 is a price not known yet."""
    value = item.get(name)
    try:
        return to_nano(to_usd(None if isinstance(value, str) else value), hours)
    except ValueError as error:
        raise UnknownMeterError(name, value, str(error)) from None


def _describe(item: Item) -> str:
    return f"{_text(item, 'productName')}; {_text(item, 'skuName')}; {_text(item, 'type')}"


# Pages

API_URL = "https://prices.azure.com/api/retail/prices"
API_VERSION = "2023-01-01-preview"
"""The version that has savings plans; texts in its filters are case-sensitive."""
_SKIP = re.compile(rb"(?:^|&)(?:\$|%24)skip=(\d+)")


def to_page(page: Mapping[str, Any], items: Sequence[Item]) -> Page:
    """Check a page; raises FetchError for one that was cut, or is in another currency than USD."""
    if page.get("Count") != len(items):
        count = "it has no Count" if page.get("Count") is None else f"its Count is {page['Count']}"
        raise FetchError(f"a page was cut: {count}, and it has {len(items)} items")
    if (currency := page.get("BillingCurrency")) != "USD":
        raise FetchError(f"a page is in {currency!r}, not in USD" if currency else "a page has no BillingCurrency")
    link = page.get("NextPageLink")
    query = httpx.URL(link).query if isinstance(link, str) else b""
    if link and not query:
        raise FetchError(f"a page has the NextPageLink {link!r}, which has no query")
    skip = _SKIP.search(query)
    return Page(items=items, following=query or None, items_before_following=int(skip[1]) if skip else None)


def to_query(url: httpx.URL, region: str, following: bytes | None) -> bytes:
    """Return the query of a region's first page, or of a following one, whose link has it.

    It asks for all meters, not for primary ones only: the single price of a size often is of a meter that is billed
    from another region. Only the query of a link is used: a proxy or a copy of the API need not rewrite links.
    """
    conditions = f"serviceName eq 'Virtual Machines' and armRegionName eq '{region}'"
    return following or url.copy_merge_params({"api-version": API_VERSION, "$filter": conditions}).query


AZURE_PAGES = PageApi(items="Items", to_page=to_page, to_query=to_query, link="NextPageLink")
AZURE_RULES = ItemRules(to_prices=to_prices, describe=_describe, size_column="armSkuName")


def _read(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    fetched = scope.only_region is not None
    items = (item for page in read_pages(AZURE_PAGES, files, fetched=fetched) for item in page.items)
    return map_items(items, lambda item: str(item.get("armRegionName") or ""), AZURE_RULES, scope)


AZURE_PRICES = PriceApi(
    command="azure-prices",
    provider="azure",
    source_id="azure-retail-prices",
    title="Azure Retail Prices API",
    publisher="Microsoft",
    url=API_URL,
    figure="retailPrice",
    fetch=partial(fetch_pages, AZURE_PAGES),
    read=_read,
)
