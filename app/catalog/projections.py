"""Offers as they are asked for: in one region, in the cheapest of several, or in the cheapest of all."""

import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
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
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
)

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Price
from app.db.functions import json_text

SIZE_JSON_FIELDS = (
    *("name", "provider", "series", "verified", "disputed", "disputed_fields", "vcpus", "cpu_model", "arch"),
    *("memory_gib", "gpu_vendor", "gpu_model", "gpu_id", "gpu_count", "gpu_fraction", "gpu_memory_gib"),
    *("gpu_memory_gib_per_gpu", "gpu_interconnect", "nvlink", "temp_disk_gib", "temp_disk_count", "nvme_disk_gib"),
    *("nvme_disk_count", "max_data_disks", "uncached_disk_iops", "uncached_disk_mbps", "max_nics", "network_mbps"),
    *("infiniband", "infiniband_gbps", "flags", *SIZE_FLAGS, "preview", "withdrawn", "retirement_date", "source_url"),
)
"""What a document holds, in this order."""


def size_json(row: Mapping[str, Any], source_url: str | None) -> str:
    """Write the document of a row of `size`: flags as a list too, the exact fraction, the count to four digits."""
    numerator, denominator = row["gpu_count_numerator"], row["gpu_count_denominator"]
    part = Fraction(numerator, denominator) if denominator else None
    made = {
        "series": row["series_id"],
        "gpu_fraction": str(part) if part is not None and part.denominator > 1 else None,
        "gpu_count": round(row["gpu_count"], 4) if part is not None else None,
        "flags": [name for name in SIZE_FLAGS if row[name]],
        "disputed_fields": [name for name in row["disputed_fields"].split("; ") if name],
        "source_url": source_url,
    }
    shown = {name: made[name] if name in made else row[name] for name in SIZE_JSON_FIELDS}
    return json.dumps(shown, default=date.isoformat, ensure_ascii=False, separators=(",", ":"))


MAX_MEMORY_BUCKET = 15
"""The octave of 32 TiB and more."""


def memory_bucket(gpu_memory_gib: float) -> int:
    """The octave of a GPU memory above zero: its logarithm to the base of two, rounded down, from 0 to LAST."""
    return min(max(frexp(gpu_memory_gib)[1] - 1, 0), MAX_MEMORY_BUCKET)


def memory_bucket_sql(gpu_memory_gib: ColumnElement[float]) -> ColumnElement[int]:
    """The same in SQL; null without a GPU."""
    return case(
        *((gpu_memory_gib >= 2.0**octave, octave) for octave in range(MAX_MEMORY_BUCKET, 0, -1)),
        (gpu_memory_gib > 0, 0),
    )


PURCHASE_MODELS = ("on_demand", "spot")
ANY_REGION = "*"
"""The region of the offers of the cheapest of all regions."""

PRICE_FIELDS = tuple(
    f"{purchase}_{what}" for purchase in PURCHASE_MODELS for what in ("usd_per_hour", "as_of", "approximate_date")
)
"""What an offer says of the price of each purchase model."""

UNIT_PRICE_FIELDS = ("usd_per_gpu_hour", "usd_per_gpu_gib_hour")
"""What a GPU, and a GiB of its memory, costs at an offer; exact, and rounded once."""

MAX_SPOT_AGE_DAYS = 366
"""A spot price changes from month to month: one that is known from longer ago is history and no offer."""

_KEY = ("size_key", "region", "os")
COPIED_SIZE_COLUMNS = ("gpu_count", "gpu_memory_gib", "preview", "withdrawn", "retirement_date")
"""What an offer repeats of its size, so that a list is filtered without looking at the size."""

UNKNOWN_PRICE_RANK = float("inf")
"""The rank of an offer whose price nobody knows: it comes last."""


def earliest_spot_day(day: date) -> date:
    """The earliest day whose spot prices are offers on another."""
    return day - timedelta(days=MAX_SPOT_AGE_DAYS)


