"""The tool compare_sizes: sizes field by field, with the differences from a baseline."""

from collections.abc import Mapping
from typing import Any

from app.catalog.queries.params import CompareSearch
from app.errors import BadQuery
from app.mcp.arguments import Argument, read_size, read_sizes
from app.mcp.tool import (
    CURRENCY,
    DAY,
    FIELDS,
    LIST,
    OMITTED,
    OS,
    REGION,
    SAME_PURCHASE,
    TEXT,
    Reply,
    Tool,
    given,
    mark_unverified,
    plural,
)
from app.nearest import did_you_mean, nearest
from app.questions import Inquiry

ARGUMENTS: Mapping[str, Argument] = {
    "sizes": Argument(type="string", description="2 to 10 names with commas", sets="size", read=read_sizes),
    "baseline": Argument(type="string", description="one of them; default the first", read=read_size),
    "region": REGION,
    "os": OS,
    "purchase": SAME_PURCHASE,
    "as_of": DAY,
    "currency": CURRENCY,
    "fields": FIELDS,
}

_FIRST = (
    *("usd_per_hour", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "vcpus", "memory_gib"),
    *("spot_usd_per_hour", "region", "status", "retirement_date", "usd_per_gpu_hour", "usd_per_gpu_gib_hour"),
    *("gpus_memory_bandwidth_gb_per_s", "gpus_bf16_tflops", "gpus_fp8_tflops", "usd_per_vcpu_hour", "nvlink"),
    *("gpu_interconnect", "network_mbps", "infiniband_gbps", "nvme_disk_gib", "temp_disk_gib", "disputed_fields"),
)
"""Fields in the order in which they matter; a short reply keeps the first ones."""
_LEAST = ("source_url", "verified", "price_age_days", "provider", "flags", "quota_family", "gpu_id")


def compare_sizes(inquiry: Inquiry, values: dict[str, Any]) -> Reply:
    """Compare sizes; without `fields`, those that differ. Raises what the comparison raises."""
    params = given(values, "baseline", "region", "os", "purchase", "as_of", "currency")
    found = inquiry.ask("GET /compare", CompareSearch.model_validate({"size": values["sizes"], **params}))
    lines = {line["field"]: line for line in found["fields"]}
    differing = _differing(lines)
    chosen = values.get("fields") or [name for name in differing if name in _FIRST]
    for name in chosen:
        if name not in lines:
            hint = did_you_mean(nearest(name, lines))
            raise BadQuery("fields", name, f"no such field{hint and f'; {hint}'}")
    shown = [_to_line(lines[name]) for name in chosen]
    names = {
        cell["size"]: mark_unverified(cell["size"], verified=cell["value"]) for cell in lines["verified"]["values"]
    }
    return Reply(
        text=_to_text(found, lines["usd_per_hour"]["values"], names),
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
    order = [*(name for name in _FIRST if name in lines), *(name for name in lines if name not in (*_FIRST, *_LEAST))]
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


def _to_text(found: Mapping[str, Any], prices: list[Mapping[str, Any]], names: Mapping[str, str]) -> str:
    others = [
        f"{names[cell['size']]} {cell['difference_percent']:+.1f}%"
        for cell in prices
        if cell["size"] != found["baseline"] and cell["difference_percent"] is not None
    ]
    told = f"; price an hour: {', '.join(others)}" if others else ""
    return f"{plural(len(found['sizes']), 'size')} compared with {names[found['baseline']]}{told}."


TOOL = Tool(
    name="compare_sizes",
    description="Compare sizes field by field: values in the order of sizes, percent difference from the baseline.",
    arguments=ARGUMENTS,
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
