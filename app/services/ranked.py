"""Helpers of use cases that rank sizes: candidate rows as VMs, and pages of a list that was ranked in memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Generic, TypeVar

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.pagination import ensure_same_revision, offset_of, read_cursor, write_cursor
from app.catalog.queries.params import PageParams
from app.catalog.queries.snapshot import Catalog
from app.fit.verdict import AdjustedPrice, Vm

Item = TypeVar("Item")


@lru_cache(maxsize=256)
def to_gpus(numerator: int | None, denominator: int | None) -> Fraction | None:
    """Return an exact number of GPUs; None where either part is unknown. The catalog has few distinct ones."""
    return Fraction(numerator, denominator) if numerator is not None and denominator is not None else None


def to_vm(row: Mapping[str, Any], **amounts: Any) -> Vm:
    """Map a candidate row to its name, status, region and prices in USD/h; `amounts` are further fields of the VM."""
    purchases = [name for name in PURCHASE_MODELS if f"{name}_usd_per_hour" in row]
    is_adjusted = bool(purchases) and f"{purchases[0]}_adjustment" in row
    return Vm(
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        provider=row["provider"],
        gpu_memory_gib=row["gpu_memory_gib"],
        region=row["region"],
        in_every_region=bool(row["in_every_region"]),
        usd_per_hour={name: row[f"{name}_usd_per_hour"] for name in purchases},
        as_of={name: row[f"{name}_as_of"] for name in purchases},
        approximate_date={name: row[f"{name}_approximate_date"] for name in purchases},
        unusual_price=frozenset(name for name in purchases if row[f"{name}_unusual"]),
        disputed_price=frozenset(name for name in purchases if row[f"{name}_disputed"]),
        adjustment={name: to_adjustment(row[f"{name}_adjustment"]) for name in purchases} if is_adjusted else {},
        **amounts,
    )


def to_adjustment(text: str | None) -> AdjustedPrice | None:
    """Map what rules did to a price from its JSON; None where they did nothing."""
    if text is None:
        return None
    stored = json.loads(text, parse_float=Decimal)
    return AdjustedPrice(list_usd_per_hour=stored["list_usd_per_hour"], rules=tuple(stored["rules"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPage(Generic[Item]):
    """One page of a ranked list; `next_cursor` is None on the last one."""

    items: Sequence[Item]
    next_cursor: str | None


def paginate(catalog: Catalog, ranked: Sequence[Item], params: PageParams, request_key: str) -> RankedPage[Item]:
    """Return the page of `ranked` at the cursor; raises BadCursor, or CursorGone if the catalog has changed since.

    The list is computed again for every page, so the cursor holds an offset. `request_key` ties it to one request.
    """
    position = read_cursor(params.cursor, request_key, 1) if params.cursor else None
    start = offset_of(position, params.cursor)
    if position is not None:
        ensure_same_revision(catalog, position)
    end = start + params.limit
    cursor = write_cursor(request_key, catalog.snapshot.revision, [end]) if end < len(ranked) else None
    return RankedPage(items=ranked[start:end], next_cursor=cursor)
