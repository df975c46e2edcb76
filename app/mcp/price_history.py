"""The tool price_history: what a size cost in a region over time, the newest first."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.prices import PriceHistorySearch, PriceSearch
from app.errors import BadQuery
from app.mcp.arguments import Argument, read_size
from app.mcp.tool import LIST, OBJECT, OMITTED, OS, SAME_PURCHASE, TEXT, Inquiry, Reply, Tool, given, plural, read_limit

DEFAULT_LIMIT = 10
_MOST = 500

ARGUMENTS: Mapping[str, Argument] = {
    "size": Argument(type="string", read=read_size),
    "region": Argument(type="string", description="default: where it is cheapest"),
    "os": OS,
    "purchase": SAME_PURCHASE,
    "as_of": Argument(type="string", description="a day: the price in force on it"),
    "since": Argument(type="string", description="first day"),
    "until": Argument(type="string", description="last day"),
    "known_at": Argument(type="string", description="as the catalog knew it on that day"),
    "limit": Argument(type="integer", description=f"default {DEFAULT_LIMIT}", read=read_limit),
}


def price_history(inquiry: Inquiry, values: dict[str, Any]) -> Reply:
    """Tell what a size cost; raises what the queries raise, and BadQuery for a size without a price."""
    name = values["size"]
    region = values.get("region") or _cheapest_region(inquiry, values)
    period = given(values, "os", "purchase", "since", "until", "known_at")
    search = PriceHistorySearch.model_validate({"region": region, **period, "limit": _MOST})
    found = inquiry.ask("GET /sizes/{name}/price-history", search, name)
    runs = _with_changes(found["items"])
    content: dict[str, Any] = {
        "size": inquiry.ask_name(name),
        "region": search.region,
        "os": search.os,
        "purchase": search.purchase,
    }
    if "as_of" in values:
        content["in_force"] = _in_force(inquiry, values, search, name)
    content["prices"] = runs[: values.get("limit", DEFAULT_LIMIT)]
    return Reply(
        text=_to_text(content, runs, values.get("as_of")),
        content=content,
        lists=("prices",),
        totals={"prices": found["total"]},
        narrow="since, until; limit shows up to 50",
    )


def _cheapest_region(inquiry: Inquiry, values: Mapping[str, Any]) -> str:
    """Return the region in which a size is cheapest today."""
    name = inquiry.ask_name(values["size"])
    offers = given(values, "os", "purchase")
    search = SizeSearch.model_validate({"name": [name], "status": ["any"], **offers, "limit": 1})
    items = inquiry.ask("GET /sizes", search)["items"]
    if not items or items[0]["region"] is None or items[0]["usd_per_hour"] is None:
        raise BadQuery("region", None, f"is needed: no price of {name} of this kind is in force today")
    region: str = items[0]["region"]
    return region


def _with_changes(prices: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the prices, newest first, each with its change in percent from the one before of the same source."""
    before: dict[str, Decimal] = {}
    shown = []
    for price in prices:
        source, amount = price["source_id"], Decimal(str(price["usd_per_hour"]))
        item = {
            "from": price["valid_from"],
            "until": price["seen_until"],
            "usd_per_hour": price["usd_per_hour"],
            "source": source,
        }
        if before.get(source):
            item["change_percent"] = round(float(100 * (amount - before[source]) / before[source]), 2)
        if price["approximate_date"]:
            item["approximate_date"] = True
        before[source] = amount
        shown.append(item)
    return sorted(shown, key=lambda one: (one["until"], one["from"]), reverse=True)


def _in_force(inquiry: Inquiry, values: Mapping[str, Any], search: PriceHistorySearch, name: str) -> dict[str, Any]:
    """Return the price in force on a day; its price is null where none is known."""
    day = given(values, "as_of", "known_at")
    asked = PriceSearch.model_validate(
        {"region": [search.region], "os": search.os, "purchase": search.purchase, **day, "limit": 1}
    )
    items = inquiry.ask("GET /sizes/{name}/prices", asked, name)["items"]
    if not items:
        return {"day": values["as_of"], "usd_per_hour": None}
    price = items[0]
    return {
        "day": values["as_of"],
        "usd_per_hour": price["usd_per_hour"],
        "from": price["valid_from"],
        "until": price["seen_until"],
        "source": price["source_id"],
    }


def _to_text(content: Mapping[str, Any], prices: Sequence[Mapping[str, Any]], day: str | None) -> str:
    kind = f"{content['size']} in {content['region']}, {content['os']} {content['purchase']}"
    if not prices:
        return f"No price of {kind} is known."
    if day is not None:
        amount = content["in_force"]["usd_per_hour"]
        return f"{kind} on {day}: {'unknown' if amount is None else f'{amount} USD/h'}."
    newest = prices[0]
    return (
        f"{kind}: {plural(len(prices), 'price')}; the newest is {newest['usd_per_hour']} USD/h until {newest['until']}."
    )


TOOL = Tool(
    name="price_history",
    description="What a size cost in a region over time, newest first, with changes in percent; as_of: on one day.",
    arguments=ARGUMENTS,
    required=("size",),
    output={"size": TEXT, "region": TEXT, "os": TEXT, "purchase": TEXT, "in_force": OBJECT, "prices": LIST, **OMITTED},
    always=("size", "region", "os", "purchase", "prices"),
    run=price_history,
)