def is_offer(price: Any, since: ColumnElement[date]) -> ColumnElement[bool]:
    """Whether a price may be an offer: a spot price must be known from an exact day, and not from before `since`."""
    return or_(price.purchase != "spot", and_(price.approximate_date.is_(False), price.valid_from >= since))


def cheapest_offers(offers: FromClause, each: Sequence[str]) -> Subquery:
    """Of offers by one purchase model the first of each; among equals the first region."""
    place = func.row_number().over(
        partition_by=[offers.c[name] for name in each], order_by=(offers.c.rank_usd, offers.c.priced_in)
    )
    ranked = select(*offers.c, place.label("place")).subquery()
    return select(*(ranked.c[column.name] for column in offers.c)).where(ranked.c.place == 1).subquery("offer")


def offers_on(purchase: str, day: ColumnElement[date], since: ColumnElement[date]) -> Subquery:
    """The prices in force on a day of each size, region and system, ranked by one purchase model."""
    priced = _in_force(day, since).subquery().c
    rank = price_rank(cast(priced[f"{purchase}_usd_per_hour"], Double)).label("rank_usd")
    known = [priced[name] for name in (*_KEY, *PRICE_FIELDS)]
    return select(*known, rank, priced.region.label("priced_in")).subquery()


def price_rank(usd: ColumnElement[float]) -> ColumnElement[float]:
    """The place of a price: unknown ones come last."""
    return func.coalesce(usd, literal(UNKNOWN_PRICE_RANK, Double))


def _in_force(day: ColumnElement[date], since: ColumnElement[date]) -> Select[Any]:
    """Of each price the newest that is in force, one column a purchase model."""
    price = table_of(Price).c
    newest = func.row_number().over(
        partition_by=[*(price[name] for name in _KEY), price.purchase], order_by=price.valid_from.desc()
    )
    ranked = select(*price, newest.label("age")).where(price.valid_from <= day, is_offer(price, since)).subquery().c
    columns: list[ColumnElement[Any]] = [ranked[name] for name in _KEY]
    for purchase in PURCHASE_MODELS:
        of_this = ranked.purchase == purchase
        columns += [
            func.max(ranked.usd_per_hour).filter(of_this).label(f"{purchase}_usd_per_hour"),
            func.max(ranked.valid_from).filter(of_this).label(f"{purchase}_as_of"),
            (func.max(cast(ranked.approximate_date, Integer)).filter(of_this) == 1).label(
                f"{purchase}_approximate_date"
            ),
        ]
    return select(*columns).where(ranked.age == 1).group_by(*(ranked[name] for name in _KEY))


OFFER_JSON_FIELDS = ("region", "usd_per_hour", *UNIT_PRICE_FIELDS, *PRICE_FIELDS, "price_as_of")
"""What a document holds, in this order; its last member is the day from which `usd_per_hour` is known."""

NO_OFFER_JSON = json.dumps(dict.fromkeys(OFFER_JSON_FIELDS), separators=(",", ":"))
"""The document where there is no offer: nothing is known."""


def offer_json(offer: Mapping[str, ColumnElement[Any]], purchase: str) -> ColumnElement[str]:
    """Write an offer by one purchase model: its region, its prices in USD an hour with the days they are of."""
    told = {
        **offer,
        "region": offer["priced_in"],
        "usd_per_hour": offer[f"{purchase}_usd_per_hour"],
        "price_as_of": offer[f"{purchase}_as_of"],
    }
    opened = (f'{"," if place else "{"}"{name}":' for place, name in enumerate(OFFER_JSON_FIELDS))
    named = zip(opened, OFFER_JSON_FIELDS, strict=True)
    members = (literal(name, String) + _member(key, told[key]) for name, key in named)
    return reduce(add, members) + literal("}", String)


def _member(name: str, value: ColumnElement[Any]) -> ColumnElement[str]:
    """Write a value; SQLite has no truths, but numbers for them."""
    if isinstance(value.type, Boolean):
        return case((value.is_(True), "true"), (value.is_(False), "false"), else_="null")
    return json_text(cast(value, Double) if name.endswith("_per_hour") else value)
