"""Finds the regions that have prices of an operating system and purchase model, for answers without any."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from sqlalchemy import Date, bindparam, or_, select

from app.catalog.column_types import table_of
from app.catalog.models import PriceTotal
from app.catalog.queries.params import OfferParams
from app.catalog.queries.snapshot import Catalog
from app.db.statements import BoundStatement, Statement

_MAX_NAMED = 6
"""The most regions a text names; more are only counted."""
_REFRESH = "`vmsizes refresh azure-prices`"


@dataclass(frozen=True, slots=True, kw_only=True)
class NoPrice:
    """Explains an answer without prices; `known_in` are the regions that have some."""

    os: str
    purchase: str
    known_in: tuple[str, ...]
    detail: str


def explain_no_price(catalog: Catalog, asked: OfferParams) -> NoPrice | None:
    """Find where prices are known if no size has one in the requested regions; None if any has.

    Also None with `known_at`, for which there are no totals.
    """
    if getattr(asked, "known_at", None) is not None:
        return None
    day = getattr(asked, "as_of", None) or catalog.today
    values = {"os": asked.os, "purchase": asked.purchase, "day": day.isoformat()}
    rows = catalog.fetch(BoundStatement(_regions_statement(), values))
    known_in = tuple(region for (region,) in rows)
    if set(asked.region or known_in) & set(known_in):
        return None
    detail = _detail(asked, known_in, len(catalog.snapshot.regions), day if day != catalog.today else None)
    return NoPrice(os=asked.os, purchase=asked.purchase, known_in=known_in, detail=detail)


@lru_cache(maxsize=1)
def _regions_statement() -> Statement:
    """Build the statement of the regions with a price in force on a day."""
    total, day = table_of(PriceTotal).c, bindparam("day", type_=Date)
    asked = (total[name] == bindparam(name, type_=total[name].type) for name in ("os", "purchase"))
    holds = (total.since <= day, or_(total.until.is_(None), total.until > day), total.in_force > 0)
    return Statement(select(total.region).where(*asked, *holds).order_by(total.region), short=True)


def _detail(asked: OfferParams, known_in: Sequence[str], regions: int, past: date | None) -> str:
    """Return the note in words: `linux reserved_3y: no price is known in westeurope, only in polandcentral; …`."""
    where = f"in {' or '.join(asked.region)}" if 0 < len(asked.region) <= _MAX_NAMED else "in any region"
    if len(asked.region) > _MAX_NAMED:
        where = f"in any of the {len(asked.region)} regions"
    if not known_in:
        elsewhere = ", nor in any other region" if asked.region else ""
    elif len(known_in) <= _MAX_NAMED:
        elsewhere = f", only in {', '.join(known_in)}"
    else:
        elsewhere = f", but in {len(known_in)} of {regions} regions"
    on = f" on {past}" if past else ""
    advice = _advice(asked, past, has_others=bool(known_in))
    return f"{asked.os} {asked.purchase}: no price is known {where}{elsewhere}{on}{advice}"


def _advice(asked: OfferParams, past: date | None, *, has_others: bool) -> str:
    """Return what to do next: feeds have only today's prices, and commitments never include a Windows licence."""
    if past is not None:
        return ""
    if asked.os == "windows" and asked.purchase.startswith(("reserved", "savings")):
        return "; it covers the machine and not the licence of Windows: os=linux has its price"
    return f"; {_REFRESH} brings {'the others' if has_others else 'them'}"
