"""The tool find_sizes: sizes by GPU, memory, region and price, the cheapest first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.catalog.price_notes import price_note
from app.catalog.queries.params import FacetSearch, SizeFilter, SizeSearch
from app.errors import BadQuery
from app.mcp.arguments import (
    FEATURES,
    Argument,
    filter_argument,
    read_number,
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
_FIRST = (
    *("gpu", "min_gpu_mem", "min_gpu_mem_per_gpu", "min_gpus", "max_gpus", "min_vcpus", "max_vcpus", "min_memory"),
    *("max_memory", "min_local_disk", "min_network_gbps", "arch"),
)
_OF_SIZES = [name for name in dict.fromkeys((*_FIRST, *SizeFilter.model_fields)) if name not in _LEFT_OUT]
_PRICES: Mapping[str, Argument] = {
    "region": REGION,
    "os": replace(OS, description="linux: also Windows with Azure Hybrid Benefit"),
    "purchase": PURCHASE,
    "max_usd_per_hour": Argument(type="number", read=read_number),
    "as_of": DAY,
    "currency": CURRENCY,
}


ARGUMENTS: Mapping[str, Argument] = {
    **{name: filter_argument(name, _SAID.get(name, "")) for name in _FIRST},
    "features": Argument(type="string", description="nvlink, local_nvme …", read=read_words),
    **{name: filter_argument(name, _SAID.get(name, "")) for name in _OF_SIZES if name not in _FIRST},
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
    if undecided := inquiry.ask("GET /facets", search.as_params(FacetSearch))["undecided"]["detail"]:
        content["undecided"] = undecided
    return Reply(
        text=_to_text(page, search, undecided),
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


def _to_text(page: Mapping[str, Any], search: SizeSearch, undecided: str | None) -> str:
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


TOOL = Tool(
    name="find_sizes",
    description="Find VM sizes by GPU, memory, vCPUs, region, price; cheapest first. total counts all.",
    arguments=ARGUMENTS,
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
