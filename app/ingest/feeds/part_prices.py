"""Reads the lists of Google Cloud and Oracle Cloud, which have prices of parts: cores, memory, GPUs, disks.

A size is so much of some parts. Its price is the sum; where a part has no price for a region and way to buy, the size
has none. Parts that do not follow from the figures of a size are stated in `parts.csv` of its cloud's seeds.

Google Cloud: what a SKU is of is in its description; each kind that is part of a machine type has a pattern here, and
all others are ignored: custom types, sole tenancy, DWS, reservations, slices of a GPU, premium tiers. The machine types
with their figures are those of the catalog; shared cores are billed as a fraction of their vCPUs.

Oracle Cloud: a part is billed per OCPU (two vCPUs of x86, one of Arm A1), gigabyte of memory, GPU or terabyte of local
disk, the same in all commercial regions. Parts of all shapes are stated.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.catalog.money import NANO_USD
from app.catalog.names import size_key
from app.errors import BadData, FetchError
from app.ingest.feeds.fetching import Page, PageApi, PriceApi, fetch_pages, read_pages
from app.ingest.feeds.price_lists import (
    Item,
    ItemRules,
    Outcome,
    Purchase,
    ReadScope,
    RegionPrices,
    SizeSpec,
    map_items,
    to_nano,
    to_usd,
)
from app.ingest.files import read_rows

Recipe = Mapping[str, Fraction]
"""How much of each part a size is."""
PartPrices = Mapping[tuple[str, Purchase], Mapping[str, Fraction]]
"""USD an hour of each part, by region and way to buy."""


class SkipReason(StrEnum):
    """Why a size has no price although the vendor lists parts."""

    NO_PARTS = "of whose parts the catalog knows too little"
    PART_WITHOUT_PRICE = "with a part that has no price there"
    NOT_OFFERED = "in a region that does not have the size"


def load_stated_parts(seeds: Path | None, provider: str) -> Mapping[str, Recipe]:
    """Return the parts of sizes, by key, that a file of the seeds states since they do not follow from its figures."""
    path = seeds / "clouds" / provider / "parts.csv" if seeds else None
    recipes: dict[str, dict[str, Fraction]] = {}
    for row in read_rows(path, ("size", "part", "quantity")) if path and path.is_file() else ():
        parts = recipes.setdefault(size_key(row.size_name("size")), {})
        parts[row.text("part")] = Fraction(row.positive("quantity"))
    return recipes


def add_parts(recipes: Mapping[str, Recipe | None], prices: PartPrices, scope: ReadScope) -> Iterator[RegionPrices]:
    """Yield the prices of sizes by region; `recipes` has the parts of each, None where they are not known.

    A way to buy for which no part of a size has a price is none of that size. Parts are sold also where the size is
    not: a region that the lists of availability lack has no price of it.
    """
    offered = {size.name: size.regions for size in scope.sizes}
    items = (
        {
            "region": region,
            "size": size,
            "purchase": purchase,
            "parts": parts,
            "prices": of_parts,
            "offered": (regions := offered.get(size)) is None or region in regions,
        }
        for (region, purchase), of_parts in sorted(prices.items())
        for size, parts in recipes.items()
        if parts is None or not parts.keys().isdisjoint(of_parts)
    )
    return map_items(items, lambda item: str(item["region"]), _SUMS, scope)


def _to_prices(item: Item, _region: str, _day: date) -> Outcome:
    if not item["offered"]:
        return SkipReason.NOT_OFFERED
    if item["parts"] is None:
        return SkipReason.NO_PARTS
    if not item["parts"].keys() <= item["prices"].keys():
        return SkipReason.PART_WITHOUT_PRICE
    usd = sum((quantity * item["prices"][part] for part, quantity in item["parts"].items()), Fraction())
    return ((item["size"], item["purchase"], to_nano(usd)),) if usd else SkipReason.PART_WITHOUT_PRICE


_SUMS = ItemRules(to_prices=_to_prices, describe=lambda item: str(item["size"]), size_column="size")


HOURS_A_MONTH = 730

GCP_PURCHASES = {"OnDemand": "on_demand", "Preemptible": "spot", "Commit1Yr": "reserved_1y", "Commit3Yr": "reserved_3y"}
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
    "P100": "P100 (form not stated)",
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
    usd = Fraction(int(price.get("units") or 0)) + Fraction(int(price.get("nanos") or 0), NANO_USD)
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


def _read_gcp(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    prices: dict[tuple[str, Purchase], dict[str, Fraction]] = {}
    origins: dict[tuple[str, Purchase, str], str] = {}
    doubtful: dict[str, BadData] = {}
    skus = ((page.file, item) for page in read_pages(GCP_PAGES, files) for item in page.items)
    for number, (file, sku) in enumerate(skus, 1):
        usage = sku.get("category", {}).get("usageType")
        part = to_part(sku)
        if part is None or usage not in GCP_PURCHASES:
            continue
        name, purchase = str(sku.get("skuId")), Purchase("linux", GCP_PURCHASES[usage])
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


def _to_gcp_page(page: Mapping[str, Any], items: Sequence[Item]) -> Page:
    token = page.get("nextPageToken") or ""
    if not isinstance(token, str):
        raise FetchError(f"a page has the nextPageToken {token!r}, which is not text")
    return Page(items=items, following=token.encode() or None)


def _to_gcp_query(url: httpx.URL, _name: str, following: bytes | None) -> bytes:
    params = {"currencyCode": "USD", "pageSize": "5000"}
    return url.copy_merge_params(params | ({"pageToken": following.decode()} if following else {})).query


GCP_PAGES = PageApi(items="skus", to_page=_to_gcp_page, to_query=_to_gcp_query, link="nextPageToken")
GCP_PRICES = PriceApi(
    command="gcp-prices",
    provider="gcp",
    source_id="gcp-billing-catalog",
    title="Google Cloud Billing Catalog",
    publisher="Google",
    url="https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus",
    figure="unitPrice",
    fetch=partial(fetch_pages, GCP_PAGES),
    read=_read_gcp,
    by_region=False,
    formula="vCPUs x the price of a core + GiB x that of memory + GPUs and GiB of local SSD x theirs",
)


REGION = "oci"
"""All commercial regions, which have one price list."""
HOURLY_METRICS = ("OCPU Per Hour", "Gigabyte Per Hour", "GPU Per Hour", "NVMe Terabyte Per Hour")


def _to_oci_page(page: Mapping[str, Any], items: Sequence[Item]) -> Page:
    if page.get("hasMore"):
        raise FetchError("a page says that there are more; the list of prices is one page")
    return Page(items=items, following=None)


def _to_oci_query(url: httpx.URL, _name: str, _following: bytes | None) -> bytes:
    return url.copy_merge_params({"currencyCode": "USD"}).query


def read_part_prices(items: Iterator[Mapping[str, Any]], file: str) -> dict[str, Fraction]:
    """Return USD an hour of each part: of several ranges the last, since the first is a free allowance of a tenancy.

    Raises BadData for a part that is in the list twice, or is without a price in USD.
    """
    prices: dict[str, Fraction] = {}
    for number, item in enumerate(items, 1):
        if item.get("metricName") not in HOURLY_METRICS:
            continue
        part = str(item.get("partNumber"))
        if part in prices:
            raise BadData(f"part {part} is listed twice", file=file, line=number, column="partNumber")
        try:
            prices[part] = _last_price(item)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            detail = f"part {part}: {f'has no {error}' if isinstance(error, KeyError) else error}"
            raise BadData(detail, file=file, line=number, column="prices") from None
    return prices


def _last_price(item: Mapping[str, Any]) -> Fraction:
    listed = {price["currencyCode"]: price["prices"] for price in item["currencyCodeLocalizations"]}
    if "USD" not in listed:
        raise ValueError(f"must have a price in USD, and has some in {', '.join(listed) or 'no currency'}")
    ranges = [price for price in listed["USD"] if price["model"] == "PAY_AS_YOU_GO"]
    if not ranges:
        raise ValueError("must have a price whose model is PAY_AS_YOU_GO, and has none in USD")
    last = max(ranges, key=lambda price: price.get("rangeMin") or 0)
    try:
        return Fraction(to_usd(last["value"]))
    except ValueError as error:
        raise ValueError(f"value {last['value']!r} {error}") from None


def _read_oci(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    items = (item for page in read_pages(OCI_PAGES, files) for item in page.items)
    prices = read_part_prices(items, str(files[0]))
    recipes = {size.name: scope.stated_parts.get(scope.identify(size.name)) for size in scope.sizes}
    return add_parts(recipes, {(REGION, Purchase("linux", "on_demand")): prices}, scope)


OCI_PAGES = PageApi(items="items", to_page=_to_oci_page, to_query=_to_oci_query, link="more")
OCI_PRICES = PriceApi(
    command="oci-prices",
    provider="oci",
    source_id="oci-price-list",
    title="Oracle Cloud price list",
    publisher="Oracle",
    url="https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/",
    figure="value",
    fetch=partial(fetch_pages, OCI_PAGES),
    read=_read_oci,
    by_region=False,
    formula="OCPUs or GPUs x their price an hour + GiB x theirs",
)
