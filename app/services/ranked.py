"""Helpers of use cases that rank sizes: candidate rows as VMs, and pages of a list that was ranked in memory."""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeVar

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
    purchases, about, prices_of = _price_columns(tuple(row))
    prices = prices_of(row)
    return Vm(
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        provider=row["provider"],
        gpu_memory_gib=row["gpu_memory_gib"],
        region=row["region"],
        in_every_region=bool(row["in_every_region"]),
        usd_per_hour=dict(zip(purchases, prices, strict=False)),
        **_about_prices(purchases, about, prices[len(purchases) :]),
        **amounts,
    )


@lru_cache(maxsize=64)
def _price_columns(
    names: tuple[str, ...],
) -> tuple[tuple[str, ...], tuple[str, ...], Callable[[Mapping[str, Any]], tuple[Any, ...]]]:
    """Return the purchase models in these columns, the columns of each, and a function that reads a row's prices."""
    purchases = tuple(name for name in PURCHASE_MODELS if f"{name}_usd_per_hour" in names)
    known = ("as_of", "approximate_date", "unusual", "disputed", "adjustment", "formula")
    about = tuple(what for what in known if f"{purchases[0]}_{what}" in names)
    return purchases, about, itemgetter(*(f"{name}_{what}" for what in ("usd_per_hour", *about) for name in purchases))


@lru_cache(maxsize=1024)
def _about_prices(purchases: tuple[str, ...], about: tuple[str, ...], facts: tuple[Any, ...]) -> Mapping[str, Any]:
    """Return what a VM has of its prices besides the amounts. Kept, as many VMs share it."""
    count = len(purchases)
    parts = {what: dict(zip(purchases, facts[index * count :], strict=False)) for index, what in enumerate(about)}
    return {
        "as_of": parts["as_of"],
        "approximate_date": parts["approximate_date"],
        "unusual_price": frozenset(name for name in purchases if parts["unusual"][name]),
        "disputed_price": frozenset(name for name in purchases if parts["disputed"][name]),
        "adjustment": {name: to_adjustment(text) for name, text in parts.get("adjustment", {}).items()},
        "formula": parts.get("formula", {}),
    }


def to_adjustment(text: str | None) -> AdjustedPrice | None:
    """Map what rules did to a price from its JSON; None where they did nothing."""
    if text is None:
        return None
    stored = json.loads(text, parse_float=Decimal)
    return AdjustedPrice(list_usd_per_hour=stored["list_usd_per_hour"], rules=tuple(stored["rules"]))


def paginate(
    catalog: Catalog, ranked: Sequence[Item], params: PageParams, request_key: str
) -> tuple[Sequence[Item], str | None]:
    """Return the page of `ranked` at the cursor, and the cursor of the next one, None on the last.

    Raises BadCursor, or CursorGone if the catalog has changed since.

    The list is computed again for every page, so the cursor holds an offset. `request_key` ties it to one request.
    """
    position = read_cursor(params.cursor, request_key, 1) if params.cursor else None
    start = offset_of(position, params.cursor)
    if position is not None:
        ensure_same_revision(catalog, position)
    end = start + params.limit
    cursor = write_cursor(request_key, catalog.snapshot.revision, [end]) if end < len(ranked) else None
    return ranked[start:end], cursor
