"""The tools about sizes: find_sizes, compare_sizes, explain_size with sources of figures, and price_history."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from app.catalog.fields import is_inapplicable
from app.catalog.names import RegionCode
from app.catalog.price_notes import price_note
from app.catalog.queries.facets import unknown_note
from app.catalog.queries.lookups import explain_other_provider
from app.catalog.queries.params import CompareSearch, SizeFilter, SizeParams, SizeSearch
from app.catalog.queries.prices import PriceHistorySearch, PriceLine, PriceSearch, merge_runs, why_none_in_force
from app.catalog.queries.provenance import FactSearch
from app.errors import BadQuery
from app.mcp import tool
from app.nearest import did_you_mean, nearest
from app.questions import Inquiry
from app.schemas.sizes import SizeOut
from app.validation import plural

DEFAULT_LIMIT = 6

_BASIC = ("region", "usd_per_hour", "price_as_of", "vcpus", "memory_gib", "gpu_count")
_OF_GPUS = ("gpu_model", "gpu_memory_gib", "gpu_memory_gib_per_gpu")
_SAID: Mapping[str, str] = {
    "gpu": "H100, 'A100 80GB'",
    "min_gpu_mem": "of all GPUs together",
    "min_gpus": "8, or 1/6",
    "max_gpus": "0: CPU sizes",
    "cpu": "EPYC 9*",
    "name": "Standard_NC*_v5",
    "status": "current, preview, retiring, retired, any",
}
"""What the name of a filter does not say."""
_LEFT_OUT = frozenset(
    {
        *("q", "gpu_vendor", "verified", "disputed", "available_in", "max_gpu_mem", "max_gpu_mem_per_gpu"),
        *("min_infiniband_gbps", "min_usd_per_hour", "max_usd_per_hour", "region", "os", "purchase", *tool.FEATURES),
        *("cpu_vendor", "min_data_disks", "min_uncached_disk_iops", "min_uncached_disk_mbps", "disk_controller"),
        *("min_nics", "confidential_computing", "min_zones", "fabric"),
    }
)
"""Filters that agents do not have, to keep the tools short, or have by arguments that other tools have, too."""
_FIRST_FILTERS = (
    *("gpu", "min_gpu_mem", "min_gpu_mem_per_gpu", "min_gpus", "max_gpus", "min_vcpus", "max_vcpus", "min_memory"),
    *("max_memory", "min_local_disk", "min_network_gbps", "arch"),
)
_OF_SIZES = [name for name in dict.fromkeys((*_FIRST_FILTERS, *SizeFilter.model_fields)) if name not in _LEFT_OUT]
_PRICES: Mapping[str, tool.Argument] = {
    "region": replace(tool.REGION, description="eastus or 'East US'; several with commas"),
    "os": replace(tool.OS, description="linux: also Windows with Azure Hybrid Benefit"),
    "purchase": tool.PURCHASE,
    "max_usd_per_hour": tool.Argument(type="number", read=tool.read_number),
    "as_of": replace(tool.DAY, description="prices of a day, YYYY-MM-DD"),
    "currency": replace(tool.CURRENCY, description="ISO 4217, beside USD"),
}


FIND_ARGUMENTS: Mapping[str, tool.Argument] = {
    **{name: tool.filter_argument(name, _SAID.get(name, "")) for name in _FIRST_FILTERS},
    "features": tool.Argument(type="string", description="nvlink, local_nvme …", read=tool.read_words),
    **{name: tool.filter_argument(name, _SAID.get(name, "")) for name in _OF_SIZES if name not in _FIRST_FILTERS},
    **_PRICES,
    "sort": tool.Argument(type="string", description="usd_per_hour (default), -gpu_memory_gib …", read=tool.read_texts),
    "fields": tool.FIELDS,
    "limit": tool.Argument(type="integer", description=f"default {DEFAULT_LIMIT}", read=tool.read_limit),
}


def find_sizes(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Find sizes; raises what the search raises, and BadQuery for a feature or a field that there is not."""
    features = values.get("features", ())
    for name in features:
        if name not in tool.FEATURES:
            hint = did_you_mean(nearest(name, tool.FEATURES), " ")
            raise BadQuery("features", name, f"{hint}allowed are {', '.join(tool.FEATURES)}")
    params = {"sort": ["usd_per_hour"], **tool.given(values, *_OF_SIZES, *_PRICES, "sort")}
    params |= dict.fromkeys(features, True)
    if "gpu" in values:
        params["gpu"] = tool.find_gpus(inquiry, values["gpu"])
    fields = values.get("fields", ())
    _check_fields(fields, SizeOut.model_fields)
    search = SizeSearch.model_validate({**params, "limit": values.get("limit", DEFAULT_LIMIT)})
    page = inquiry.ask("GET /sizes", search)
    items = [_to_item(item, fields) for item in page["items"]]
    content: dict[str, Any] = {"total": page["total"], "items": items, **_rate_of(page)}
    if "no_price" in page:
        content["no_price"] = page["no_price"]["detail"]
    if page["unknown"]:
        content["unknown"] = page["unknown"]
    return tool.Reply(
        text=_found_text(page, search),
        content=content,
        lists=("items",),
        totals={"items": page["total"]},
        narrow=f"add gpu, region, max_usd_per_hour or another bound{tool.more_by_limit(values, DEFAULT_LIMIT)}",
    )


