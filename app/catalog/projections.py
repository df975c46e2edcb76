"""What is derived for reading: offers, memory buckets, and sizes and offers as JSON text.

The JSON is written once at ingest and spliced into responses, which is faster than serializing rows.
"""

import json
from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

from app.catalog.fields import SHOWN_FIELDS, SIZE_FLAGS, SIZE_GROUPS
from app.catalog.purchases import PURCHASE_MODELS
from app.db.dialects import Dialect

_ORDER = (
    *("name", "provider", "series", "category", "quota_family", "parent_size", "verified", "disputed"),
    *("disputed_fields", "vcpus", "cpu_model", "cpu_vendor", "arch", "coremark", "burstable", "cpu_baseline_percent"),
    *("cpu_credits_per_hour", "memory_gib", *SIZE_GROUPS["Processor and memory"], "gpu_vendor", *SIZE_GROUPS["GPU"]),
    *(*SIZE_GROUPS["Disks"], "max_nics", *SIZE_GROUPS["Network"], "confidential_computing", "flags", *SIZE_FLAGS),
    *("preview", "withdrawn", "retirement_date"),
    *(name for name in SHOWN_FIELDS if name not in {"status", "source_url"}),
    "source_url",
)
SIZE_JSON_FIELDS = tuple(name for name in dict.fromkeys(_ORDER) if SHOWN_FIELDS[name].column or name == "gpu_fraction")
"""The fields of a size's JSON, in this order."""


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


RANK_COLUMNS = tuple(f"{purchase}_rank_usd" for purchase in PURCHASE_MODELS)
PRICE_COLUMNS = (
    *RANK_COLUMNS,
    *(
        f"{purchase}_{what}"
        for what in ("as_of", "approximate_date", "adjustment", "median_usd", "disputed", "formula")
        for purchase in PURCHASE_MODELS
    ),
)
"""The columns of an offer that prices in force make up, for each purchase model."""

UNIT_PRICES: Mapping[str, tuple[str | int, str]] = {
    "usd_per_vcpu_hour": (1, "vcpus"),
    "usd_per_1000_coremark_hour": (1000, "coremark"),
    "usd_per_memory_gib_hour": (1, "memory_gib"),
    "usd_per_gpu_hour": ("gpu_count_denominator", "gpu_count_numerator"),
    "usd_per_gpu_gib_hour": (1, "gpu_memory_gib"),
}
"""Prices per unit by an offer, each with what the price is multiplied with and divided by; exact, and rounded once."""
UNIT_PRICE_FIELDS = tuple(UNIT_PRICES)

SPOT_SAVING = "spot_saving_percent"
"""How far the spot price of an offer is below its price on demand; lists are sorted by it."""

_KEY = ("size_key", "region", "os")
COPIED_SIZE_COLUMNS = (
    *("gpu_memory_gib", "gpu_count", "gpu_count_numerator", "gpu_count_denominator", "vcpus", "memory_gib"),
    *("coremark", "preview", "withdrawn", "retirement_date"),
)
"""Columns of a size that its offers repeat, so that a list is filtered, and shown, without joining the size."""

UNKNOWN_PRICE_RANK = float("inf")
"""The rank of an offer without a price, which comes last."""
_INDEXED_PURCHASES = ("on_demand", "spot")
"""The purchase models with an index by price, in which unknown ones come last; by the others they are null."""


def rank_usd(sql: Dialect, offer: str, purchase: str) -> str:
    """Write the price of an offer by a purchase model, USD an hour; infinity where it is unknown."""
    rank = f"{offer}.{purchase}_rank_usd"
    return rank if purchase in _INDEXED_PURCHASES else f"coalesce({rank}, {sql.infinity})"


def stored_rank(sql: Dialect, usd: str, purchase: str) -> str:
    """Write what an offer stores for a price by a purchase model that is null where it is unknown."""
    return f"coalesce({usd}, {sql.infinity})" if purchase in _INDEXED_PURCHASES else usd


def usd_by(sql: Dialect, offer: str, purchase: str) -> str:
    """Write the price of an offer by a purchase model, USD an hour; null where it is unknown."""
    return f"nullif({offer}.{purchase}_rank_usd, {sql.infinity})"


def is_priced(sql: Dialect, offer: str, purchase: str) -> str:
    """Write the condition that an offer has a price by a purchase model."""
    return f"{offer}.{purchase}_rank_usd < {sql.infinity}"


def side_by_side(sql: Dialect, prices_in_force: str, *, adjusted: bool) -> str:
    """Write a query of prices in force as one row for each size, region and OS: its key, then PRICE_COLUMNS as stored.

    Unless they are `adjusted`, no adjustments are looked for.
    """
    columns: dict[str, str] = {}
    for purchase in PURCHASE_MODELS:
        of_this = f"filter (where purchase = '{purchase}')"
        median = sql.usd_of(f"max(median_nano_usd) {of_this}")
        columns |= {
            f"{purchase}_rank_usd": stored_rank(
                sql, f"max(cast(usd_per_hour as double precision)) {of_this}", purchase
            ),
            f"{purchase}_as_of": f"max(as_of) {of_this}",
            f"{purchase}_approximate_date": f"max(cast(approximate_date as integer)) {of_this} = 1",
            f"{purchase}_adjustment": f"max(adjustment) {of_this}" if adjusted else "cast(null as text)",
            f"{purchase}_median_usd": f"cast({median} as double precision)",
            f"{purchase}_disputed": f"max(cast(disputed as integer)) {of_this} = 1",
            f"{purchase}_formula": f"max(formula) {of_this}",
        }
    shown = ", ".join(f"{columns[name]} as {name}" for name in PRICE_COLUMNS)
    key = ", ".join(_KEY)
    return f"select {key}, {shown} from ({prices_in_force}) as price group by {key}"


