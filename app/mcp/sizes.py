"""The tools about many sizes: find_sizes lists them, the cheapest first; compare_sizes sets them side by side."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.catalog.price_notes import price_note
from app.catalog.queries.facets import unknown_note
from app.catalog.queries.params import CompareSearch, SizeFilter, SizeSearch
from app.errors import BadQuery
from app.mcp.arguments import (
    FEATURES,
    Argument,
    filter_argument,
    read_number,
    read_size,
    read_sizes,
    read_texts,
    read_words,
)
from app.mcp.tool import (
    CURRENCY,
    DAY,
    FIELDS,
    LIST,
    OBJECT,
    OMITTED,
    OS,
    PURCHASE,
    REGION,
    SAME_PURCHASE,
    TEXT,
    Reply,
    Tool,
    find_gpus,
    given,
    mark_unverified,
    plural,
    read_limit,
)
from app.nearest import did_you_mean, nearest
from app.questions import Inquiry
from app.schemas.sizes import SizeOut

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
        *("min_infiniband_gbps", "min_usd_per_hour", "max_usd_per_hour", "region", "os", "purchase", *FEATURES),
        *("cpu_vendor", "min_data_disks", "min_uncached_disk_iops", "min_uncached_disk_mbps", "disk_controller"),
        *("min_nics", "confidential_computing"),
    }
)
"""Filters that agents do not have, to keep the tools short, or have by arguments that other tools have, too."""
_FIRST_FILTERS = (
    *("gpu", "min_gpu_mem", "min_gpu_mem_per_gpu", "min_gpus", "max_gpus", "min_vcpus", "max_vcpus", "min_memory"),
    *("max_memory", "min_local_disk", "min_network_gbps", "arch"),
)
_OF_SIZES = [name for name in dict.fromkeys((*_FIRST_FILTERS, *SizeFilter.model_fields)) if name not in _LEFT_OUT]
_PRICES: Mapping[str, Argument] = {
    "region": REGION,
    "os": replace(OS, description="linux: also Windows with Azure Hybrid Benefit"),
    "purchase": PURCHASE,
    "max_usd_per_hour": Argument(type="number", read=read_number),
    "as_of": DAY,
    "currency": CURRENCY,
}


FIND_ARGUMENTS: Mapping[str, Argument] = {
    **{name: filter_argument(name, _SAID.get(name, "")) for name in _FIRST_FILTERS},
    "features": Argument(type="string", description="nvlink, local_nvme …", read=read_words),
    **{name: filter_argument(name, _SAID.get(name, "")) for name in _OF_SIZES if name not in _FIRST_FILTERS},
    **_PRICES,
    "sort": Argument(type="string", description="usd_per_hour (default), -gpu_memory_gib …", read=read_texts),
    "fields": FIELDS,
    "limit": Argument(type="integer", description=f"default {DEFAULT_LIMIT}", read=read_limit),
}


def find_sizes(inquiry: Inquiry, values: dict[str, Any]) -> Reply:
    """Find sizes; raises what the search raises, and BadQuery for a feature or a field that there is not."""
    params = {
        "sort": ["usd_per_hour"],
        **given(values, *_OF_SIZES, *_PRICES, "sort"),
        **_flags(values.get("features", ())),
    }
    if "gpu" in values:
        params["gpu"] = find_gpus(inquiry, values["gpu"])
    fields = _check_fields(values.get("fields", ()))
    search = SizeSearch.model_validate({**params, "limit": values.get("limit", DEFAULT_LIMIT)})
    page = inquiry.ask("GET /sizes", search)
    items = [_to_item(item, fields) for item in page["items"]]
    content: dict[str, Any] = {"total": page["total"], "items": items}
    if "exchange_rate" in page:
        content["exchange_rate"] = {name: page["exchange_rate"][name] for name in ("currency", "units_per_usd", "day")}
    if "no_price" in page:
        content["no_price"] = page["no_price"]["detail"]
    if undecided := unknown_note(page["unknown"]):
        content["undecided"] = undecided
    return Reply(
        text=_found_text(page, search, undecided),
        content=content,
        lists=("items",),
        totals={"items": page["total"]},
        narrow="add gpu, region, max_usd_per_hour or another bound; limit shows up to 50",
    )


def _flags(features: list[str]) -> dict[str, bool]:
    for name in features:
        if name not in FEATURES:
            hint = did_you_mean(nearest(name, FEATURES), " ")
            raise BadQuery("features", name, f"{hint}allowed are {', '.join(FEATURES)}")
    return dict.fromkeys(features, True)


def _check_fields(fields: list[str]) -> list[str]:
    for name in fields:
        if name not in SizeOut.model_fields:
            hint = did_you_mean(nearest(name, SizeOut.model_fields))
            raise BadQuery("fields", name, f"no such field{hint and f'; {hint}'}")
    return fields


def _to_item(item: Mapping[str, Any], fields: list[str]) -> dict[str, Any]:
    """Return the fields that were asked for, else those that matter for most questions; of CPU sizes no GPU."""
    if fields:
        return {"name": item["name"], **{name: item.get(name) for name in fields}}
    shown = {"name": item["name"], **{name: item[name] for name in _BASIC}}
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


def _found_text(page: Mapping[str, Any], search: SizeSearch, undecided: str | None) -> str:
    known = f" {page['no_price']['detail']}." if "no_price" in page else ""
    known += f" {undecided}." if undecided else ""
    if not page["items"]:
        return (
            "No size is known to have all of this; drop a filter. "
            f"status=any includes sizes that can no longer be ordered.{known}"
        )
    first = page["items"][0]
    price = "price unknown"
    if first["usd_per_hour"] is not None:
        converted = first.get("converted", {"price_per_hour": first["usd_per_hour"], "currency": "USD"})
        amount = f"{converted['price_per_hour']} {converted['currency']}/h"
        price = f"{amount} {search.purchase} in {first['region']}, last seen {first['price_as_of']}"
        if note := price_note(first, "price_"):
            price += f" ({note})"
    name = mark_unverified(first["name"], verified=first["verified"])
    return f"{plural(page['total'], 'size')}; first by {', '.join(search.sort)}: {name}, {price}.{known}"


FIND_SIZES = Tool(
    name="find_sizes",
    description="Find VM sizes by GPU, memory, vCPUs, region, price; cheapest first. total counts all.",
    arguments=FIND_ARGUMENTS,
    output={
        "total": {"type": "integer"},
        "items": LIST,
        "exchange_rate": OBJECT,
        "no_price": TEXT,
        "undecided": TEXT,
        **OMITTED,
    },
    always=("total", "items"),
    run=find_sizes,
)


# compare_sizes

COMPARE_ARGUMENTS: Mapping[str, Argument] = {
    "sizes": Argument(type="string", description="2 to 10 names with commas", sets="size", read=read_sizes),
    "baseline": Argument(type="string", description="one of them; default the first", read=read_size),
    "region": REGION,
    "os": OS,
    "purchase": SAME_PURCHASE,
    "as_of": DAY,
    "currency": CURRENCY,
    "fields": FIELDS,
}

_FIRST_FIELDS = (
    *("usd_per_hour", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "vcpus", "memory_gib"),
    *("spot_usd_per_hour", "region", "status", "retirement_date", "usd_per_gpu_hour", "usd_per_gpu_gib_hour"),
    *("gpus_memory_bandwidth_gb_per_s", "gpus_bf16_tflops", "gpus_fp8_tflops", "usd_per_vcpu_hour", "nvlink"),
    *("gpu_interconnect", "network_mbps", "infiniband_gbps", "nvme_disk_gib", "temp_disk_gib", "disputed_fields"),
)
"""Fields in the order in which they matter; a short reply keeps the first ones."""
_LAST_FIELDS = ("source_url", "verified", "price_age_days", "provider", "flags", "quota_family", "gpu_id")


def compare_sizes(inquiry: Inquiry, values: dict[str, Any]) -> Reply:
    """Compare sizes; without `fields`, those that differ. Raises what the comparison raises."""
    params = given(values, "baseline", "region", "os", "purchase", "as_of", "currency")
    found = inquiry.ask("GET /compare", CompareSearch.model_validate({"size": values["sizes"], **params}))
    lines = {line["field"]: line for line in found["fields"]}
    differing = _differing(lines)
    chosen = values.get("fields") or [name for name in differing if name in _FIRST_FIELDS]
    for name in chosen:
        if name not in lines:
            hint = did_you_mean(nearest(name, lines))
            raise BadQuery("fields", name, f"no such field{hint and f'; {hint}'}")
    shown = [_to_line(lines[name]) for name in chosen]
    names = {
        cell["size"]: mark_unverified(cell["size"], verified=cell["value"]) for cell in lines["verified"]["values"]
    }
    return Reply(
        text=_comparison_text(found, lines["usd_per_hour"]["values"], names),
        content={
            "baseline": found["baseline"],
            "sizes": found["sizes"],
            "fields": shown,
            "equal": sum(not line["differs"] for line in lines.values()),
        },
        lists=("fields",),
        totals={"fields": len(chosen if "fields" in values else differing)},
        narrow="name the fields",
    )


def _differing(lines: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the fields that differ, the most important first."""
    order = [
        *(name for name in _FIRST_FIELDS if name in lines),
        *(name for name in lines if name not in (*_FIRST_FIELDS, *_LAST_FIELDS)),
    ]
    return [name for name in order if lines[name]["differs"]]


