"""What tables say of a price beside it, the same in the CLI, pages and tools: notes, and the list price."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any


def price_note(item: Mapping[str, Any], prefix: str = "", shown: Callable[[Any], str] = "{:g}".format) -> str | None:
    """Return `unusual: median 6.925`, `disputed`, `computed` or what of them applies, else None.

    `prefix` is that of the fields, `price_` in sizes. Of a computed price, its parts are said where they are known. The
    median is in US dollars an hour, over all regions of the size, system and purchase model; `shown` may return it
    in another currency and unit.
    """
    notes = []
    if item.get(f"{prefix}unusual"):
        median = item.get("median_usd_per_hour")
        notes.append("unusual" if median is None else f"unusual: median {shown(median)}")
    if item.get(f"{prefix}disputed"):
        notes.append("disputed")
    if estimate := item.get("estimate"):
        notes.append(f"computed: {' + '.join(estimate['sum']['parts'])}" if "sum" in estimate else "computed")
    return "; ".join(notes) or None


def flatten_adjustments(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> list[dict[str, Any]]:
    """Return rows with list price and rules as fields of their own, for tables and CSV; the same if no row has any.

    The list price of a row that no rule changed is its price. The new fields have the `prefix` of the price's field.
    """
    name = f"{prefix}adjustment"
    if not any(name in row for row in rows):
        return [dict(row) for row in rows]
    flat = []
    for row in rows:
        plain = {field: value for field, value in row.items() if field != name}
        flat.append(plain | adjustment_columns(row, prefix))
    return flat


def adjustment_columns(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return the list price of a row and the rules that changed it; without any it is the price."""
    adjustment = row.get(f"{prefix}adjustment", {"list_usd_per_hour": row[f"{prefix}usd_per_hour"], "rules": []})
    return {
        f"{prefix}list_usd_per_hour": adjustment["list_usd_per_hour"],
        f"{prefix}adjustments": adjustment["rules"],
    }
