"""Formats the note on an unusual or disputed price, the same in the CLI, pages and tools."""

from collections.abc import Callable, Mapping
from typing import Any


def price_note(item: Mapping[str, Any], prefix: str = "", shown: Callable[[Any], str] = "{:g}".format) -> str | None:
    """Return `unusual: median 6.925`, `disputed`, both or None; `prefix` is that of the fields, `price_` in sizes.

    The median is in US dollars an hour, over all regions of the size, system and purchase model; `shown` may return it
    in another currency and unit.
    """
    notes = []
    if item.get(f"{prefix}unusual"):
        notes.append(f"unusual: median {shown(item['median_usd_per_hour'])}")
    if item.get(f"{prefix}disputed"):
        notes.append("disputed")
    return "; ".join(notes) or None
