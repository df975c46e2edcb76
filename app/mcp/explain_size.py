"""The tool explain_size: the figures of one size with the source of each, disputes, prices and retirement."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.catalog.price_notes import price_note
from app.catalog.queries.params import SizeParams
from app.catalog.queries.prices import PriceSearch
from app.catalog.queries.provenance import FactSearch
from app.mcp.arguments import Argument, read_size
from app.mcp.tool import (
    CURRENCY,
    DAY,
    FIELDS,
    LIST,
    OBJECT,
    OMITTED,
    OS,
    REGION,
    TEXT,
    Reply,
    Tool,
    given,
    plural,
)
from app.questions import Inquiry

ARGUMENTS: Mapping[str, Argument] = {
    "size": Argument(type="string", description="any spelling: NC24ads A100 v4", read=read_size),
    "fields": replace(FIELDS, sets="field"),
    "region": REGION,
    "os": OS,
    "as_of": DAY,
    "currency": CURRENCY,
}

_FIRST = (
    *("gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "vcpus", "memory_gib", "cpu_model"),
    *("retirement_date", "preview", "withdrawn", "network_mbps", "infiniband_gbps", "nvme_disk_gib", "temp_disk_gib"),
    *("gpu_interconnect", "max_data_disks", "uncached_disk_iops"),
)
"""Fields in the order in which they matter; a short reply keeps the first ones."""
_UNITS = {"vcpus": "vCPUs", "memory_gib": "GiB"}
_DEFAULT_FACTS = 8
_CHEAPEST_REGIONS = 3
_MOST = 500


def explain_size(inquiry: Inquiry, values: dict[str, Any]) -> Reply:
    """Explain a size; raises NotFound for it, BadQuery for a field, a region or a day."""
    name, fields = values["size"], values.get("fields", [])
    day, currency = given(values, "as_of"), given(values, "currency")
    size = inquiry.ask("GET /sizes/{name}", SizeParams.model_validate({**day, **currency}), name)
    facts = _ask_facts(inquiry, name, fields)
    accepted = [fact for fact in facts if fact["verdict"] == "accepted"]
    shown = sorted(accepted, key=lambda fact: _rank(fact["field"]))[: None if fields else _DEFAULT_FACTS]
    unknown = sorted(
        {*fields} - {fact["field"] for fact in accepted} - {name for name in size if size[name] is not None}
    )
    disputes = _to_disputes(facts)
    offers = {"os": "linux", **day, **currency, **given(values, "os")}
    prices = _ask_prices(inquiry, name, offers, values.get("region"))
    content: dict[str, Any] = {
        "size": size["name"],
        "series": size["series"],
        "status": size["status"],
        "retirement_date": size["retirement_date"],
        "verified": size["verified"],
        "facts": [_to_fact(fact) for fact in shown],
        **({"unknown": unknown} if unknown else {}),
        "disputes": disputes,
        **prices,
    }
    return Reply(
        text=_to_text(content, size),
        content=content,
        lists=("prices", "facts", "disputes"),
        totals={"facts": len(accepted)},
        narrow="fields names the facts to show; region the prices",
    )


def _ask_facts(inquiry: Inquiry, name: str, fields: Sequence[str]) -> list[dict[str, Any]]:
    search = FactSearch.model_validate({"field": list(fields), "limit": _MOST})
    items: list[dict[str, Any]] = inquiry.ask("GET /sizes/{name}/facts", search, name)["items"]
    return items


def _rank(field: str) -> tuple[int, str]:
    return (_FIRST.index(field) if field in _FIRST else len(_FIRST), field)


def _to_fact(fact: Mapping[str, Any]) -> dict[str, Any]:
    """Return a fact: its value, and the file and line of the source that has it."""
    shown = {"field": fact["field"], "value": fact["corrected_value"] or fact["value"]}
    if fact["unit"] and fact["unit"] != "count":
        shown["unit"] = fact["unit"]
    shown |= {"source": fact["source_id"], "line": fact["line"]}
    if fact["source_kind"] != "vendor_page":
        shown["kind"] = fact["source_kind"]
    return shown


def _to_disputes(facts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what sources disagree on: the accepted value, the other one, and why that was not accepted."""
    accepted = {fact["field"]: fact for fact in facts if fact["verdict"] == "accepted"}
    return [
        {
            "field": fact["field"],
            "accepted": (wins := accepted[fact["field"]])["corrected_value"] or wins["value"],
            "accepted_source": wins["source_id"],
            "other": fact["corrected_value"] or fact["value"],
            "other_source": fact["source_id"],
            "reason": fact["reason"],
        }
        for fact in facts
        if fact["verdict"] == "disputed" and fact["field"] in accepted
    ]


