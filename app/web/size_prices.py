"""The prices of a size by region and purchase model, and where it is available."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.catalog.price_notes import price_note
from app.web.rendering import format_amount
from app.web.sizes_view import PURCHASE_TITLES


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """The list price in the unit and currency of the page, and the rules that make another price of it."""

    shown: Decimal
    rules: Sequence[str]


def listed_price(adjustment: Mapping[str, Any] | None, shown: Callable[[Any], Decimal]) -> ListedPrice | None:
    """Return the list price beside a price that rules changed; None where none did."""
    return ListedPrice(shown(adjustment["list_usd_per_hour"]), adjustment["rules"]) if adjustment else None


@dataclass(slots=True)
class RegionRow:
    """A region: prices by purchase model, and its zones; None where no source lists the size there."""

    code: str
    title: str
    prices: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    zones: list[str] | None = None
    zones_as_of: Any = None


def region_rows(
    prices: Iterable[Mapping[str, Any]],
    available: Iterable[Mapping[str, Any]],
    titles: Mapping[str, str],
    shown: Callable[[Any], Decimal],
) -> list[RegionRow]:
    """Return the regions that have a price or the size, the cheapest on demand first, those without a price last.

    Regions with an unusual price come after the others.

    `shown` converts USD an hour to what the page shows.
    """
    rows: dict[str, RegionRow] = {}

    def row_of(code: str) -> RegionRow:
        return rows.setdefault(code, RegionRow(code, titles.get(code, code)))

    for price in prices:
        row_of(price["region"]).prices[price["purchase"]] = {
            **price,
            "shown": shown(price["usd_per_hour"]),
            "adjustment": listed_price(price.get("adjustment"), shown),
            "note": price_note(price, shown=lambda usd: format_amount(shown(usd))),
        }
    for one in available:
        row = row_of(one["region"])
        if row.zones is None or (one["as_of"] and row.zones_as_of and one["as_of"] > row.zones_as_of):
            row.zones, row.zones_as_of = one["zones"], one["as_of"]

    def order(row: RegionRow) -> tuple[bool, bool, Decimal, str]:
        price = row.prices.get("on_demand")
        return price is None, bool(price and price["unusual"]), price["shown"] if price else Decimal(0), row.title

    return sorted(rows.values(), key=order)


def purchases_of(rows: Iterable[RegionRow]) -> list[str]:
    """Return the purchase models of which any region has a price, in their order."""
    priced = {purchase for row in rows for purchase in row.prices}
    return [purchase for purchase in PURCHASE_TITLES if purchase in priced]
