"""Whole lists of prices as packed rows, one for each size (`app.db.packed`)."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Date, String, bindparam, case, cast, func, literal_column, select

from app.catalog.adjustments import adjusted_nano_usd, adjustment_json
from app.catalog.column_types import NANO_USD, table_of
from app.catalog.in_force import PRICE, last_observed
from app.catalog.models import Size
from app.catalog.queries.price_scope import PRICE_KEY
from app.catalog.queries.prices import PriceStatementKey, price_conditions
from app.catalog.queries.sizes import age_days
from app.db.packed import PackedColumn, joined_by_comma, joined_texts
from app.db.statements import Statement, cached_statement

_TEXTS = {"price_age_days": "seen_until", "unusual": "median_usd_per_hour"}
"""Columns that are computed from the texts of another one."""
_ANY_TEXTS = ("source_id", "adjustments")
"""Columns whose texts may have commas; codes of regions have letters, digits and hyphens."""

_SIZE, _PRICE = table_of(Size).c, PRICE.c


@cached_statement(64)
def packed_prices_statement(key: PriceStatementKey, names: tuple[str, ...]) -> Statement:
    """Build the statement of a whole list, in its order; its packed rows have the columns of `packed_price_columns`.

    SQLite reads prices along PRICE_KEY, which is their order.
    """
    order = [_PRICE[name] for name in PRICE_KEY[1:]]
    name = select(_SIZE.name).where(_SIZE.key == _PRICE.size_key).correlate(PRICE).scalar_subquery()
    packed = [
        (name if text == "size" else _joined(text)(_text(text, key), *order)).label(text) for text in _texts(names)
    ]
    query = select(func.count().label("count"), *packed).select_from(PRICE).where(*price_conditions(key))
    return Statement(query.group_by(_PRICE.size_key).order_by(_PRICE.size_key))


def packed_price_columns(names: Sequence[str], today: date) -> Mapping[str, PackedColumn]:
    """Return where the packed rows of a list have these columns: of prices, their list prices and adjustments."""
    places = {text: place for place, text in enumerate(_texts(names), 1)}
    return {name: _column(name, places[_TEXTS.get(name, name)], today) for name in names}


def _column(name: str, place: int, today: date) -> PackedColumn:
    separator = _joined(_TEXTS.get(name, name)).separator
    if name in ("usd_per_hour", "list_usd_per_hour"):
        return PackedColumn(place=place, separator=separator, divisor=NANO_USD)
    reads: dict[str, Callable[[str], Any]] = {
        "approximate_date": "1".__eq__,
        "price_age_days": partial(age_days, today=today),
        "unusual": bool,
        "median_usd_per_hour": lambda text: int(text) / NANO_USD if text else None,
        "disputed": "1".__eq__,
        "adjustments": lambda text: (orjson.loads(text) or {}).get("rules", []),
    }
    if name in reads:
        return PackedColumn(place=place, separator=separator, read=reads[name])
    return PackedColumn(place=place, separator=separator, repeated=name == "size")


def _joined(text: str) -> type[joined_texts]:
    """Return the function that joins the texts of a column."""
    return joined_texts if text in _ANY_TEXTS else joined_by_comma


def _texts(names: Sequence[str]) -> Sequence[str]:
    """Return which texts packed rows have for columns, each once."""
    return tuple(dict.fromkeys(_TEXTS.get(name, name) for name in names))


def _text(name: str, key: PriceStatementKey) -> ColumnElement[Any]:
    day, known = bindparam("day", type_=Date), bindparam("known", type_=Date) if key.known else None
    texts: dict[str, Callable[[], ColumnElement[Any]]] = {
        "seen_until": lambda: last_observed(_PRICE, day, known),
        "usd_per_hour": lambda: adjusted_nano_usd(_PRICE, day, key.rules),
        "list_usd_per_hour": lambda: _PRICE.nano_usd_per_hour,
        "approximate_date": lambda: _flag(_PRICE.approximate_date),
        "median_usd_per_hour": lambda: func.coalesce(cast(_PRICE.median_nano_usd, String), literal_column("''")),
        "disputed": lambda: _flag(_PRICE.disputed),
        "adjustments": lambda: func.coalesce(adjustment_json(_PRICE, day, key.rules), literal_column("'null'")),
    }
    return texts[name]() if name in texts else _PRICE[name]


def _flag(column: ColumnElement[Any]) -> ColumnElement[str]:
    return case((column, literal_column("'1'")), else_=literal_column("'0'"))
