"""The tool preflight: whether a plan of VMs fits into quotas, what is missing, and how to ask for it."""

import json
from collections.abc import Mapping
from itertools import islice
from typing import Any

from app.mcp import tool
from app.questions import Inquiry, answer
from app.schemas.preflight_request import PreflightIn, QuotaUsageIn
from app.validation import MAX_ERRORS


def _read_text(value: Any) -> str:
    """Return a text; data that an agent has read already, as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


ARGUMENTS: Mapping[str, tool.Argument] = {
    "plan": tool.Argument(
        type="string", description="CSV: size,region,count,purchase; or Terraform's", read=_read_text
    ),
    "usage": tool.Argument(
        type="string",
        description="JSON of az vm list-usage, aws list-service-quotas, gcloud compute regions list",
        sets="usage[0].text",
        read=_read_text,
    ),
    "region": tool.Argument(type="string", description="of what names none"),
}
_QUOTA = ("verdict", "region", "title", "needed", "used", "limit", "missing", "request")
_ITEM = ("id", "size", "region", "count", "verdict", "details", "fits_in")


def preflight(inquiry: Inquiry, values: dict[str, Any]) -> tool.Reply:
    """Check a plan; raises BadWorkload for what cannot be read.

    The question is not remembered: a receipt would have the figures of a subscription.
    """
    usage = (QuotaUsageIn(text=values["usage"]),) if "usage" in values else ()
    body = PreflightIn(plan=values["plan"], usage=usage, region=values.get("region"))
    checked = answer(inquiry.catalog, "POST /preflight", body)
    others = [item for item in checked["items"] if item["verdict"] != "fits"]
    return tool.Reply(
        text=_to_text(checked, has_usage=bool(usage)),
        content={
            "verdict": checked["verdict"],
            "quotas": [
                {name: quota[name] for name in _QUOTA if quota[name] is not None} for quota in checked["quotas"]
            ],
            "lines": [
                {"item": item["index"] + 1} | {name: item[name] for name in _ITEM if item[name]} for item in others
            ],
        },
        lists=("lines", "quotas"),
        narrow="check fewer lines at once",
    )


def _to_text(checked: Mapping[str, Any], *, has_usage: bool) -> str:
    if checked["verdict"] == "error":
        wrong = (item["details"][0] for item in checked["items"] if item["verdict"] == "error")
        return " ".join(islice(dict.fromkeys(wrong), MAX_ERRORS))
    if checked["verdict"] == "unknown" and not has_usage:
        return f"Whether the plan fits is unknown: usage was not given, {ARGUMENTS['usage'].description}."
    if checked["verdict"] == "fits":
        return "The plan fits."
    text = "The plan does not fit." if checked["verdict"] == "missing" else "Whether the plan fits is unknown."
    quota = next((quota for quota in checked["quotas"] if quota["verdict"] == checked["verdict"]), None)
    if quota is None:
        return text
    missing = f"lacks {quota['missing']:,}" if quota["missing"] else "is unknown"
    return f"{text} {quota['title']} in {quota['region']} {missing}."


PREFLIGHT = tool.Tool(
    name="preflight",
    description="Whether the VMs of a plan fit into quotas, and what is missing; nothing is stored.",
    arguments=ARGUMENTS,
    required=("plan",),
    output={"verdict": tool.TEXT, "quotas": tool.LIST, "lines": tool.LIST},
    always=("verdict", "quotas", "lines"),
    run=preflight,
)
