"""What is derived for reading: offers, memory buckets, and sizes and offers as JSON text.

The JSON is written once at ingest and spliced into responses, which is faster than serializing rows.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import reduce
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
    literal_column,
    null,
    select,
)

from app.catalog.column_types import table_of
from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Size
from app.catalog.purchases import PURCHASE_MODELS
from app.db.functions import exact_ratio, json_text, number_after, usd_of

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
UNRANKED = literal(UNKNOWN_PRICE_RANK, Double)
_INDEXED_PURCHASES = ("on_demand", "spot")
"""The purchase models with an index by price, in which unknown ones come last; by the others they are null."""


def rank_usd(offer: Any, purchase: str) -> ColumnElement[float]:
    """Return the price of an offer by a purchase model, USD an hour; infinity where it is unknown."""
    rank: ColumnElement[float] = offer[f"{purchase}_rank_usd"]
    return rank if purchase in _INDEXED_PURCHASES else func.coalesce(rank, UNRANKED, type_=Double())


def stored_rank(usd: ColumnElement[float], purchase: str) -> ColumnElement[float]:
    """Return what an offer stores for a price by a purchase model that is null where it is unknown."""
    return func.coalesce(usd, UNRANKED, type_=Double()) if purchase in _INDEXED_PURCHASES else usd


def usd_by(offer: Any, purchase: str) -> ColumnElement[float]:
    """Return the price of an offer by a purchase model, USD an hour; null where it is unknown."""
    return func.nullif(offer[f"{purchase}_rank_usd"], UNRANKED, type_=Double())


def is_priced(offer: Any, purchase: str) -> ColumnElement[bool]:
    """Return the condition that an offer has a price by a purchase model."""
    priced: ColumnElement[bool] = offer[f"{purchase}_rank_usd"] < UNRANKED
    return priced


def side_by_side(prices_in_force: Select[Any], *, adjusted: bool) -> Select[Any]:
    """Select prices in force as one row for each size, region and OS: its key, then PRICE_COLUMNS as they are stored.

    Unless they are `adjusted`, no adjustments are looked for.
    """
    price = prices_in_force.subquery().c
    usd = cast(price.usd_per_hour, Double)
    columns: dict[str, ColumnElement[Any]] = {}
    for purchase in PURCHASE_MODELS:
        of_this = price.purchase == purchase
        columns |= {
            f"{purchase}_rank_usd": stored_rank(func.max(usd).filter(of_this), purchase),
            f"{purchase}_as_of": func.max(price.as_of).filter(of_this),
            f"{purchase}_approximate_date": func.max(cast(price.approximate_date, Integer)).filter(of_this) == 1,
            f"{purchase}_adjustment": func.max(price.adjustment).filter(of_this) if adjusted else cast(null(), String),
            f"{purchase}_median_usd": cast(usd_of(func.max(price.median_nano_usd).filter(of_this)), Double),
            f"{purchase}_disputed": func.max(cast(price.disputed, Integer)).filter(of_this) == 1,
            f"{purchase}_formula": func.max(price.formula).filter(of_this),
        }
    key = [price[name] for name in _KEY]
    return select(*key, *(columns[name].label(name) for name in PRICE_COLUMNS)).group_by(*key)


def spot_saving(offer: Any) -> ColumnElement[float]:
    """Return SPOT_SAVING of an offer; null where a price is unknown, or nothing is paid on demand."""
    on_demand: ColumnElement[float] = func.nullif(usd_by(offer, "on_demand"), 0.0, type_=Double())
    paid = exact_ratio(usd_by(offer, "spot"), literal_column("100", Integer), on_demand)  # so that equal savings tie
    return 100 - paid


def unit_price(offer: Any, purchase: str, name: str) -> ColumnElement[float]:
    """Return one of UNIT_PRICE_FIELDS of an offer; the price of a GPU is six times that of a size with 1/6.

    Null where the price or the figure is unknown or zero.
    """
    has_unit_price, exact = _unit_price(offer, purchase, name)
    return case((has_unit_price, exact))


def _unit_price(offer: Any, purchase: str, name: str) -> tuple[ColumnElement[bool], ColumnElement[float]]:
    """Return the condition that a price of UNIT_PRICE_FIELDS is known, and the price where it is."""
    factor, divisor = UNIT_PRICES[name]
    by = offer[factor] if isinstance(factor, str) else literal_column(str(factor), Integer)
    is_stated = and_(is_priced(offer, purchase), offer[divisor] > 0)
    return is_stated, exact_ratio(offer[f"{purchase}_rank_usd"], by, offer[divisor])


def cheapest_offers(
    offers: FromClause,
    purchase: str,
    partition: Sequence[str],
    *conditions: ColumnElement[bool],
    columns: Sequence[str] = (),
) -> Subquery:
    """Select the cheapest of the offers with equal values of `partition`; of equal prices the first region.

    Without a price by the purchase model it is the cheapest on demand. `columns` are those to select, by default all:
    the fewer, the less there is to sort.
    """
    rank, on_demand = rank_usd(offers.c, purchase), rank_usd(offers.c, "on_demand")
    position = func.row_number().over(
        partition_by=[offers.c[name] for name in partition],
        order_by=(rank, case((rank < UNRANKED, UNRANKED), else_=on_demand), offers.c.region),
    )
    names = columns or offers.c.keys()
    ranked = select(*(offers.c[name] for name in names), position.label("position")).where(*conditions).subquery()
    return select(*(ranked.c[name] for name in names)).where(ranked.c.position == 1).subquery("cheapest")


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


def offer_json(offer: Any, purchase: str) -> ColumnElement[str]:
    """Return the SQL that writes an offer by one purchase model as JSON; prices are USD an hour.

    It begins with the `adjustment` of the price, if rules changed it, and has an `estimate` if no list states it;
    then come OFFER_JSON_FIELDS.
    """
    prices = {"usd_per_hour": purchase, **{f"{model}_usd_per_hour": model for model in PURCHASE_MODELS}}
    columns = {"region": offer["priced_in"], "price_as_of": offer[f"{purchase}_as_of"]}
    median_usd = offer[f"{purchase}_median_usd"]
    marks = {"price_unusual": median_usd.is_not(None), "price_disputed": offer[f"{purchase}_disputed"].is_(True)}

    def member(name: str, start: str) -> ColumnElement[str]:
        yes, no, unknown = (_constant(f"{start}{text}") for text in ("true", "false", "null"))
        if name in marks:
            priced = is_priced(offer, purchase)
            return case((and_(priced, marks[name]), yes), (priced, no), else_=unknown)
        if name in prices:
            is_stated, usd = is_priced(offer, prices[name]), offer[f"{prices[name]}_rank_usd"]
        elif name in UNIT_PRICE_FIELDS:
            is_stated, usd = _unit_price(offer, purchase, name)
        elif name == "median_usd_per_hour":
            is_stated, usd = median_usd.is_not(None), median_usd
        else:
            value = columns[name] if name in columns else offer[name]
            if isinstance(value.type, Boolean):  # SQLite stores them as numbers
                return case((value.is_(True), yes), (value.is_(False), no), else_=unknown)
            return _constant(start) + json_text(value)
        return case((is_stated, number_after(_constant(start), usd)), else_=unknown)

    adjustment = offer[f"{purchase}_adjustment"]
    adjusted = func.coalesce(_constant('{"adjustment":') + adjustment + _constant(","), _constant("{"))
    formula = offer[f"{purchase}_formula"]
    estimate = _constant('"estimate":{"estimated":true,"formula":') + json_text(formula) + _constant("},")
    start = adjusted + case((formula.is_not(None), estimate), else_=_constant(""))
    names = ((name, f'{"," if index else ""}"{name}":') for index, name in enumerate(OFFER_JSON_FIELDS))
    return reduce(add, (member(name, begun) for name, begun in names), start) + _constant("}")


def _constant(text: str) -> ColumnElement[str]:
    """Write one of the texts above into the statement; they have no quotation mark of SQL."""
    return literal_column(f"'{text}'", String)
