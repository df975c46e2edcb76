"""Remembers the prices that were held back since they jumped: a list of another day that has the same confirms them.

They are kept in a file beside the fetched pages and not in the catalog, which has what sources are believed to state.
"""

import csv
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path

from app.catalog.column_types import to_nano_usd
from app.errors import BadData
from app.ingest.feeds.retail_prices import format_usd

_COLUMNS = ("region", "size", "os", "purchase", "old_usd_per_hour", "new_usd_per_hour", "day")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class HeldPrice:
    """A price that was held back: what the list of a day had, and the price before; `size` is a name of the size."""

    region: str
    size: str
    os: str
    purchase: str
    old_nano: int
    new_nano: int
    day: date


def load_held(path: Path) -> list[HeldPrice]:
    """Load the prices that were held back, sorted; raises BadData for a file that is none of ours."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return [_to_held(row) for row in csv.DictReader(file, strict=True)]
        except (KeyError, TypeError, ValueError, ArithmeticError, csv.Error) as error:
            detail = f"is no list of prices that were held back ({', '.join(_COLUMNS)}): delete it"
            raise BadData(detail, file=str(path)) from error


def _to_held(row: dict[str, str]) -> HeldPrice:
    region, size, system, purchase, old, new, day = (row[name] for name in _COLUMNS)
    return HeldPrice(
        region=region,
        size=size,
        os=system,
        purchase=purchase,
        old_nano=to_nano_usd(Decimal(old)),
        new_nano=to_nano_usd(Decimal(new)),
        day=date.fromisoformat(day),
    )


def save_held(path: Path, regions: Collection[str], held: Sequence[HeldPrice]) -> None:
    """Replace what is remembered of some regions; a file is written only where that differs."""
    before = load_held(path)
    after = sorted([*(price for price in before if price.region not in regions), *held])
    if after == before:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for price in after:
            figures = format_usd(price.old_nano), format_usd(price.new_nano)
            writer.writerow((price.region, price.size, price.os, price.purchase, *figures, price.day))
    part.replace(path)
