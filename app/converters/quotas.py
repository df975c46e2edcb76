"""Reads plans of VMs, and quotas and restrictions as the vendors' commands print them: `vmsizes preflight`.

A plan is an inventory (CSV or JSON), or what `terraform show -json` and `tofu show -json` print of one.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from app.catalog.names import RegionCode, region_key, size_key
from app.catalog.providers import ProviderId
from app.converters import load_json, lower_keys
from app.converters.inventory import parse_inventory
from app.errors import BadData, BadWorkload
from app.schemas.preflight_request import MAX_ITEMS, PreflightIn
from app.services.preflight import EVERYWHERE, NotCounted, Offered, Quota, QuotaFiles, WantedVms, quota_key

MAX_AMOUNT = 10**12
"""Limits above it are none."""
_SPOT = {"spot", "low", "preemptible"}
_REGULAR = {"regular", "on_demand", "ondemand", "standard", "none"}


def read_preflight(body: PreflightIn) -> tuple[list[WantedVms | NotCounted], QuotaFiles]:
    """Read the texts of a body; raises BadWorkload naming the field, and where in its text what is wrong."""
    quotas: dict[tuple[str, str], dict[str, Quota]] = {}
    of_families: dict[tuple[str, str, bool], set[str]] = defaultdict(set)
    field = "plan"
    try:
        plan = _read_plan(body.plan, body.region)
        if not 1 <= len(plan) <= MAX_ITEMS:
            raise BadWorkload(field, f"has {len(plan):,} lines with VMs; 1 to {MAX_ITEMS:,} are allowed")
        for index, usage in enumerate(body.usage):
            field = f"usage[{index}].text"
            for quota in _read_quotas(usage.text, usage.region or body.region, field):
                quotas.setdefault((quota.provider, quota.region), {})[quota.key] = quota
                _refuse_many(quota, of_families, field)
        field = "skus"
        offered = dict(_read_skus(body.skus)) if body.skus is not None else {}
    except BadData as error:
        raise BadWorkload(field, str(error).removeprefix(f"{field}:").strip()) from None
    named = {"region": body.region, **{f"usage[{at}].region": usage.region for at, usage in enumerate(body.usage)}}
    regions = {name: RegionCode(region) for name, region in named.items() if region is not None}
    return plan, QuotaFiles(regions=regions, quotas=quotas, offered=offered)


MAX_QUOTAS_OF_FAMILY = 10
"""In a region; AWS has one."""


def _refuse_many(quota: Quota, of_families: dict[tuple[str, str, bool], set[str]], file: str) -> None:
    """Raise BadData for more quotas of one family than AWS ever had: each line of a plan has all of them."""
    for family in quota.families:
        named = of_families[quota.region, family, quota.spot]
        named.add(quota.key)
        if len(named) > MAX_QUOTAS_OF_FAMILY:
            detail = (
                f"more than {MAX_QUOTAS_OF_FAMILY} quotas of {family[:20]!r} in {quota.region}, of which AWS has one"
            )
            raise BadData(detail, file=file)


# Plans


def _read_plan(text: str, region: str | None) -> list[WantedVms | NotCounted]:
    if text.lstrip()[:1] == "{":
        loaded = load_json(text, "plan")
        if "resource_changes" in loaded or "terraform_version" in loaded:
            return list(_read_terraform(loaded, region))
    plan: list[WantedVms | NotCounted] = []
    for number, item in enumerate(parse_inventory(text, "plan"), start=1):
        if number > MAX_ITEMS:
            raise BadWorkload("plan", f"has more than {MAX_ITEMS:,} lines with VMs; 1 to {MAX_ITEMS:,} are allowed")
        purchase = (item.purchase or "none").lower().replace("-", "_").replace(" ", "_")
        if purchase not in _SPOT | _REGULAR:
            allowed = f"{item.purchase!r}: must be one of {', '.join(sorted(_SPOT | _REGULAR))}"
            raise BadData(f"VM {number}: {allowed}", file="plan", column="purchase")
        spot = purchase in _SPOT
        plan.append(WantedVms(size=item.size, region=item.region, count=item.count, spot=spot, id=item.id))
    return plan


class _Resource(NamedTuple):
    """Where a resource of Terraform has its figures: names, with dots between those of a block and what is in it."""

    size: str
    region: tuple[str, ...]
    counts: tuple[str, ...] = ()
    spot: tuple[str, ...] = ("priority",)


_LOCATION = ("location",)
_AZURE, _AZURE_SET = _Resource("size", _LOCATION), _Resource("sku", _LOCATION, ("instances",))
_POOL = ("node_count", "max_count")
RESOURCES: Mapping[str, _Resource] = {
    "azurerm_linux_virtual_machine": _AZURE,
    "azurerm_windows_virtual_machine": _AZURE,
    "azurerm_virtual_machine": _Resource("vm_size", _LOCATION),
    "azurerm_linux_virtual_machine_scale_set": _AZURE_SET,
    "azurerm_windows_virtual_machine_scale_set": _AZURE_SET,
    "azurerm_orchestrated_virtual_machine_scale_set": _Resource("sku_name", _LOCATION, ("instances",)),
    "azurerm_kubernetes_cluster": _Resource(
        "default_node_pool.vm_size", _LOCATION, tuple(f"default_node_pool.{name}" for name in _POOL)
    ),
    "azurerm_kubernetes_cluster_node_pool": _Resource("vm_size", (), _POOL),
    "aws_instance": _Resource(
        "instance_type", ("region", "availability_zone"), spot=("instance_market_options.market_type",)
    ),
    "google_compute_instance": _Resource(
        "machine_type", ("zone",), spot=("scheduling.provisioning_model", "scheduling.preemptible")
    ),
}
"""The resources of Terraform whose VMs are counted; of an autoscaled pool as many as it may have."""
UNREAD_RESOURCES = frozenset(
    {
        *("aws_autoscaling_group", "aws_spot_instance_request", "aws_spot_fleet_request", "aws_ec2_fleet"),
        *("aws_eks_node_group", "google_container_cluster", "google_container_node_pool", "azurerm_batch_pool"),
        *("google_compute_instance_group_manager", "google_compute_region_instance_group_manager"),
    }
)
"""Resources of Terraform that have VMs which a plan does not tell, or tells elsewhere."""
_ZONE = re.compile(r"(?<=\d)-?[a-z]$")


def _read_terraform(plan: Mapping[str, Any], region: str | None) -> Iterator[WantedVms | NotCounted]:
    """Yield what the changes of a plan add; raises BadData for the JSON of a state."""
    if not isinstance(changes := plan.get("resource_changes", []), list) or "planned_values" not in plan:
        detail = "is Terraform's JSON without a plan; give `terraform show -json FILE` of what `plan -out=FILE` wrote"
        raise BadData(detail, file="plan")
    for resource in map(_dict, changes):
        change, address, kind = _dict(resource.get("change")), str(resource.get("address")), str(resource.get("type"))
        actions = change.get("actions")
        if resource.get("mode") == "data" or not isinstance(actions, list):
            continue
        if "create" not in actions and "update" not in actions:
            continue
        if kind in UNREAD_RESOURCES:
            yield NotCounted(id=address, detail=f"VMs of {kind} are not read; give them as CSV")
        elif kind in RESOURCES:
            place = _region_of(plan, kind, region)
            before, after = (_to_vms(kind, _dict(change.get(when)), address, place) for when in ("before", "after"))
            # VMs that are created before the old ones are destroyed need quota beside them.
            if isinstance(after, WantedVms) and isinstance(before, WantedVms) and actions != ["create", "delete"]:
                if "delete" not in actions and before == after:
                    continue
                after = replace(after, frees=before)
            yield after


def _to_vms(kind: str, values: Mapping[str, Any], address: str, region: str | None) -> WantedVms | NotCounted:
    shape = RESOURCES[kind]
    size = _at(values, shape.size)
    counts = [count for name in shape.counts if isinstance(count := _at(values, name), int)]
    place = next((place for name in shape.region if isinstance(place := _at(values, name), str)), region)
    if not isinstance(size, str) or (shape.counts and not counts):
        missing = "size" if not isinstance(size, str) else "number of VMs"
        return NotCounted(id=address, detail=f"its {missing} is not known before it is applied")
    if place is None:
        return NotCounted(id=address, detail="names no region; say which with region")
    spot = any(str(_at(values, name)).lower() in ("spot", "true") for name in shape.spot)
    code = RegionCode(_ZONE.sub("", place) if not kind.startswith("azurerm") else place)
    return WantedVms(id=address, size=size, region=code, count=max(counts, default=1), spot=spot)


def _region_of(plan: Mapping[str, Any], kind: str, region: str | None) -> str | None:
    """Return the region that a provider's block names as a constant, else the default."""
    provider = _dict(_dict(_dict(plan.get("configuration")).get("provider_config")).get(kind.partition("_")[0]))
    named = _at(provider, "expressions.region.constant_value")
    return named if isinstance(named, str) else region


