"""Reads the SKUs of Google Cloud's Billing Catalog: prices of cores, memory, GPUs and local SSDs by region.

What a SKU is of is in its description; each kind that is part of a machine type has a pattern here, and all others are
ignored: custom types, sole tenancy, DWS, reservations, slices of a GPU, premium tiers. The machine types with their
figures are those of the catalog. Types whose parts do not follow from them, such as shared cores, which are billed as a
fraction of their vCPUs, are in `clouds/gcp/parts.csv` of the seeds.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.errors import BadData, FetchError
from app.ingest.feeds.price_lists import Purchase, ReadScope, RegionPrices, SizeSpec
from app.ingest.feeds.price_pages import Page, PageApi, PriceApi, fetch_pages, read_pages
from app.ingest.feeds.price_parts import Recipe, add_parts

HOURS_A_MONTH = 730
NANO = 10**9

PURCHASES = {"OnDemand": "on_demand", "Preemptible": "spot", "Commit1Yr": "reserved_1y", "Commit3Yr": "reserved_3y"}
"""The purchase model of each usage type; a commitment is paid by the hour over its term."""

_MACHINE = re.compile(
    r"(?:Spot Preemptible |Commitment(?: v1)?: )?(?P<family>.*?) ?(?:Instance )?"
    r"(?P<kind>Core|Cpu|Ram|Local SSD)(?: running)? in .+"
)
_GPU = re.compile(
    r"(?:Commitment v1: )?(?:Nvidia )?(?:Tesla )?(?P<model>[\w ]+?)(?: GPU)?"
    r"(?: attached to Spot Preemptible VMs)?(?: running)? in .+"
)
_LOCAL_SSD = re.compile(
    r"(?:SSD backed Local Storage(?: attached to Spot Preemptible VMs)?(?: in .+)?|Commitment v1: Local SSD in .+)"
)
_VENDORS = re.compile(r" (?:AMD|Arm|Predefined|Memory-optimized)$")
_FAMILY = re.compile(r"[a-z]\d[a-z]?|m4ultramem224")
_FAMILIES = {"compute optimized": "c2", "memory-optimized": "m1", "": "n1"}
"""Families that descriptions call otherwise; a commitment that names none is of N1."""
_GPU_MODELS = {
    "A100": "A100 40GB",
    "P100": "P100, form not stated",
    "RTX 6000 96GB": "RTX PRO 6000 Blackwell Server Edition",
    "T4": "Tesla T4",
    "V100": "Tesla V100 16GB SXM",
}
"""GPUs that descriptions call otherwise than the catalog."""
_UNITS = {"h": Fraction(1), "GiBy.h": Fraction(1), "GiBy.mo": Fraction(1, HOURS_A_MONTH)}


def to_part(sku: Mapping[str, Any]) -> str | None:
    """Return the part that a SKU has the price of, such as `n2 core` or `gpu L4`; None for what is none."""
    description, group = str(sku.get("description")), str(sku.get("category", {}).get("resourceGroup"))
    if group == "LocalSSD" and _LOCAL_SSD.fullmatch(description):
        return "ssd"
    if group == "GPU":
        gpu = _GPU.fullmatch(description)
        return f"gpu {_GPU_MODELS.get(gpu['model'], gpu['model'])}" if gpu else None
    if not (machine := _MACHINE.fullmatch(description)):
        return None
    name = _VENDORS.sub("", machine["family"]).lower()
    family = _FAMILIES.get(name, name)
    kind = {"Core": "core", "Cpu": "core", "Ram": "ram", "Local SSD": "ssd"}[machine["kind"]]
    return f"{family} {kind}" if _FAMILY.fullmatch(family) else None


def price_of(sku: Mapping[str, Any], day: date) -> Fraction | None:
    """Return USD an hour of a SKU on a day, of its last tier; None before it is in force.

    Raises ValueError or KeyError for what is no price in USD and a unit that is known.
    """
    infos = [info for info in sku["pricingInfo"] if info["effectiveTime"][:10] <= day.isoformat()]
    if not infos:
        return None
    expression = max(infos, key=lambda info: str(info["effectiveTime"]))["pricingExpression"]
    if not expression["tieredRates"]:
        raise ValueError("tieredRates is empty: it must have a price")
    price = max(expression["tieredRates"], key=lambda tier: Fraction(tier["startUsageAmount"]))["unitPrice"]
    if price["currencyCode"] != "USD":
        raise ValueError(f"currencyCode {price['currencyCode']!r} is not USD")
    if (unit := expression["usageUnit"]) not in _UNITS:
        raise ValueError(f"usageUnit {unit!r} is not one of {', '.join(_UNITS)}")
    usd = Fraction(int(price.get("units") or 0)) + Fraction(int(price.get("nanos") or 0), NANO)
    if usd < 0:
        raise ValueError("is below 0")
    return usd * _UNITS[unit]


def to_recipe(size: SizeSpec, own_ssds: frozenset[str]) -> Recipe | None:
    """Return the parts of a machine type; None where a figure of it is not known.

    `own_ssds` are the parts of families whose local SSDs have a price of their own.
    """
    if size.family is None or size.vcpus is None or size.memory_gib is None or size.gpu_count is None:
        return None
    parts = {f"{size.family} core": Fraction(size.vcpus), f"{size.family} ram": Fraction(size.memory_gib)}
    if size.gpu_count:
        parts[f"gpu {size.gpu_model}"] = size.gpu_count
    if size.nvme_disk_gib:
        own = f"{size.family} ssd"
        parts[own if own in own_ssds else "ssd"] = Fraction(size.nvme_disk_gib)
    return parts


def _read(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    prices: dict[tuple[str, Purchase], dict[str, Fraction]] = {}
    origins: dict[tuple[str, Purchase, str], str] = {}
    doubtful: dict[str, BadData] = {}
    skus = ((page.file, item) for page in read_pages(GCP_PAGES, files) for item in page.items)
    for number, (file, sku) in enumerate(skus, 1):
        usage = sku.get("category", {}).get("usageType")
        part = to_part(sku)
        if part is None or usage not in PURCHASES:
            continue
        name, purchase = str(sku.get("skuId")), Purchase("linux", PURCHASES[usage])
        try:
            usd = price_of(sku, scope.day)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"has no {error}" if isinstance(error, KeyError) else error
            detail = f"SKU {name} ({sku.get('description')}): {reason}"
            raise BadData(detail, file=file, line=number, column="pricingInfo") from None
        if not usd:
            continue
        for region in sku.get("serviceRegions") or ():
            other = origins.setdefault((region, purchase, part), name)
            if other != name:
                detail = f"SKUs {other} and {name} both are the price of {part} {purchase.purchase} in {region}"
                doubtful[part] = BadData(detail, file=file, line=number, column="description")
            prices.setdefault((region, purchase), {})[part] = usd
    own_ssds = frozenset(part for of_parts in prices.values() for part in of_parts if part.endswith(" ssd"))
    recipes = {
        size.name: scope.stated_parts.get(scope.identify(size.name)) or to_recipe(size, own_ssds)
        for size in scope.sizes
    }
    for parts in recipes.values():
        if listed_twice := doubtful.keys() & (parts or {}).keys():
            raise doubtful[min(listed_twice)]
    return add_parts(recipes, prices, scope)


def _to_page(page: Any) -> Page:
    items = page.get("skus") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FetchError("a page has no list skus")
    token = page.get("nextPageToken") or ""
    if not isinstance(token, str):
        raise FetchError(f"a page has the nextPageToken {token!r}, which is no text")
    return Page(items=items, following=token.encode() or None)


def _to_query(url: httpx.URL, _name: str, following: bytes | None) -> bytes:
    params = {"currencyCode": "USD", "pageSize": "5000"}
    return url.copy_merge_params(params | ({"pageToken": following.decode()} if following else {})).query


GCP_PAGES = PageApi(to_page=_to_page, to_query=_to_query, link="nextPageToken")
GCP_PRICES = PriceApi(
    command="gcp-prices",
    provider="gcp",
    source_id="gcp-billing-catalog",
    title="Google Cloud Billing Catalog",
    publisher="Google",
    url="https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus",
    figure="unitPrice",
    fetch=partial(fetch_pages, GCP_PAGES),
    read=_read,
    by_region=False,
    formula="vCPUs x the price of a core + GiB x that of memory + GPUs and GiB of local SSD x theirs",
)
