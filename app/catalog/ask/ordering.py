"""What a list of sizes can be ordered by: an allow-list, and every order ends with the name."""

from collections.abc import Iterable
from difflib import get_close_matches

from app.catalog.ask.ground import Ground
from app.catalog.ask.paging import Term
from app.catalog.fields import SIZE_FIELDS
from app.catalog.offer_docs import usd_per
from app.errors import BadQuestion

_COLUMNS = {
    name: "series_id" if name == "series" else name
    for name, field in SIZE_FIELDS.items()
    if (field.column and field.kind != "boolean") or name == "series"
}
_PRICES = ("usd_per_hour", "usd_per_gpu_hour", "usd_per_gpu_gib_hour")

SORT_KEYS: tuple[str, ...] = ("name", *_COLUMNS, *_PRICES)
"""What `sort` takes, each also with `-` before it."""


def check_sort(keys: Iterable[str]) -> None:
    """Refuse a key that is not in the list; raises BadQuestion naming the nearest."""
    for key in keys:
        name = key.removeprefix("-")
        if name not in SORT_KEYS:
            near = get_close_matches(name, SORT_KEYS, 1)
            hint = f"did you mean {near[0]}? " if near else ""
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
    expressions = {
        "usd_per_hour": lambda: ground.usd,
        "usd_per_gpu_hour": lambda: usd_per(ground.usd, ground.column("gpu_count")),
        "usd_per_gpu_gib_hour": lambda: usd_per(ground.usd, ground.column("gpu_memory_gib")),
    }
    made = expressions[name]() if name in expressions else ground.column(_COLUMNS[name])
    return Term(name=name, expression=made, descending=descending)
