"""Lays out what rules did to a price, which stands beside the price in many responses, in columns of its own."""

from collections.abc import Mapping, Sequence
from typing import Any


def flatten_adjustments(rows: Sequence[Mapping[str, Any]], prefix: str = "") -> list[dict[str, Any]]:
    """Return rows with list price and rules as fields of their own, for tables and CSV; the same if no row has any.

    The list price of a row that no rule changed is its price. The new fields have the `prefix` of the price's field.
    """
    name = f"{prefix}adjustment"
    if not any(name in row for row in rows):
        return [dict(row) for row in rows]
    flat = []
    for row in rows:
        adjustment = row.get(name, {"list_usd_per_hour": row[f"{prefix}usd_per_hour"], "rules": []})
        plain = {field: value for field, value in row.items() if field != name}
        listed = {"list_usd_per_hour": adjustment["list_usd_per_hour"], "adjustments": adjustment["rules"]}
        flat.append({**plain, **{f"{prefix}{field}": value for field, value in listed.items()}})
    return flat
