"""The page of a size as Markdown, for agents: its figures with their sources, disputes, and prices by region."""

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from app.catalog.providers import PROVIDERS
from app.catalog.queries.params import SizeParams
from app.catalog.queries.prices import PriceSearch, find_prices
from app.catalog.queries.provenance import FactSearch, find_facts
from app.catalog.queries.sizes import find_size
from app.questions import NoParams
from app.web.rendering import PURCHASE_TITLES, path_segment
from app.web.serving import PageContent, PageRequest
from app.web.size_fields import FactGroups, group_facts
from app.web.size_prices import RegionPriceRow, purchases_of, region_rows

_MOST = 500


async def render(request: PageRequest) -> str:
    """Render a size as Markdown; raises NotFound for its name."""
    name, run = request.names["name"], request.executor
    size_json, facts, prices = await asyncio.gather(
        run.ask(find_size, name, SizeParams()),
        run.ask(find_facts, name, FactSearch(limit=_MOST)),
        run.ask(find_prices, name, PriceSearch(os="linux", limit=_MOST)),
    )
    item = json.loads(size_json, parse_float=Decimal)
    grouped = group_facts(facts.items, item)
    regions = region_rows(prices.items, [], {}, lambda usd: Decimal(str(usd)), "on_demand")
    api = f"{request.public_url or request.root.rstrip('/')}/sizes/{path_segment(item['name'].lower())}"
    parts = [
        f"# {_cell(item['name'])}",
        _summary(item),
        "## Figures",
        _figures(grouped),
        *(["## Disputed", _disputes(grouped)] if grouped.disputed else []),
        "## Prices",
        _prices(regions),
        "## As JSON",
        "\n".join(f"- [{title}]({api}{path})" for title, path in _LINKS),
    ]
    return "\n\n".join(parts) + "\n"


_LINKS = (
    ("the size", ""),
    ("what each source says", "/facts"),
    ("prices", "/prices"),
    ("similar sizes", "/similar"),
)


def _summary(item: Mapping[str, Any]) -> str:
    """Return the status in a sentence, and what a page says at its top."""
    ends = {"retiring": f", retires on {item['retirement_date']}", "retired": f" on {item['retirement_date']}"}
    status = f"{item['status']}{ends.get(item['status'], '')}"
    verified = "" if item["verified"] else " The vendor's own documents do not name it."
    cloud = PROVIDERS[item["provider"]].name
    series = f" of the series {_cell(item['series'])}" if item["series"] else " of an unknown series"
    return f"{cloud} VM size{series}; status: {status}.{verified}"


def _figures(facts: FactGroups) -> str:
    """Return a table of the accepted values; figures that no source states follow by name."""
    rows = [
        (fact.title, fact.accepted["shown"], f"{fact.accepted['source_id']}, line {fact.accepted['line']}")
        for listed in facts.groups.values()
        for fact in listed
        if fact.accepted
    ]
    unknown = f"\n\nUnknown: {'; '.join(facts.unknown)}." if facts.unknown else ""
    return f"{_table(('figure', 'value', 'source'), rows)}{unknown}"


def _disputes(facts: FactGroups) -> str:
    rows = [
        (fact.title, fact.accepted["shown"], other["shown"], other["source_id"], other["reason"])
        for fact in facts.disputed
        if fact.accepted
        for other in fact.disputing
    ]
    return _table(("figure", "accepted", "not accepted", "source", "why not"), rows)


def _price(price: Mapping[str, Any], newest: str) -> str:
    """Return the price, followed in brackets by the list price, notes and the day if it is earlier."""
    remarks = []
    if adjustment := price["adjustment"]:
        remarks.append(f"list {adjustment['list_usd_per_hour']}: {', '.join(adjustment['rules'])}")
    if price["note"]:
        remarks.append(price["note"])
    if price["seen_until"] != newest:
        remarks.append(f"last seen {price['seen_until']}")
    return f"{price['usd_per_hour']} ({'; '.join(remarks)})" if remarks else str(price["usd_per_hour"])


def _prices(regions: Sequence[RegionPriceRow]) -> str:
    """Return a table of the prices in force with Linux, USD an hour, by region.

    Each row has the day on which its newest prices were last seen; older ones have their own.
    """
    if not regions:
        return "No price is known."
    purchases = purchases_of(regions)
    heads = ("region", *(PURCHASE_TITLES[purchase] for purchase in purchases), "last seen")
    rows = []
    for row in regions:
        newest = max(price["seen_until"] for price in row.prices.values())
        cells = (
            _price(row.prices[purchase], newest) if purchase in row.prices else "unknown" for purchase in purchases
        )
        rows.append((row.code, *cells, newest))
    is_adjusted = any(price["adjustment"] for row in regions for price in row.prices.values())
    which = "what you pay today; `list` is the list price" if is_adjusted else "list prices in force today"
    return f"USD an hour, Linux, {which}.\n\n{_table(heads, rows)}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_cell(cell) for cell in line)} |" for line in lines)


def _cell(text: object) -> str:
    """Return text of a source that stays text, within its cell: no mark-up, no link, no line of its own."""
    return _MARKS.sub(r"\\\g<0>", " ".join(str(text).split()))


_MARKS = re.compile(r"[\\|<>`\[\]]")


PAGE = PageContent(params=NoParams, render=render, media_type="text/markdown; charset=utf-8")