def _at(values: object, path: str) -> Any:
    """Return the value at a path; of a list of blocks that of the first."""
    for name in path.split("."):
        values = _dict(values).get(name)
        values = values[0] if isinstance(values, list) and values else values
    return values


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


# Quotas

_LISTS = ("value", "quotas")
"""Where Azure's API, and Amazon's and Google's commands have their list."""
_AWS = (
    (re.compile(r"Running On-Demand (.+) instances"), False),
    (re.compile(r"All (.+) Spot Instance Requests"), True),
)


def _read_quotas(text: str, region: str | None, name: str) -> Iterator[Quota]:
    """Yield the quotas in what `az vm list-usage`, `list-service-quotas` of AWS, or gcloud print as JSON."""
    loaded = load_json(text, name)
    entries = loaded if isinstance(loaded, list) else []
    for listed in [entry for entry in entries if isinstance(_dict(entry).get("quotas"), list)] or [loaded]:
        fields = lower_keys(listed)
        rows = next((fields[key] for key in _LISTS if key in fields), listed)
        kind = fields.get("kind")
        own = fields.get("name") if kind == "compute#region" else EVERYWHERE if kind == "compute#project" else None
        if not isinstance(rows, list):
            raise BadData("is JSON without a list of quotas", file=name)
        for number, row in enumerate(rows, start=1):
            place = own if isinstance(own, str) else region
            if quota := _to_quota(lower_keys(row), place, f"{name}: quota {number}"):
                yield quota


