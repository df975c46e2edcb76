"""Reads the price list of Oracle Cloud, which has parts of shapes and no shapes.

A part is billed per OCPU (two vCPUs of x86, one of Arm A1), gigabyte of memory, GPU or terabyte of local disk, the same
in all commercial regions. Which parts a shape has is stated in `clouds/oci/parts.csv` of the seeds.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from app.errors import BadData, FetchError
from app.ingest.feeds.price_lists import Purchase, ReadScope, RegionPrices, to_usd
from app.ingest.feeds.price_pages import Page, PageApi, PriceApi, fetch_pages, read_pages
from app.ingest.feeds.price_parts import add_parts

REGION = "oci"
"""All commercial regions, which have one price list."""
HOURLY_METRICS = ("OCPU Per Hour", "Gigabyte Per Hour", "GPU Per Hour", "NVMe Terabyte Per Hour")


def _to_page(page: Any) -> Page:
    items = page.get("items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FetchError("a page has no list items")
    if page.get("hasMore"):
        raise FetchError("a page says that there are more; the list of prices is one page")
    return Page(items=items, following=None)


def _to_query(url: httpx.URL, _name: str, _following: bytes | None) -> bytes:
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


def _read(files: Sequence[Path], scope: ReadScope) -> Iterator[RegionPrices]:
    items = (item for page in read_pages(OCI_PAGES, files) for item in page.items)
    prices = read_part_prices(items, str(files[0]))
    recipes = {size.name: scope.stated_parts.get(scope.identify(size.name)) for size in scope.sizes}
    return add_parts(recipes, {(REGION, Purchase("linux", "on_demand")): prices}, scope)


OCI_PAGES = PageApi(to_page=_to_page, to_query=_to_query, link="more")
OCI_PRICES = PriceApi(
    command="oci-prices",
    provider="oci",
    source_id="oci-price-list",
    title="Oracle Cloud price list",
    publisher="Oracle",
    url="https://apexapps.oracle.com/pls/apex/cetools/api/v1/products/",
    figure="value",
    fetch=partial(fetch_pages, OCI_PAGES),
    read=_read,
    by_region=False,
    formula="OCPUs or GPUs x their price an hour + GiB x theirs",
)