def _to_line(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of one field in the order of the sizes, amounts with their difference in percent."""
    cells = line["values"]
    shown = {"field": line["field"], "values": [cell["value"] for cell in cells]}
    percent = [cell["difference_percent"] for cell in cells]
    if line["unit"]:
        shown["unit"] = line["unit"]
    if any(percent):
        shown["percent"] = [None if one is None else round(one, 1) for one in percent]
    return shown


def _comparison_text(found: Mapping[str, Any], prices: list[Mapping[str, Any]], names: Mapping[str, str]) -> str:
    others = [
        f"{names[cell['size']]} {cell['difference_percent']:+.1f}%"
        for cell in prices
        if cell["size"] != found["baseline"] and cell["difference_percent"] is not None
    ]
    told = f"; price an hour: {', '.join(others)}" if others else ""
    return f"{plural(len(found['sizes']), 'size')} compared with {names[found['baseline']]}{told}."


COMPARE_SIZES = Tool(
    name="compare_sizes",
    description="Compare sizes field by field: values in the order of sizes, percent difference from the baseline.",
    arguments=COMPARE_ARGUMENTS,
    required=("sizes",),
    output={
        "baseline": TEXT,
        "sizes": {"type": "array"},
        "fields": LIST,
        "equal": {"type": "integer"},
        **OMITTED,
    },
    always=("baseline", "sizes", "fields"),
    run=compare_sizes,
)
