"""What is derived for reading: offers, memory buckets, and sizes and offers as JSON text.

The JSON is written once at ingest and spliced into responses, which is faster than serializing rows.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import reduce
from math import frexp
from operator import add
from typing import Any

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Select,
    String,
    Subquery,
    case,
    cast,
    func,
    literal,
    select,
)

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.in_force import prices_in_force
from app.catalog.models import Size
from app.db.functions import json_text

_SHOWN_AS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("key", "search_text", "gpu_id", "gpu_count_numerator", "gpu_count_denominator"), ()),
    "series_id": ("series",),
    "gpu_model": ("gpu_model", "gpu_id"),
    "gpu_count": ("gpu_count", "gpu_fraction"),
    next(iter(SIZE_FLAGS)): ("flags", next(iter(SIZE_FLAGS))),
    "source_id": ("source_url",),
}
"""The JSON fields in the place of a column of `size`; any other column is a field of the same name."""

SIZE_JSON_FIELDS = tuple(
    field for column in table_of(Size).columns for field in _SHOWN_AS.get(column.name, (column.name,))
)
"""The fields of a size's JSON, in this order: that of the columns."""


def size_json(row: Mapping[str, Any], source_url: str | None) -> str:
    """Return a row of `size` as JSON: with the list of its flags, the exact fraction, and the count to four digits."""
    numerator, denominator = row["gpu_count_numerator"], row["gpu_count_denominator"]
    part = Fraction(numerator, denominator) if denominator else None
    computed = {
        "series": row["series_id"],
        "gpu_fraction": str(part) if part is not None and part.denominator > 1 else None,
        "gpu_count": round(row["gpu_count"], 4) if part is not None else None,
        "flags": [name for name in SIZE_FLAGS if row[name]],
        "disputed_fields": [name for name in row["disputed_fields"].split("; ") if name],
        "source_url": source_url,
    }
    shown = {name: computed[name] if name in computed else row[name] for name in SIZE_JSON_FIELDS}
    return json.dumps(shown, default=date.isoformat, ensure_ascii=False, separators=(",", ":"))


MAX_MEMORY_BUCKET = 15
"""The bucket of 32 TiB and more."""


def memory_bucket(gpu_memory_gib: float) -> int:
    """Return the bucket of a GPU memory above zero: log2 of the GiB, rounded down, 0 to MAX_MEMORY_BUCKET.

    A list by price is merged from one index scan a bucket, however many memory sizes there are.
    """
    return min(max(frexp(gpu_memory_gib)[1] - 1, 0), MAX_MEMORY_BUCKET)


def memory_bucket_sql(gpu_memory_gib: ColumnElement[float]) -> ColumnElement[int]:
    """Return `memory_bucket` as SQL; null without a GPU."""
    return case(
        *((gpu_memory_gib >= 2.0**bucket, bucket) for bucket in range(MAX_MEMORY_BUCKET, 0, -1)),
        (gpu_memory_gib > 0, 0),
    )


PURCHASE_MODELS = ("on_demand", "spot")
ANY_REGION = "*"
"""The region of offers that are those of the cheapest region."""

PRICE_FIELDS = tuple(
    f"{purchase}_{what}" for purchase in PURCHASE_MODELS for what in ("usd_per_hour", "as_of", "approximate_date")
)
"""The price columns of an offer, for each purchase model."""

UNIT_PRICE_FIELDS = ("usd_per_gpu_hour", "usd_per_gpu_gib_hour")
"""Price of a GPU, and of a GiB of its memory, by an offer; exact, and rounded once."""

_KEY = ("size_key", "region", "os")
COPIED_SIZE_COLUMNS = ("gpu_count", "gpu_memory_gib", "preview", "withdrawn", "retirement_date")
"""Columns of a size that its offers repeat, so that a list is filtered without joining the size."""

UNKNOWN_PRICE_RANK = float("inf")
"""The rank of an offer without a price, which comes last."""


def cheapest_offers(offers: FromClause, each: Sequence[str]) -> Subquery:
    """Select the cheapest of the offers with equal values of `each`; of equal prices the first region."""
    position = func.row_number().over(
        partition_by=[offers.c[name] for name in each], order_by=(offers.c.rank_usd, offers.c.priced_in)
    )
    ranked = select(*offers.c, position.label("position")).subquery()
    return select(*(ranked.c[column.name] for column in offers.c)).where(ranked.c.position == 1).subquery("offer")


def offers_on(
    purchase: str, day: ColumnElement[date], known: ColumnElement[date], spot_since: ColumnElement[date]
) -> Subquery:
    """Select the prices in force on a day, as known on another, by size, region and OS, ranked by a purchase model."""
    priced = side_by_side(prices_in_force(day, known, spot_since)).subquery().c
    rank = price_rank(cast(priced[f"{purchase}_usd_per_hour"], Double)).label("rank_usd")
    columns = [priced[name] for name in (*_KEY, *PRICE_FIELDS)]
    return select(*columns, rank, priced.region.label("priced_in")).subquery()


def price_rank(usd: ColumnElement[float]) -> ColumnElement[float]:
    """Return the rank of a price, by which unknown ones come last."""
    return func.coalesce(usd, literal(UNKNOWN_PRICE_RANK, Double))


def side_by_side(prices: Select[Any]) -> Select[Any]:
    """Select the prices of `prices_in_force` with one row for each size, region and OS: its key, then PRICE_FIELDS."""
    price = prices.subquery().c
    columns: list[ColumnElement[Any]] = [price[name] for name in _KEY]
    for purchase in PURCHASE_MODELS:
        of_this = price.purchase == purchase
        columns += [
            func.max(price.usd_per_hour).filter(of_this).label(f"{purchase}_usd_per_hour"),
            func.max(price.as_of).filter(of_this).label(f"{purchase}_as_of"),
            (func.max(cast(price.approximate_date, Integer)).filter(of_this) == 1).label(
                f"{purchase}_approximate_date"
            ),
        ]
    return select(*columns).group_by(*(price[name] for name in _KEY))


OFFER_JSON_FIELDS = ("region", "usd_per_hour", *UNIT_PRICE_FIELDS, *PRICE_FIELDS, "price_as_of")
"""The fields of an offer's JSON, in this order; `render_size` takes the day at its end from the text."""

NO_OFFER_JSON = json.dumps(dict.fromkeys(OFFER_JSON_FIELDS), separators=(",", ":"))
"""The JSON of a size without an offer: every field is null."""


def offer_json(offer: Mapping[str, ColumnElement[Any]], purchase: str) -> ColumnElement[str]:
    """Return the SQL that writes an offer by one purchase model as JSON; prices are USD an hour."""
    values = {
        **offer,
        "region": offer["priced_in"],
        "usd_per_hour": offer[f"{purchase}_usd_per_hour"],
        "price_as_of": offer[f"{purchase}_as_of"],
    }
    opened = (f'{"," if index else "{"}"{name}":' for index, name in enumerate(OFFER_JSON_FIELDS))
    named = zip(opened, OFFER_JSON_FIELDS, strict=True)
    members = (literal(name, String) + _member(key, values[key]) for name, key in named)
    return reduce(add, members) + literal("}", String)


def _member(name: str, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Return the SQL of a value as JSON; SQLite stores booleans as numbers."""
    if isinstance(value.type, Boolean):
        return case((value.is_(True), "true"), (value.is_(False), "false"), else_="null")
    return json_text(cast(value, Double) if name.endswith("_per_hour") else value)
