"""What a list of sizes can be ordered by: an allow-list, and every order ends with the name."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Double, cast

from app.catalog.queries.pagination import Term
from app.catalog.queries.price_scope import Ground
from app.catalog.queries.sort_keys import OFFER_COLUMNS, SIZE_COLUMNS, SORT_KEYS
from app.errors import BadQuestion
from app.nearest import did_you_mean, nearest


def check_sort(keys: Iterable[str]) -> None:
    """Refuse a key that is not in the list; raises BadQuestion naming the nearest."""
    for key in keys:
        name = key.removeprefix("-")
        if name not in SORT_KEYS:
            hint = did_you_mean(nearest(name, SORT_KEYS), " ")
            raise BadQuestion("sort", key, f"{hint}allowed are {', '.join(SORT_KEYS)}, each also with -")


def sort_terms(keys: Iterable[str], ground: Ground) -> list[Term]:
    """Turn keys that were checked into a total order."""
    terms: dict[str, Term] = {}
    for key in (*keys, "name"):
        name = key.removeprefix("-")
        terms.setdefault(name, _term(name, ground, descending=key.startswith("-")))
    return list(terms.values())


def _term(name: str, ground: Ground, *, descending: bool) -> Term:
    """The name's key is the name without regard to case; a price in its usual order has its rank, which is known."""
    if name == "name":
        return Term(name=name, expression=ground.key, descending=descending, nullable=False)
    if name == "usd_per_hour" and not descending:
        return Term(name=name, expression=ground.offer.rank_usd, nullable=False)
    return Term(name=name, expression=_expression(name, ground), descending=descending)


def _expression(name: str, ground: Ground) -> ColumnElement[Any]:
    if name == "usd_per_hour":
        return ground.usd
    if name in OFFER_COLUMNS:
        return cast(ground.offer[name], Double)
    return ground.column(SIZE_COLUMNS[name])
