"""Reads the price list of Amazon EC2: of some hundred rows of a size in a region, the one for each way to buy.

A row is one product with one term. Tenancy, licence, installed software, capacity and operation each multiply the rows
of a size, so that the condition of a price asks for all of them. A file of a region has up to 500 MB, and is read as it
comes: CSV row by row, JSON product by product and term by term.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Any

import orjson

from app.errors import BadData, FetchError
from app.ingest.feeds.fetching import PriceApi, Walk, download, get
from app.ingest.feeds.price_lists import (
    Item,
    ItemRules,
    Outcome,
    Purchase,
    ReadScope,
    RegionPrices,
    UnknownMeterError,
    map_items,
    to_nano,
    to_usd,
)
from app.ingest.files import json_pairs, open_csv, open_json, wrong_width

INDEX = "/offers/v1.0/aws/AmazonEC2/current/region_index.json"

PRODUCT_COLUMNS: Mapping[str, str] = {
    "Location Type": "locationType",
    "Instance Type": "instanceType",
    "Tenancy": "tenancy",
    "Operating System": "operatingSystem",
    "License Model": "licenseModel",
    "operation": "operation",
    "CapacityStatus": "capacitystatus",
    "MarketOption": "marketoption",
    "Pre Installed S/W": "preInstalledSw",
    "Region Code": "regionCode",
}
"""The columns of CSV that distinguish products, each with its name in JSON."""
TERM_COLUMNS = (
    *("TermType", "StartingRange", "Unit", "PricePerUnit", "Currency"),
    *("LeaseContractLength", "PurchaseOption", "OfferingClass"),
)
COLUMNS = ("SKU", "Product Family", *PRODUCT_COLUMNS, *TERM_COLUMNS)

_IN_REGIONS: Mapping[str, tuple[str, ...]] = {
    "Product Family": ("Compute Instance", "Compute Instance (bare metal)"),
    "Location Type": ("AWS Region",),
}
"""Which rows are of instances in a region: a file also has disks, hosts, transfer, and what local zones have."""


class SkipReason(StrEnum):
    """Why a row is no price of the catalog although nothing is wrong with it."""

    TENANCY = "dedicated tenancy or host"
    CAPACITY = "capacity reservation or block"
    SOFTWARE = "with installed software"
    OWN_LICENCE = "with a licence of your own"
    OTHER_OS = "another operating system than Linux and Windows"
    UPFRONT = "reservation that is paid upfront in part or whole"
    CONVERTIBLE = "convertible reservation"
    UNPRICED = "price 0, which is none"


_EXCLUSIONS: tuple[tuple[SkipReason, str, tuple[str, ...]], ...] = (
    (SkipReason.TENANCY, "Tenancy", ("Shared",)),
    (SkipReason.CAPACITY, "CapacityStatus", ("Used",)),
    (SkipReason.CAPACITY, "MarketOption", ("OnDemand",)),
    (SkipReason.SOFTWARE, "Pre Installed S/W", ("NA",)),
    (SkipReason.OTHER_OS, "Operating System", ("Linux", "Windows")),
    (SkipReason.OWN_LICENCE, "License Model", ("No License required",)),
)
"""What a row is left out for unless a column has one of some values, in this order."""

OPERATIONS = {"Linux": "RunInstances", "Windows": "RunInstances:0002"}
"""The operation of each system without other software; a code behind the colon stands for the software."""
TERMS = {"1yr": "reserved_1y", "3yr": "reserved_3y"}
_CONSTANTS: Mapping[str, tuple[str, ...]] = {"Currency": ("USD",), "Unit": ("Hrs", "Hours"), "StartingRange": ("0", "")}
"""What no condition of a way to buy asks for, and what must be so: another value would be another price."""


def to_prices(row: Item, _region: str, _day: date) -> Outcome:
    """Map one row to size, way to buy and price in nano-USD an hour, or return why it is left out.

    A reservation is the standard one without upfront payment. Raises UnknownMeterError for what is not known.
    """
    for reason, column, allowed in _EXCLUSIONS:
        if row[column] not in allowed:
            return reason
    if row["operation"] != OPERATIONS[row["Operating System"]]:
        return SkipReason.SOFTWARE
    purchase = _purchase(row)
    if isinstance(purchase, SkipReason):
        return purchase
    for column, allowed in _CONSTANTS.items():
        if row[column] not in allowed:
            raise UnknownMeterError(column, row[column], f"is not {allowed[0]}")
    if not row["Instance Type"]:
        raise UnknownMeterError("Instance Type", row["Instance Type"], "names no size")
    try:
        nano = to_nano(to_usd(row["PricePerUnit"]))
    except ValueError as error:
        raise UnknownMeterError("PricePerUnit", row["PricePerUnit"], str(error)) from None
    if not nano:
        return SkipReason.UNPRICED
    return ((row["Instance Type"], Purchase(row["Operating System"].lower(), purchase), nano),)


def _purchase(row: Item) -> str | SkipReason:
    if row["TermType"] == "OnDemand":
        return "on_demand"
    if row["TermType"] != "Reserved":
        raise UnknownMeterError("TermType", row["TermType"], "is not OnDemand or Reserved")
    if row["OfferingClass"] != "standard":
        return SkipReason.CONVERTIBLE
    if row["PurchaseOption"] != "No Upfront":
        return SkipReason.UPFRONT
    if row["LeaseContractLength"] not in TERMS:
        raise UnknownMeterError("LeaseContractLength", row["LeaseContractLength"], f"is not {' or '.join(TERMS)}")
    return TERMS[row["LeaseContractLength"]]


def _describe(row: Item) -> str:
    return f"SKU {row['SKU']}; {row['Instance Type']}; {row['TermType']}"


# Files


def read_offers(file: Path) -> Iterator[Item]:
    """Yield the rows of instances in a file, with the columns of COLUMNS, whether it is CSV or JSON.

    Raises BadData naming line and column, or the byte, of what cannot be read.
    """
    return _read_json(file) if file.name.removesuffix(".gz").endswith(".json") else _read_csv(file)


def _read_csv(file: Path) -> Iterator[Item]:
    """Yield the rows behind some lines about the list itself; the header is the first with SKU in front."""
    with open_csv(file) as opened:
        lines = csv.reader(opened, strict=True)
        header = next((cells for cells in lines if cells[:1] == ["SKU"]), [])
        if missing := [column for column in COLUMNS if column not in header]:
            detail = "is missing from the header; give a price list of Amazon EC2, as CSV or JSON"
            raise BadData(detail, file=str(file), line=lines.line_num, column=missing[0])
        places = [(column, header.index(column)) for column in COLUMNS]
        rows = 0
        for cells in lines:
            if len(cells) != len(header):
                raise wrong_width(str(file), lines.line_num, len(cells), len(header))
            rows += 1
            row = {column: cells[place] for column, place in places}
            if _is_in_region(row):
                yield row
        if not rows:
            raise BadData("has no rows below its header", file=str(file), line=lines.line_num)


def _read_json(file: Path) -> Iterator[Item]:
    """Yield the terms of the products that are instances, which are all that is kept in memory."""
    products: dict[str, dict[str, str]] = {}
    with open_json(file) as opened:
        for sku, product in json_pairs(opened, file, "products"):
            attributes = product.get("attributes", {})
            row = {column: str(attributes.get(name, "")) for column, name in PRODUCT_COLUMNS.items()}
            row |= {"SKU": sku, "Product Family": str(product.get("productFamily", ""))}
            if _is_in_region(row) and all(row[column] in allowed for _, column, allowed in _EXCLUSIONS):
                products[sku] = row
    if not products:
        detail = "has no instances among its products; give a price list of Amazon EC2, as CSV or JSON"
        raise BadData(detail, file=str(file))
    for term_type in ("OnDemand", "Reserved"):
        with open_json(file) as opened:
            for sku, terms in json_pairs(opened, file, f"terms.{term_type}"):
                if sku not in products:
                    continue
                for term in terms.values():
                    yield from (products[sku] | columns for columns in _to_columns(term_type, term, file))


def _is_in_region(row: Item) -> bool:
    return all(row[column] in allowed for column, allowed in _IN_REGIONS.items())


def _to_columns(term_type: str, term: Mapping[str, Any], file: Path) -> Iterator[dict[str, str]]:
    """Yield the dimensions of a term as CSV has them; raises BadData for one of several currencies."""
    attributes = term.get("termAttributes", {})
    for dimension in term.get("priceDimensions", {}).values():
        try:
            ((currency, price),) = dimension["pricePerUnit"].items()
        except (KeyError, AttributeError, ValueError):
            detail = f"SKU {term.get('sku')}: must be one currency with its price"
            raise BadData(detail, file=str(file), column="pricePerUnit") from None
        yield {
            "TermType": term_type,
            "StartingRange": str(dimension.get("beginRange", "")),
            "Unit": str(dimension.get("unit", "")),
            "PricePerUnit": str(price),
            "Currency": str(currency),
            **{name: str(attributes.get(name, "")) for name in TERM_COLUMNS[5:]},
        }


def _read(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    rows = (row for file in files for row in read_offers(file))
    return map_items(rows, lambda row: str(row["Region Code"]), AWS_RULES, scope)


# Over HTTP

_FILE = re.compile(r"/[\w./-]+/index\.json")


async def _fetch(walk: Walk, region: str, file: Path) -> None:
    """Write the price list of a region as CSV, which has half the length of JSON; the index of regions has its place.

    Only the path of a link is used: a copy of the list need not rewrite links.
    """
    body = await get(walk.client, walk.url.copy_with(path=INDEX), walk.policy)
    try:
        regions = orjson.loads(body)["regions"]
        path = regions[region]["currentVersionUrl"] if region in regions else ""
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise FetchError(f"the index of regions is not as expected: {error!r}") from error
    if not path:
        raise FetchError("the index of regions does not have it")
    if not _FILE.fullmatch(path):
        raise FetchError(
            f"the index of regions has the currentVersionUrl {path!r}, which is not the path of an index.json"
        )
    await download(walk.client, walk.url.copy_with(path=path.removesuffix("json") + "csv"), walk.policy, file)
    walk.finished, walk.finished_pages = walk.finished + 1, walk.finished_pages + 1
    walk.count(0)


AWS_RULES = ItemRules(to_prices=to_prices, describe=_describe, size_column="Instance Type")
AWS_PRICES = PriceApi(
    command="aws-prices",
    provider="aws",
    source_id="aws-price-list",
    title="Amazon EC2 price list",
    publisher="AWS",
    url="https://pricing.us-east-1.amazonaws.com",
    figure="PricePerUnit",
    fetch=_fetch,
    read=_read,
    suffix=".csv.gz",
)
