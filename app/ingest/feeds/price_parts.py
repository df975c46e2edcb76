"""Computes prices of sizes where a vendor lists prices of parts: cores, memory, GPUs, disks.

A size is so much of some parts. Its price is the sum; where a part has no price for a region and way to buy, the size
has none.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from enum import StrEnum
from fractions import Fraction
from pathlib import Path

from app.catalog.names import size_key
from app.ingest.csv_files import read_rows
from app.ingest.feeds.price_lists import Item, ItemRules, Outcome, Purchase, ReadScope, RegionPrices, map_items, to_nano

Recipe = Mapping[str, Fraction]
"""How much of each part a size is."""
PartPrices = Mapping[tuple[str, Purchase], Mapping[str, Fraction]]
"""USD an hour of each part, by region and way to buy."""

PARTS_COLUMNS = ("size", "part", "quantity")


class LeftOut(StrEnum):
    """Why a size has no price although the vendor lists parts."""

    NO_PARTS = "of whose parts the catalog knows too little"
    PART_WITHOUT_PRICE = "with a part that has no price there"


def load_stated_parts(seeds: Path | None, provider: str) -> Mapping[str, Recipe]:
    """Return the parts of sizes, by key, that a file of the seeds states since they do not follow from its figures."""
    path = seeds / "clouds" / provider / "parts.csv" if seeds else None
    recipes: dict[str, dict[str, Fraction]] = {}
    for row in read_rows(path, PARTS_COLUMNS) if path and path.is_file() else ():
        parts = recipes.setdefault(size_key(row.size_name("size")), {})
        parts[row.text("part")] = Fraction(row.positive("quantity"))
    return recipes


def add_parts(recipes: Mapping[str, Recipe | None], prices: PartPrices, scope: ReadScope) -> Iterator[RegionPrices]:
    """Yield the prices of sizes by region; `recipes` has the parts of each, None where they are not known.

    A way to buy for which no part of a size has a price is none of that size.
    """
    items = (
        {"region": region, "size": size, "purchase": purchase, "parts": parts, "prices": of_parts}
        for (region, purchase), of_parts in sorted(prices.items())
        for size, parts in recipes.items()
        if parts is None or not parts.keys().isdisjoint(of_parts)
    )
    return map_items(items, lambda item: str(item["region"]), _SUMS, scope)


def _to_prices(item: Item, _region: str, _day: date) -> Outcome:
    if item["parts"] is None:
        return LeftOut.NO_PARTS
    if not item["parts"].keys() <= item["prices"].keys():
        return LeftOut.PART_WITHOUT_PRICE
    usd = sum((quantity * item["prices"][part] for part, quantity in item["parts"].items()), Fraction())
    return ((item["size"], item["purchase"], to_nano(usd)),) if usd else LeftOut.PART_WITHOUT_PRICE


_SUMS = ItemRules(to_prices=_to_prices, describe=lambda item: str(item["size"]), size_column="size")