def spot_saving(sql: Dialect, offer: str) -> str:
    """Write SPOT_SAVING of an offer; null where a price is unknown, or nothing is paid on demand."""
    on_demand = f"nullif({usd_by(sql, offer, 'on_demand')}, 0.0)"
    return f"100 - {sql.exact_ratio(usd_by(sql, offer, 'spot'), '100', on_demand)}"  # so that equal savings tie


def unit_price(sql: Dialect, offer: str, purchase: str, name: str) -> str:
    """Write one of UNIT_PRICE_FIELDS of an offer; the price of a GPU is six times that of a size with 1/6.

    Null where the price or the figure is unknown or zero.
    """
    has_unit_price, exact = _unit_price(sql, offer, purchase, name)
    return f"case when {has_unit_price} then {exact} end"


def _unit_price(sql: Dialect, offer: str, purchase: str, name: str) -> tuple[str, str]:
    """Write the condition that a price of UNIT_PRICE_FIELDS is known, and the price where it is."""
    factor, divisor = UNIT_PRICES[name]
    by = f"{offer}.{factor}" if isinstance(factor, str) else f"{factor}"
    is_stated = f"{is_priced(sql, offer, purchase)} and {offer}.{divisor} > 0"
    return is_stated, sql.exact_ratio(f"{offer}.{purchase}_rank_usd", by, f"{offer}.{divisor}")


def cheapest_offers(sql: Dialect, purchase: str, where: str) -> str:
    """Write a query of the keys of the cheapest offers of each size; of equal prices that of the first region.

    Without a price by the purchase model it is the cheapest on demand.
    """
    rank, on_demand = rank_usd(sql, "offer", purchase), rank_usd(sql, "offer", "on_demand")
    return f"""select region, os, size_key from (
        select region, os, size_key, row_number() over (
            partition by size_key
            order by {rank}, case when {rank} < {sql.infinity} then {sql.infinity} else {on_demand} end, region
        ) as position
        from offer where {where}
    ) as ranked where position = 1"""


OFFER_JSON_FIELDS = (
    *("region", "usd_per_hour", *UNIT_PRICE_FIELDS),
    *(
        f"{purchase}_{what}"
        for purchase in ("on_demand", "spot")
        for what in ("usd_per_hour", "as_of", "approximate_date")
    ),
    *(f"{purchase}_usd_per_hour" for purchase in PURCHASE_MODELS[2:]),
    *("price_unusual", "median_usd_per_hour", "price_disputed"),
    "price_as_of",
)
"""The fields of an offer's JSON, in this order; `render_size` takes the day at its end from the text."""

NO_OFFER_JSON = json.dumps(dict.fromkeys(OFFER_JSON_FIELDS), separators=(",", ":"))
"""The JSON of a size without an offer: every field is null."""


def offer_json(sql: Dialect, offer: str, purchase: str) -> str:
    """Write an offer by one purchase model as JSON; prices are USD an hour.

    It begins with the `adjustment` of the price, if rules changed it, and has an `estimate` if no list states it;
    then come OFFER_JSON_FIELDS.
    """
    prices = {"usd_per_hour": purchase, **{f"{model}_usd_per_hour": model for model in PURCHASE_MODELS}}
    columns = {"region": f"{offer}.priced_in", "price_as_of": f"{offer}.{purchase}_as_of"}
    median_usd = f"{offer}.{purchase}_median_usd"
    marks = {
        "price_unusual": f"{median_usd} is not null",
        "price_disputed": f"{offer}.{purchase}_disputed is true",
    }

    def member(name: str, start: str) -> str:
        yes, no, unknown = (f"'{start}{text}'" for text in ("true", "false", "null"))
        if name in marks:
            priced = is_priced(sql, offer, purchase)
            return f"case when {priced} and {marks[name]} then {yes} when {priced} then {no} else {unknown} end"
        if name in prices:
            is_stated, usd = is_priced(sql, offer, prices[name]), f"{offer}.{prices[name]}_rank_usd"
        elif name in UNIT_PRICE_FIELDS:
            is_stated, usd = _unit_price(sql, offer, purchase, name)
        elif name == "median_usd_per_hour":
            is_stated, usd = f"{median_usd} is not null", median_usd
        else:
            value = columns.get(name, f"{offer}.{name}")
            if name.endswith("approximate_date"):  # SQLite stores flags as numbers
                return f"case when {value} is true then {yes} when {value} is false then {no} else {unknown} end"
            return f"'{start}' || {sql.json_text(value)}"
        shown = sql.number_after(f"'{start}'", usd)
        return f"case when {is_stated} then {shown} else {unknown} end"

    adjustment, formula = f"{offer}.{purchase}_adjustment", f"{offer}.{purchase}_formula"
    estimate = f"""'"estimate":{{"estimated":true,"formula":' || {sql.json_text(formula)} || '}},'"""
    names = ((name, f'{"," if index else ""}"{name}":') for index, name in enumerate(OFFER_JSON_FIELDS))
    return " || ".join(
        (
            f"""coalesce('{{"adjustment":' || {adjustment} || ',', '{{')""",
            f"case when {formula} is not null then {estimate} else '' end",
            *(member(name, start) for name, start in names),
            "'}'",
        )
    )
