"""The prices of a size by region and purchase model, where it is available, and its prices over time as a chart."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from app.catalog.price_notes import price_note
from app.catalog.queries.price_lines import PriceLine, merge_runs
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
    purchase: str,
) -> list[RegionRow]:
    """Return the regions that have a price or the size, the cheapest by a purchase model first, then those without.

    Regions with an unusual price come after those with another.

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
        price = row.prices.get(purchase)
        return price is None, bool(price and price["unusual"]), price["shown"] if price else Decimal(0), row.title

    return sorted(rows.values(), key=order)


def purchases_of(rows: Iterable[RegionRow]) -> list[str]:
    """Return the purchase models of which any region has a price, in their order."""
    priced = {purchase for row in rows for purchase in row.prices}
    return [purchase for purchase in PURCHASE_TITLES if purchase in priced]


def azure_snippets(size: str, region: str | None, purchase: str) -> Mapping[str, str]:
    """Return how the tools of Azure name a size, by tool."""
    spot = " --priority Spot" if purchase == "spot" else ""
    place = f" --location {region}" if region else ""
    return {
        "az": f"az vm create --resource-group GROUP --name NAME --image IMAGE{place} --size {size}{spot}",
        "Terraform (azurerm_linux_virtual_machine)": f'size = "{size}"',
        "Bicep (Microsoft.Compute/virtualMachines)": f"hardwareProfile: {{ vmSize: '{size}' }}",
    }


_DASHES = ("solid", "dashed", "dotted")
_DAY_LABELS = {"year": "{yyyy}", "month": "{MMM} {yyyy}", "day": "{d} {MMM} {yyyy}"}
_SYMBOLS = ("circle", "rect", "triangle", "diamond", "emptyCircle", "emptyRect")


def chart_option(runs: Sequence[Mapping[str, Any]], unit: str, title: str) -> str:
    """Return the option of an ECharts chart as JSON: a stepped line for each purchase model.

    Each run has `purchase`, `valid_from`, `seen_until` and `shown`, its price in the unit. A price holds until the next
    that was observed; a line ends with the last. Lines differ in dashes and marks as well as in colour.
    """
    series = []
    for index, (purchase, name) in enumerate(PURCHASE_TITLES.items()):
        points = sorted({point for run in runs if run["purchase"] == purchase for point in _ends(run)})
        if points:
            drawn = {"symbol": _SYMBOLS[index], "symbolSize": 7, "lineStyle": {"type": _DASHES[index % len(_DASHES)]}}
            series.append({"name": name, "type": "line", "step": "end", "data": points, **drawn})
    return json.dumps(
        {
            "aria": {"enabled": True, "label": {"description": title}},
            "legend": {"top": 0, "type": "scroll"},
            "grid": {"left": 8, "right": 16, "top": 48, "bottom": 8, "containLabel": True},
            "tooltip": {"trigger": "axis", "renderMode": "richText"},
            "xAxis": {"type": "time", "axisLabel": {"hideOverlap": True, "formatter": _DAY_LABELS}},
            "yAxis": {"type": "value", "name": unit, "nameTextStyle": {"align": "left"}},
            "series": series,
        }
    )


def _ends(run: Mapping[str, Any]) -> list[tuple[str, float]]:
    price = float(run["shown"])
    return [(run["valid_from"], price), (run["seen_until"], price)]


def newest_first(
    runs: Sequence[Mapping[str, Any]], in_force: Mapping[str, Mapping[str, Any]]
) -> list[tuple[str, list[PriceLine]]]:
    """Return the lines of each purchase model that has any, the last seen first.

    `in_force` has the prices in force by purchase model.
    """
    by_purchase = {
        purchase: merge_runs((run for run in runs if run["purchase"] == purchase), in_force.get(purchase))[::-1]
        for purchase in PURCHASE_TITLES
    }
    return [(purchase, lines) for purchase, lines in by_purchase.items() if lines]
