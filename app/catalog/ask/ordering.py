"""What a list of sizes can be ordered by: an allow-list, and every order ends with the name."""

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from sqlalchemy import ColumnElement, Double, cast, func
from sqlalchemy.sql.elements import KeyedColumnElement

from app.catalog.ask.conditions import Context, size
from app.catalog.ask.paging import Term
from app.catalog.fields import SIZE_FIELDS
from app.errors import BadQuestion

_COLUMNS: dict[str, KeyedColumnElement] = {  # type: ignore[type-arg]  # the columns are of many types
    name: size[name]
    for name, field in SIZE_FIELDS.items()
    if field.column and field.kind != "boolean" and name != "series"
} | {"series": size.series_id}
_PRICES = ("usd_per_hour", "usd_per_gpu_hour", "usd_per_gpu_gib_hour")

SORT_KEYS: tuple[str, ...] = ("name", *_COLUMNS, *_PRICES)
"""What `sort` takes, each also with `-` before it."""


@lru_cache(maxsize=512)
def price_columns(context: Context) -> dict[str, ColumnElement[Any]]:
    """The price and what it comes to for a GPU and for a GiB of GPU memory; USD an hour."""
    return {
        "usd_per_hour": context.price,
        "usd_per_gpu_hour": _ratio(context.price, size.gpu_count),
        "usd_per_gpu_gib_hour": _ratio(context.price, size.gpu_memory_gib),
    }


def _ratio(amount: ColumnElement[Any], over: ColumnElement[Any]) -> ColumnElement[Any]:
    """Divide as doubles on both databases; nothing over zero is unknown."""
    return cast(amount, Double) / func.nullif(over, cast(0, Double), type_=Double)


def sort_terms(keys: Iterable[str], context: Context) -> list[Term]:
    """Turn the keys of a sort into a total order; raises BadQuestion for a key that is not in the list."""
    expressions = {"name": size.name, **_COLUMNS, **price_columns(context)}
    terms: dict[str, Term] = {}
    for key in keys:
        name = key.removeprefix("-")
        if name not in expressions:
            raise BadQuestion("sort", key, _allowed(name))
        terms.setdefault(name, Term(name=name, expression=expressions[name], descending=key.startswith("-")))
    terms.setdefault("name", Term(name="name", expression=size.name))
    return list(terms.values())


def _allowed(name: str) -> str:
    near = get_close_matches(name, SORT_KEYS, 1)
    return (f"did you mean {near[0]}? " if near else "") + f"allowed are {', '.join(SORT_KEYS)}, each also with -"