def _to_quota(row: Mapping[str, Any], region: str | None, name: str) -> Quota | None:
    families: Sequence[str] = ()
    provider: ProviderId = "azure"
    spot, called = False, lower_keys(row.get("name"))
    if "quotaname" in row:
        provider, title = "aws", str(row["quotaname"])
        code, limit, used = row.get("quotacode"), row.get("value"), row.get("used")
        arn = re.match(r"arn:[\w-]+:servicequotas:([\w-]+):", str(row.get("quotaarn")))
        region = arn[1] if arn else region
        matched = next(((match[1], spot) for form, spot in _AWS if (match := form.fullmatch(title))), None)
        if matched is None:
            return None
        families, spot = _aws_families(matched[0]), matched[1]
    elif "metric" in row:
        provider, code = "gcp", row["metric"]
        title, limit, used = str(code), row.get("limit"), row.get("usage")
    elif "value" in called:
        code, limit, used = called["value"], row.get("limit"), row.get("currentvalue")
        title = str(called.get("localizedvalue") or code)
    else:
        raise BadData("is none of `az vm list-usage`, `aws service-quotas` or `gcloud compute regions`", file=name)
    if not isinstance(code, str) or not code:
        raise BadData("has no name", file=name)
    if region is None:
        raise BadData("has no region, since the vendor's command prints none; state it as `region`", file=name)
    return Quota(
        provider=provider,
        region=region_key(region),
        key=quota_key(code),
        name=code,
        title=title,
        limit=_amount(limit, name, "limit"),
        used=_amount(used, name, "used"),
        families=families,
        spot=spot,
    )


def _amount(value: object, name: str, what: str) -> int | None:
    """Return a number that the vendors write as a number or a text; -1 is no limit."""
    if value is None:
        return None
    try:
        number = float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or not -1 <= number < float("inf") or number != int(number):
        raise BadData(f"{str(value)[:40]!r}: must be a whole number, or -1 for none", file=name, column=what)
    return min(int(number), MAX_AMOUNT) if number >= 0 else MAX_AMOUNT


def _aws_families(text: str) -> Sequence[str]:
    """Return the families that a quota's name lists: `Standard (A, C, D)`, `G and VT`, `P4, P3 and P2`.

    A letter stands for all generations, High Memory for u-6tb1 and u7i-12tb. AWS's page on quotas of On-Demand
    Instances has the names.
    """
    listed = re.search(r"\((.+)\)", text)
    words = re.split(r",\s*(?:and\s+)?|\s+and\s+", (listed[1] if listed else text).strip().lower())
    return [family for word in words for family in (("u", "u-") if word == "high memory" else (word.strip(),))]


# Restrictions


def _read_skus(text: str) -> Iterator[tuple[tuple[str, str], Offered]]:
    """Yield what `az vm list-skus --all` says of each size in each region: its family, zones and restrictions."""
    loaded = load_json(text, "skus")
    listed = lower_keys(loaded).get("value", loaded)
    if not isinstance(listed, list):
        raise BadData("is JSON without a list; give that of `az vm list-skus --all`", file="skus")
    for entry in map(lower_keys, listed):
        if str(entry.get("resourcetype")).lower() != "virtualmachines":
            continue
        restrictions = [lower_keys(rule) for rule in _list(entry.get("restrictions"))]
        whole = [str(rule.get("reasoncode")) for rule in restrictions if str(rule.get("type")).lower() == "location"]
        closed = {
            str(zone)
            for rule in restrictions
            if str(rule.get("type")).lower() == "zone"
            for zone in _list(lower_keys(rule.get("restrictioninfo")).get("zones"))
        }
        offered = Offered(
            family=str(entry.get("family") or "") or None,
            restriction=next(iter(whole), None),
            closed_zones=sorted(closed),
        )
        for place in _list(entry.get("locations")):
            yield (size_key(str(entry.get("name"))), region_key(str(place))), offered


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
