"""The tool price_history: what a size cost in a region over time, the newest first."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.catalog.queries.params import SizeSearch
from app.catalog.queries.price_lines import PriceLine, merge_runs
from app.catalog.queries.prices import PriceHistorySearch, PriceSearch
from app.errors import BadQuery
from app.mcp.arguments import Argument, read_size
from app.mcp.tool import (
    LIST,
    OBJECT,
    OMITTED,
    OS,
    SAME_PURCHASE,
    TEXT,
    Reply,
    Tool,
    ask_name,
    given,
    plural,
    read_limit,
)
from app.questions import Inquiry

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
    in_force = _ask_in_force(inquiry, values, search, name)
    day = values.get("as_of")
    lines = merge_runs(found["items"], in_force)[::-1]
    content: dict[str, Any] = {
        "size": ask_name(inquiry, name),
        "region": search.region,
        "os": search.os,
        "purchase": search.purchase,
    }
    if day is not None:
        content["in_force"] = {"day": day, "usd_per_hour": None} | _to_price(in_force, lines)
    content["prices"] = [_to_item(line) for line in lines[: values.get("limit", DEFAULT_LIMIT)]]
    return Reply(
        text=_to_text(content, lines, in_force, day),
        content=content,
        lists=("prices",),
        totals={"prices": len(lines)},
        narrow="since, until; limit shows up to 50",
    )


def _cheapest_region(inquiry: Inquiry, values: Mapping[str, Any]) -> str:
    """Return the region in which a size is cheapest today."""
    name = ask_name(inquiry, values["size"])
    offers = given(values, "os", "purchase")
    search = SizeSearch.model_validate({"name": [name], "status": ["any"], **offers, "limit": 1})
    items = inquiry.ask("GET /sizes", search)["items"]
    if not items or items[0]["region"] is None or items[0]["usd_per_hour"] is None:
        raise BadQuery("region", None, f"is needed: no price of {name} of this kind is in force today")
    region: str = items[0]["region"]
    return region


def _ask_in_force(
    inquiry: Inquiry, values: Mapping[str, Any], search: PriceHistorySearch, name: str
) -> Mapping[str, Any] | None:
    """Return the price in force on the day that is asked for; default: the last one of the history."""
    last = min(search.until or inquiry.catalog.today, inquiry.catalog.today)
    days = {"as_of": last} | given(values, "as_of", "known_at")
    asked = PriceSearch.model_validate(
        {"region": [search.region], "os": search.os, "purchase": search.purchase, **days, "limit": 1}
    )
    return next(iter(inquiry.ask("GET /sizes/{name}/prices", asked, name)["items"]), None)


def _to_item(line: PriceLine) -> dict[str, Any]:
    """Return a line with its change in percent from the price before."""
    item: dict[str, Any] = {
        "since": line.since,
        "last_seen": line.last_seen,
        "usd_per_hour": line.usd_per_hour,
        "sources": line.sources,
    }
    if line.change_percent is not None:
        item["change_percent"] = round(float(line.change_percent), 2)
    if line.approximate_date:
        item["approximate_date"] = True
    if note := line.note():
        item["note"] = note
    return item


def _to_price(price: Mapping[str, Any] | None, lines: Sequence[PriceLine]) -> dict[str, Any]:
    if price is None:
        return {}
    return {
        "usd_per_hour": price["usd_per_hour"],
        "since": next((line.since for line in lines if line.in_force), price["valid_from"]),
        "last_seen": price["seen_until"],
        "source": price["source_id"],
    }


def _to_text(
    content: Mapping[str, Any], lines: Sequence[PriceLine], in_force: Mapping[str, Any] | None, day: str | None
) -> str:
    kind = f"{content['size']} in {content['region']}, {content['os']} {content['purchase']}"
    if not lines:
        return f"No price of {kind} is known."
    if day is not None:
        if in_force is None:
            return f"{kind} on {day}: unknown."
        return f"{kind} on {day}: {in_force['usd_per_hour']} USD/h, last seen {in_force['seen_until']}."
    newest = lines[0]
    ended = "" if in_force else "; not in force, as newer lists lack it"
    ended += f"; {note}" if (note := newest.note()) else ""
    others = f"; {plural(len(lines) - 1, 'other price')}" if len(lines) > 1 else ""
    return f"{kind}: {newest.usd_per_hour} USD/h since {newest.since}, last seen {newest.last_seen}{ended}{others}."


TOOL = Tool(
    name="price_history",
    description="What a size cost in a region over time, newest first, with changes in percent; as_of: on one day.",
    arguments=ARGUMENTS,
    required=("size",),
    output={"size": TEXT, "region": TEXT, "os": TEXT, "purchase": TEXT, "in_force": OBJECT, "prices": LIST, **OMITTED},
    always=("size", "region", "os", "purchase", "prices"),
    run=price_history,
)