def _rate_of(page: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exchange rate of an answer with prices in another currency; empty for other answers."""
    if "exchange_rate" not in page:
        return {}
    return {"exchange_rate": {name: page["exchange_rate"][name] for name in ("currency", "units_per_usd", "day")}}


def _check_fields(fields: Sequence[str], known: Collection[str]) -> None:
    for name in fields:
        if name not in known:
            hint = did_you_mean(nearest(name, known)) or f"allowed are {', '.join(known)}"
            raise BadQuery("fields", name, f"no such field; {hint}")


def _to_item(item: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """Return the fields that were asked for, else those that matter for most questions; of CPU sizes no GPU."""
    if fields:
        chosen = {"name": item["name"], **{name: item.get(name) for name in fields}}
        return chosen | (tool.adjustment_of(item) if "usd_per_hour" in fields else {})
    shown = {"name": item["name"], **{name: item[name] for name in _BASIC}, **tool.adjustment_of(item)}
    if item["gpu_count"] != 0:
        shown |= {name: item[name] for name in _OF_GPUS}
    if item["gpu_fraction"]:
        shown["gpu_fraction"] = item["gpu_fraction"]
    if item["status"] != "current":
        shown |= {"status": item["status"], "retirement_date": item["retirement_date"]}
    if not item["verified"]:
        shown["verified"] = False
    if item["disputed"]:
        shown["disputed_fields"] = item["disputed_fields"]
    if note := price_note(item, "price_"):
        shown["price_note"] = note
    if "converted" in item:
        shown["price_per_hour"] = item["converted"]["price_per_hour"]
    return shown


def _found_text(page: Mapping[str, Any], search: SizeSearch) -> str:
    undecided = unknown_note(page["unknown"])
    notes = f" {page['no_price']['detail']}." if "no_price" in page else ""
    notes += f" {undecided}." if undecided else ""
    if not page["items"]:
        return (
            "No size is known to have all of this; drop a filter. "
            f"status=any includes sizes that can no longer be ordered.{notes}"
        )
    first = page["items"][0]
    price = "price unknown"
    if first["usd_per_hour"] is not None:
        converted = first.get("converted", {"price_per_hour": first["usd_per_hour"], "currency": "USD"})
        amount = f"{converted['price_per_hour']} {converted['currency']}/h"
        where = f"in {first['region']}, last seen {first['price_as_of']}"
        price = f"{amount}{tool.list_price_text(first)} {search.purchase} {where}"
        if note := price_note(first, "price_"):
            price += f" ({note})"
    name = tool.mark_unverified(first["name"], verified=first["verified"])
    key = search.sort[0].removeprefix("-")
    sorted_by = f", {key} {first[key]}" if key not in ("usd_per_hour", "name") and first.get(key) is not None else ""
    return f"{plural(page['total'], 'size')}; first by {', '.join(search.sort)}: {name}{sorted_by}, {price}.{notes}"


FIND_SIZES = tool.Tool(
    name="find_sizes",
    description="Find VM sizes by GPU, memory, vCPUs, region, price; cheapest first. total counts all.",
    arguments=FIND_ARGUMENTS,
    output={
        "total": {"type": "integer"},
        "items": tool.LIST,
        "exchange_rate": tool.OBJECT,
        "no_price": tool.TEXT,
        "unknown": tool.OBJECT,
    },
    always=("total", "items"),
    run=find_sizes,
)


# compare_sizes

COMPARE_ARGUMENTS: Mapping[str, tool.Argument] = {
    "sizes": tool.Argument(type="string", description="2 to 10 names with commas", sets="size", read=tool.read_sizes),
    "baseline": tool.Argument(type="string", description="one of them; default the first", read=tool.read_size),
    "region": tool.REGION,
    "os": tool.OS,
    "purchase": tool.SAME_PURCHASE,
    "as_of": tool.DAY,
    "currency": tool.CURRENCY,
    "fields": tool.FIELDS,
}

_FIRST_FIELDS = (
    *("usd_per_hour", "list_usd_per_hour", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu"),
    *("vcpus", "memory_gib", "estimate_formula", "spot_usd_per_hour", "region", "status", "retirement_date"),
    *("usd_per_gpu_hour", "usd_per_gpu_gib_hour"),
    *("gpus_memory_bandwidth_gb_per_s", "gpus_bf16_tflops", "gpus_fp8_tflops", "usd_per_vcpu_hour", "nvlink"),
    *("gpu_interconnect", "network_mbps", "infiniband_gbps", "nvme_disk_gib", "temp_disk_gib", "disputed_fields"),
)
"""Fields in the order in which they matter; a short reply keeps the first ones."""
_LAST_FIELDS = ("source_url", "verified", "price_age_days", "provider", "flags", "quota_family", "gpu_id")


def compare_sizes(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Compare sizes; without `fields`, those that differ. Raises what the comparison raises."""
    params = tool.given(values, "baseline", "region", "os", "purchase", "as_of", "currency")
    comparison = inquiry.ask("GET /compare", CompareSearch.model_validate({"size": values["sizes"], **params}))
    lines = {line["field"]: line for line in comparison["fields"]}
    order = [
        *(name for name in _FIRST_FIELDS if name in lines),
        *(name for name in lines if name not in (*_FIRST_FIELDS, *_LAST_FIELDS)),
    ]
    differing = [name for name in order if lines[name]["differs"]]
    chosen = values.get("fields") or [name for name in differing if name in _FIRST_FIELDS]
    _check_fields(chosen, lines)
    shown = [_to_line(lines[name]) for name in chosen]
    names = {
        cell["size"]: tool.mark_unverified(cell["size"], verified=cell["value"]) for cell in lines["verified"]["values"]
    }
    values_of = {name: [cell["value"] for cell in line["values"]] for name, line in lines.items()}
    sizes = [dict(zip(values_of, values, strict=True)) for values in zip(*values_of.values(), strict=True)]
    unknown = [name for name in lines if any(size[name] is None and not is_inapplicable(name, size) for size in sizes)]
    return tool.Reply(
        text=_comparison_text(comparison, lines, names, values.get("region")),
        content={
            "baseline": comparison["baseline"],
            "sizes": comparison["sizes"],
            "fields": shown,
            "equal": sum(not line["differs"] and None not in values_of[name] for name, line in lines.items()),
            "unknown": len(unknown),
            **_rate_of(comparison),
        },
        lists=("fields",),
        totals={"fields": len(chosen if "fields" in values else differing)},
        narrow="name the fields",
    )


def _to_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of one field in the order of the sizes, amounts with their difference in percent."""
    cells = line["values"]
    shown = {"field": line["field"], "values": [cell["value"] for cell in cells]}
    percent = [cell["difference_percent"] for cell in cells]
    if line["unit"]:
        shown["unit"] = line["unit"]
    if any(percent):
        shown["percent"] = [None if change is None else round(change, 1) for change in percent]
    return shown


def _comparison_text(
    comparison: Mapping[str, Any],
    lines: Mapping[str, Mapping[str, Any]],
    names: Mapping[str, str],
    regions: Sequence[str] | None,
) -> str:
    prices = lines["usd_per_hour"]["values"]
    others = [
        f"{names[cell['size']]} {cell['difference_percent']:+.1f}%"
        for cell in prices
        if cell["size"] != comparison["baseline"] and cell["difference_percent"] is not None
    ]
    changes = f"; price an hour: {', '.join(others)}" if others else ""
    if regions and (unpriced := [names[cell["size"]] for cell in prices if cell["value"] is None]):
        changes += f"; no price in {', '.join(regions)}: {', '.join(unpriced)}"
    formulas = lines["estimate_formula"]["values"] if "estimate_formula" in lines else ()
    if computed := [names[cell["size"]] for cell in formulas if cell["value"] is not None]:
        changes += f"; computed price: {', '.join(computed)}"
    return f"{plural(len(comparison['sizes']), 'size')} compared with {names[comparison['baseline']]}{changes}."


COMPARE_SIZES = tool.Tool(
    name="compare_sizes",
    description="Compare sizes field by field: values in the order of sizes, percent difference from the baseline.",
    arguments=COMPARE_ARGUMENTS,
    required=("sizes",),
    output={
        "baseline": tool.TEXT,
        "sizes": tool.LIST,
        "fields": tool.LIST,
        "equal": {"type": "integer"},
        "unknown": {"type": "integer"},
        "exchange_rate": tool.OBJECT,
    },
    always=("baseline", "sizes", "fields"),
    run=compare_sizes,
)


EXPLAIN_ARGUMENTS: Mapping[str, tool.Argument] = {
    "size": tool.Argument(type="string", description="any spelling: NC24ads A100 v4", read=tool.read_size),
    "fields": replace(tool.FIELDS, sets="field"),
    "region": tool.REGION,
    "os": tool.OS,
    "as_of": tool.DAY,
    "currency": tool.CURRENCY,
}

_FIRST_FACTS = (
    *("gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "vcpus", "memory_gib", "cpu_model"),
    *("retirement_date", "preview", "withdrawn", "network_mbps", "infiniband_gbps", "nvme_disk_gib", "temp_disk_gib"),
    *("gpu_interconnect", "max_data_disks", "uncached_disk_iops"),
)
"""Fields in the order in which they matter; a short reply keeps the first ones."""
_UNITS = {"vcpus": "vCPUs", "memory_gib": "GiB"}
_DEFAULT_FACTS = 8
_CHEAPEST_REGIONS = 3
_MOST = 500


def explain_size(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Explain a size; raises NotFound for it, BadQuery for a field, a region or a day."""
    name, fields = values["size"], values.get("fields", [])
    day, currency = tool.given(values, "as_of"), tool.given(values, "currency")
    size = inquiry.ask("GET /sizes/{name}", SizeParams.model_validate({**day, **currency}), name)
    of_fields = FactSearch.model_validate({"field": list(fields), "limit": _MOST})
    facts: list[dict[str, Any]] = inquiry.ask("GET /sizes/{name}/facts", of_fields, name)["items"]
    accepted = [fact for fact in facts if fact["verdict"] == "accepted"]
    ranks = {field: rank for rank, field in enumerate(_FIRST_FACTS)}
    shown = sorted(accepted, key=lambda fact: (ranks.get(fact["field"], len(ranks)), fact["field"]))[
        : None if fields else _DEFAULT_FACTS
    ]
    unknown = sorted(
        {*fields} - {fact["field"] for fact in accepted} - {name for name in size if size[name] is not None}
    )
    offers = {"os": "linux", **day, **currency, **tool.given(values, "os")}
    prices = _ask_prices(inquiry, name, offers, values.get("region"))
    content: dict[str, Any] = {
        "size": size["name"],
        "series": size["series"],
        "status": size["status"],
        "retirement_date": size["retirement_date"],
        "verified": size["verified"],
        "facts": [_to_fact(fact) for fact in shown],
        **({"unknown": unknown} if unknown else {}),
        "disputes": _to_disputes(facts),
        **prices,
        **_rate_of(size),
    }
    return tool.Reply(
        text=_size_text(content, size, _unpriced(inquiry, size, values.get("region", ()), prices["prices"])),
        content=content,
        lists=("prices", "facts", "disputes"),
        totals={"facts": len(accepted)},
        narrow="fields names the facts to show; region the prices",
    )


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
    cheapest = sorted(on_demand, key=lambda price: (price["unusual"], price["usd_per_hour"], price["region"]))
    chosen = list(regions or [price["region"] for price in cheapest[:1]])
    content: dict[str, Any] = {
        "regions": {
            "priced": len(on_demand),
            "cheapest": [
                {"region": price["region"], "usd_per_hour": price["usd_per_hour"], **tool.adjustment_of(price)}
                for price in cheapest[:_CHEAPEST_REGIONS]
            ],
        },
        "prices": [],
    }
    if chosen:
        asked = PriceSearch.model_validate({**params, "region": chosen, "limit": _MOST})
        for price in inquiry.ask("GET /sizes/{name}/prices", asked, name)["items"]:
            shown = {field: price[field] for field in ("region", "purchase", "usd_per_hour")}
            shown |= {"last_seen": price["seen_until"], "source": price["source_id"], **tool.adjustment_of(price)}
            if note := price_note(price):
                shown["note"] = note
            if "converted" in price:
                shown["price_per_hour"] = price["converted"]["price_per_hour"]
            content["prices"].append(shown)
    return content


def _unpriced(
    inquiry: Inquiry, size: Mapping[str, Any], regions: Sequence[str], prices: Sequence[Mapping[str, Any]]
) -> str:
    """Return in words in which of the regions that were asked for a size has no price, and whose they are."""
    missing = [code for code in map(RegionCode, regions) if code not in {price["region"] for price in prices}]
    places = inquiry.catalog.snapshot.regions
    of_others = (explain_other_provider(size["name"], size["provider"], code, places) for code in missing)
    return "".join(f"; {text}" for text in filter(None, (missing and f"no price in {', '.join(missing)}", *of_others)))


def _size_text(content: Mapping[str, Any], size: Mapping[str, Any], unpriced: str) -> str:
    gpus = size["gpu_fraction"] or size["gpu_count"]
    what = f"{gpus:g}" if isinstance(gpus, float) else f"{gpus}"
    hardware = [f"{what} x {size['gpu_model']}"] if size["gpu_model"] and gpus else []
    hardware += [f"{size[name]:g} {unit}" for name, unit in _UNITS.items() if size[name] is not None]
    described = ", ".join(hardware) or "nothing is known of its hardware"
    day = content["retirement_date"]
    status = "retires" if day and content["status"] != "retired" else ""
    ends = f"{status and f', {status}'} {day}" if day else ""
    disputed = plural(len(content["disputes"]), "dispute")
    price = content["regions"]["cheapest"][:1]
    cost = "price unknown"
    if price:
        cost = f"from {price[0]['usd_per_hour']} USD/h{tool.list_price_text(price[0])} in {price[0]['region']}"
    unknown = f" Unknown: {', '.join(content['unknown'])}." if "unknown" in content else ""
    return f"{content['size']} ({content['status']}{ends}): {described}; {cost}{unpriced}; {disputed}.{unknown}"


EXPLAIN_SIZE = tool.Tool(
    name="explain_size",
    description="One size: facts with source and line, disputes between sources and why, prices, regions, retirement.",
    arguments=EXPLAIN_ARGUMENTS,
    required=("size",),
    output={
        "size": tool.TEXT,
        "status": tool.TEXT,
        "retirement_date": {"type": ["string", "null"]},
        "facts": tool.LIST,
        "unknown": tool.LIST,
        "disputes": tool.LIST,
        "regions": tool.OBJECT,
        "prices": tool.LIST,
        "exchange_rate": tool.OBJECT,
    },
    always=("size", "status", "facts", "disputes", "regions", "prices"),
    run=explain_size,
)


# price_history

HISTORY_LIMIT = 10

HISTORY_ARGUMENTS: Mapping[str, tool.Argument] = {
    "size": tool.Argument(type="string", read=tool.read_size),
    "region": tool.Argument(type="string", description="default: where it is cheapest"),
    "os": tool.OS,
    "purchase": tool.SAME_PURCHASE,
    "as_of": tool.Argument(type="string", description="a day: the price in force on it"),
    "since": tool.Argument(type="string", description="first day"),
    "until": tool.Argument(type="string", description="last day"),
    "known_at": tool.Argument(type="string", description="as the catalog knew it on that day"),
    "limit": tool.Argument(type="integer", description=f"default {HISTORY_LIMIT}", read=tool.read_limit),
}


def price_history(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Tell what a size cost; raises what the queries raise, and BadQuery for a size without a price."""
    name = values["size"]
    region = values.get("region") or _cheapest_region(inquiry, values)
    period = tool.given(values, "os", "purchase", "since", "until", "known_at")
    search = PriceHistorySearch.model_validate({"region": region, **period, "limit": _MOST})
    history = inquiry.ask("GET /sizes/{name}/price-history", search, name)
    # Without `as_of` the price in force is the last one of the history.
    last = search.until or inquiry.catalog.today
    days = {"as_of": last} | tool.given(values, "as_of", "known_at")
    asked = PriceSearch.model_validate(
        {"region": [search.region], "os": search.os, "purchase": search.purchase, **days, "limit": 1}
    )
    in_force = next(iter(inquiry.ask("GET /sizes/{name}/prices", asked, name)["items"]), None)
    day = values.get("as_of")
    lines = merge_runs(history["items"], in_force)[::-1]
    size = inquiry.ask("GET /sizes/{name}", SizeParams(), name)
    content: dict[str, Any] = {
        "size": size["name"],
        "region": search.region,
        "os": search.os,
        "purchase": search.purchase,
    }
    if day is not None or (in_force is not None and not lines):
        content["in_force"] = {"day": day or last.isoformat(), "usd_per_hour": None} | _to_price(in_force, lines)
    content["prices"] = [_to_history_item(line) for line in lines[: values.get("limit", HISTORY_LIMIT)]]
    return tool.Reply(
        text=_history_text(content, lines, in_force, why_none_in_force(history)),
        content=content,
        lists=("prices",),
        totals={"prices": len(lines)},
        narrow=f"since, until{tool.more_by_limit(values, HISTORY_LIMIT)}",
    )


def _cheapest_region(inquiry: Inquiry, values: Mapping[str, Any]) -> str:
    """Return the region in which a size is cheapest today."""
    name = inquiry.ask("GET /sizes/{name}", SizeParams(), values["size"])["name"]
    offers = tool.given(values, "os", "purchase")
    search = SizeSearch.model_validate({"name": [name], "status": ["any"], **offers, "limit": 1})
    items = inquiry.ask("GET /sizes", search)["items"]
    if not items or items[0]["region"] is None or items[0]["usd_per_hour"] is None:
        raise BadQuery("region", None, f"is needed: no price of {name} of this kind is in force today")
    region: str = items[0]["region"]
    return region


def _to_history_item(line: PriceLine) -> dict[str, Any]:
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
        **tool.adjustment_of(price),
        "since": next((line.since for line in lines if line.in_force), price["valid_from"]),
        "last_seen": price["seen_until"],
        "source": price["source_id"],
    }


def _history_text(
    content: Mapping[str, Any],
    lines: Sequence[PriceLine],
    in_force: Mapping[str, Any] | None,
    why_none: str,
) -> str:
    kind = f"{content['size']} in {content['region']}, {content['os']} {content['purchase']}"
    if not lines and in_force is None:
        return f"No price of {kind} is known."
    if "in_force" in content:
        day = content["in_force"]["day"]
        if in_force is None:
            return f"{kind} on {day}: unknown."
        paid = f"{in_force['usd_per_hour']} USD/h{tool.list_price_text(in_force)}"
        return f"{kind} on {day}: {paid}, last seen {in_force['seen_until']}."
    newest = lines[0]
    ended = "" if in_force else f"; not in force, as {why_none}"
    ended += f"; {note}" if (note := newest.note()) else ""
    others = f"; {plural(len(lines) - 1, 'other price')}" if len(lines) > 1 else ""
    return f"{kind}: {newest.usd_per_hour} USD/h since {newest.since}, last seen {newest.last_seen}{ended}{others}."


PRICE_HISTORY = tool.Tool(
    name="price_history",
    description="What a size cost in a region over time, newest first, with changes in percent; as_of: on one day.",
    arguments=HISTORY_ARGUMENTS,
    required=("size",),
    output={
        "size": tool.TEXT,
        "region": tool.TEXT,
        "os": tool.TEXT,
        "purchase": tool.TEXT,
        "in_force": tool.OBJECT,
        "prices": tool.LIST,
    },
    always=("size", "region", "os", "purchase", "prices"),
    run=price_history,
)
