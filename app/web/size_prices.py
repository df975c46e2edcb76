"""The prices of a size by region and purchase model, where it is available, and its prices over time as a chart."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from math import floor, log10
from typing import Any

from app.catalog.price_notes import price_note
from app.catalog.queries.prices import PriceLine, merge_runs
from app.web.rendering import PURCHASE_TITLES, format_amount, format_tick
from app.web.size_fields import Difference, percent_from


@dataclass(slots=True)
class RegionPriceRow:
    """A region: prices by purchase model, and its zones; None where no source lists the size there.

    `zones_known` is false where a source lists the size there and does not name the zones.
    """

    code: str
    title: str
    prices: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    zones: list[str] | None = None
    zones_known: bool = True
    zones_as_of: Any = None

    def cells(self, purchases: Iterable[str]) -> list[tuple[Mapping[str, Any] | None, Difference | None]]:
        """Return the price by each purchase model, with its difference from that on demand."""
        prices, listed = self.prices, self.prices.get("on_demand")
        return [
            (
                prices.get(purchase),
                percent_from(prices[purchase]["shown"], listed["shown"], "usd_per_hour")
                if purchase in prices and listed and purchase != "on_demand"
                else None,
            )
            for purchase in purchases
        ]


def region_rows(
    prices: Iterable[Mapping[str, Any]],
    available: Iterable[Mapping[str, Any]],
    titles: Mapping[str, str],
    shown: Callable[[Any], Decimal],
    purchase: str,
) -> list[RegionPriceRow]:
    """Return the regions that have a price or the size, the cheapest by a purchase model first, then those without.

    Regions with an unusual price come after those with another, those without one in the order of prices on demand.

    `shown` converts USD an hour to what the page shows.
    """
    rows: dict[str, RegionPriceRow] = {}

    def row_of(code: str) -> RegionPriceRow:
        return rows.setdefault(code, RegionPriceRow(code, titles.get(code, code)))

    for price in prices:
        adjustment = price.get("adjustment")
        row_of(price["region"]).prices[price["purchase"]] = {
            **price,
            "shown": shown(price["usd_per_hour"]),
            "adjustment": adjustment and adjustment | {"shown": shown(adjustment["list_usd_per_hour"])},
            "note": price_note(price, shown=lambda usd: format_amount(shown(usd))),
        }
    for entry in available:
        row = row_of(entry["region"])
        if row.zones is None or (entry["as_of"] and row.zones_as_of and entry["as_of"] > row.zones_as_of):
            row.zones, row.zones_known, row.zones_as_of = entry["zones"], entry["zones_known"], entry["as_of"]

    def order(row: RegionPriceRow) -> tuple[Any, ...]:
        by_both = (row.prices.get(purchase), row.prices.get("on_demand"))
        ranks = [(not price, bool(price and price["unusual"]), price and price["shown"]) for price in by_both]
        return *ranks, row.title

    return sorted(rows.values(), key=order)


def purchases_of(rows: Iterable[RegionPriceRow]) -> list[str]:
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


_MAX_DAY_TICKS, _MAX_AMOUNT_TICKS = 7, 6
_MONTH_STEPS = (1, 3, 6, 12, 24, 60)
_ROOM = 1.05


def price_chart(
    history: Iterable[tuple[str, Sequence[PriceLine]]], shown: Callable[[Any], Decimal], unit: str, today: date
) -> dict[str, Any] | None:
    """Return the chart of some prices up to a day, from zero, None of none; ticks are (position in percent, text).

    A price is known on the days on which a list has it; between them, and from the last to today, it is only likely.
    `shown` converts USD an hour to the unit.
    """
    lines = {purchase: sorted(listed, key=lambda line: (line.since, line.last_seen)) for purchase, listed in history}
    if not lines:
        return None
    first = min(date.fromisoformat(listed[0].since) for listed in lines.values())
    first = min(first, today - timedelta(days=28))
    most = max(float(shown(line.usd_per_hour)) for listed in lines.values() for line in listed) * _ROOM or 1.0

    def across(day: str | date) -> float:
        at = date.fromisoformat(day) if isinstance(day, str) else day
        return round(100 * (at - first).days / (today - first).days, 3)

    def curve(title: str, listed: Sequence[PriceLine]) -> dict[str, Any]:
        """Return pieces (x1, y1, x2, y2) that lists have, `guessed` ones between them, and days with what they say."""
        seen, guessed, points = [], [], []
        tops = [round(100 - 100 * float(shown(line.usd_per_hour)) / most, 3) for line in listed]
        for index, (line, top) in enumerate(zip(listed, tops, strict=True)):
            begin, end = across(line.since), across(line.last_seen)
            following = across(listed[index + 1].since) if line is not listed[-1] else 100.0
            seen.append((begin, top, end, top))
            if following > end:
                guessed.append((end, top, following, top))
            if line is not listed[-1]:
                seen.append((following, top, following, tops[index + 1]))
            days = f"{line.since} to {line.last_seen}" if line.since < line.last_seen else line.since
            says = f"{title}: {format_amount(shown(line.usd_per_hour))} {unit}, {days}"
            points += [(at, top, says) for at in sorted({begin, end})]
        return {"title": title, "seen": seen, "guessed": guessed, "points": points}

    return {
        "curves": [curve(PURCHASE_TITLES[purchase], listed) for purchase, listed in lines.items()],
        "days": [(across(day), f"{day:%b %Y}") for day in _day_ticks(first, today)],
        "amounts": [(round(100 - 100 * amount / most, 3), format_tick(amount)) for amount in _amount_ticks(most)],
    }


def _day_ticks(first: date, last: date) -> list[date]:
    """Return the first days of some months, as many as fit beside each other."""
    ticks: list[date] = []
    for step in _MONTH_STEPS:
        months = range(12 * first.year + first.month, 12 * last.year + last.month)
        ticks = [date(month // 12, month % 12 + 1, 1) for month in months if month % step == 0]
        if len(ticks) <= _MAX_DAY_TICKS:
            break
    return ticks


def _amount_ticks(most: float) -> list[float]:
    """Return round amounts from zero up to the most."""
    decade = 10.0 ** floor(log10(most))
    step = next(decade * part for part in (0.2, 0.5, 1, 2) if most / (decade * part) <= _MAX_AMOUNT_TICKS)
    return [step * number for number in range(int(most / step) + 1)]


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