def _ask_prices(
    inquiry: Inquiry, name: str, params: Mapping[str, Any], regions: Sequence[str] | None
) -> dict[str, Any]:
    """Return the regions that have the size, the cheapest on demand first, and the prices in the first or given one."""
    everywhere = {**params, "limit": _MOST, "purchase": "on_demand"}
    on_demand = inquiry.ask("GET /sizes/{name}/prices", PriceSearch.model_validate(everywhere), name)["items"]
    cheapest = sorted(on_demand, key=lambda one: (one["unusual"], one["usd_per_hour"], one["region"]))
    chosen = list(regions or [one["region"] for one in cheapest[:1]])
    content: dict[str, Any] = {
        "regions": {
            "priced": len(on_demand),
            "cheapest": [
                {"region": one["region"], "usd_per_hour": one["usd_per_hour"]} for one in cheapest[:_CHEAPEST_REGIONS]
            ],
        },
        "prices": [],
    }
    if chosen:
        asked = PriceSearch.model_validate({**params, "region": chosen, "limit": _MOST})
        found = inquiry.ask("GET /sizes/{name}/prices", asked, name)["items"]
        content["prices"] = [_to_price(price) for price in found]
    return content


def _to_price(price: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: price[name] for name in ("region", "purchase", "usd_per_hour")}
    shown |= {"last_seen": price["seen_until"], "source": price["source_id"]}
    if note := price_note(price):
        shown["note"] = note
    return shown | ({"price_per_hour": price["converted"]["price_per_hour"]} if "converted" in price else {})


def _to_text(content: Mapping[str, Any], size: Mapping[str, Any]) -> str:
    gpus = size["gpu_fraction"] or size["gpu_count"]
    what = f"{gpus:g}" if isinstance(gpus, float) else f"{gpus}"
    hardware = [f"{what} x {size['gpu_model']}"] if size["gpu_model"] and gpus else []
    hardware += [f"{size[name]:g} {unit}" for name, unit in _UNITS.items() if size[name] is not None]
    described = ", ".join(hardware) or "nothing is known of its hardware"
    ends = f", retires {content['retirement_date']}" if content["retirement_date"] else ""
    disputed = plural(len(content["disputes"]), "dispute")
    price = content["regions"]["cheapest"][:1]
    cost = f"from {price[0]['usd_per_hour']} USD/h in {price[0]['region']}" if price else "price unknown"
    unknown = f" Unknown: {', '.join(content['unknown'])}." if "unknown" in content else ""
    return f"{content['size']} ({content['status']}{ends}): {described}; {cost}; {disputed}.{unknown}"


TOOL = Tool(
    name="explain_size",
    description="One size: facts with source and line, disputes between sources and why, prices, regions, retirement.",
    arguments=ARGUMENTS,
    required=("size",),
    output={
        "size": TEXT,
        "status": TEXT,
        "retirement_date": {"type": ["string", "null"]},
        "facts": LIST,
        "unknown": LIST,
        "disputes": LIST,
        "regions": OBJECT,
        "prices": LIST,
        **OMITTED,
    },
    always=("size", "status", "facts", "disputes", "regions", "prices"),
    run=explain_size,
)
