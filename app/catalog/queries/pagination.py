"""Keyset pages over any totally ordered list: the cursor is opaque and belongs to one question."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson
from sqlalchemy import ColumnElement, and_, false, or_, select, tuple_
from sqlalchemy.orm import Session
from sqlalchemy.sql import Select, func

from app.catalog.column_types import table_of
from app.catalog.models import Revision
from app.db.statements import BoundStatement, QueryPlan, Statement, run_plan
from app.errors import BadCursor, CursorGone


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """Where a page begins: behind these values of its order, in the list as a revision has it."""

    revision: str
    values: list[Any]


def query_hash(question: str) -> str:
    """What ties a cursor to its question."""
    return hashlib.sha256(question.encode()).hexdigest()[:12]


def write_cursor(question: str, revision: str, values: Sequence[Any]) -> str:
    """Write the place after which the next page begins."""
    kept = [query_hash(question), revision, *(_write(value) for value in values)]
    return base64.urlsafe_b64encode(orjson.dumps(kept)).decode().rstrip("=")


def read_cursor(cursor: str, question: str, count: int) -> CursorPosition:
    """Read the place back; raises BadCursor for one that is damaged or of another question."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        mark, revision, *kept = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        values = [_read(value) for value in kept]
    except (ValueError, TypeError, ArithmeticError, KeyError, RecursionError):
        mark, revision, values = None, "", []
    if mark != query_hash(question) or len(values) != count or not isinstance(revision, str):
        raise BadCursor(cursor)
    return CursorPosition(revision, values)


def offset_of(place: CursorPosition | None, cursor: str | None) -> int:
    """Where a page of a list begins that is made anew each time, so that the place is a number."""
    if place is None:
        return 0
    (start,) = place.values
    if type(start) is not int or start < 0:
        raise BadCursor(cursor or "")
    return start


def _write(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, float) and not isfinite(value):
        return {"float": str(value)}  # the rank of an unknown price; JSON has no such number
    return value


_READ: dict[str, Callable[[str], Any]] = {"decimal": Decimal, "date": date.fromisoformat, "float": float}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _READ[kind](text)
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError
    return value


_REVISION = table_of(Revision).c
_NEWEST = Statement(select(_REVISION.number, _REVISION.digest).order_by(_REVISION.number.desc()).limit(1), short=True)


def current_revision() -> QueryPlan[str]:
    """The mark of the revision that holds: its number, which only grows, and the begin of its digest."""
    rows = yield BoundStatement(_NEWEST, {})
    return "-".join(f"{part}"[:8] for part in rows[0]) if rows else ""


def get_revision(session: Session) -> str:
    """The mark of the revision that holds; a walk is begun with it before its first page is read."""
    return run_plan(session, current_revision())


def ensure_same_revision(place: CursorPosition) -> QueryPlan[str]:
    """See, after a page was read, that nothing has changed since the page before; raises CursorGone."""
    now = yield from current_revision()
    if now != place.revision:
        raise CursorGone(place.revision, now)
    return now


Item = dict[str, Any]
_TOO_LARGE = 2**31
"""No integer of ours is as large, and PostgreSQL compares an integer column with nothing larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One key of an order: an expression, its direction; where it is unknown, the row comes last."""

    name: str
    expression: ColumnElement[Any]
    descending: bool = False
    nullable: bool = True

    @property
    def order_by(self) -> list[ColumnElement[Any]]:
        """The ORDER BY of this key, the same on both databases."""
        direction = self.expression.desc() if self.descending else self.expression.asc()
        return [self.expression.is_(None), direction] if self.nullable else [direction]

    def accepts(self, value: Any) -> bool:
        """Whether a value can stand in this key: of the column's type, and one that every database can hold."""
        if value is None:
            return self.nullable
        kind = self.expression.type.python_type
        if isinstance(value, int) and not isinstance(value, bool):
            return kind in (int, float) and abs(value) < _TOO_LARGE
        if isinstance(value, str):
            return kind is str and value.isprintable()
        return type(value) is kind and (not isinstance(value, Decimal) or value.is_finite())

    def is_at(self, value: Any) -> ColumnElement[bool]:
        """Rows that have the value."""
        return self.expression.is_(None) if value is None else self.expression == value

    def is_after(self, value: Any) -> ColumnElement[bool]:
        """Rows that come after the value."""
        if value is None:
            return false()
        further = self.expression < value if self.descending else self.expression > value
        return or_(further, self.expression.is_(None)) if self.nullable else further


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a list: its items, the cursor of the next page (None at the end), and how many there are in all."""

    items: list[Item]
    next_cursor: str | None
    total: int


def fetch_page(
    session: Session, query: Select[Any], terms: Sequence[SortKey], *, question: str, limit: int, cursor: str | None
) -> Listing:
    """Take one page of a query in a total order; `question` is everything but the cursor and the limit.

    The query must select each term's expression under the term's name. Raises BadCursor, or CursorGone for a page
    after one of another revision.
    """
    place = read_position(cursor, question, terms) if cursor is not None else None
    revision = place.revision if place is not None else get_revision(session)
    counting = query.order_by(None).with_only_columns(func.count(), maintain_column_froms=True)
    total = session.execute(counting).scalar_one()
    page = query.order_by(*(clause for term in terms for clause in term.order_by)).limit(limit + 1)
    if place is not None:
        page = page.where(after_cursor(terms, place.values))
    found = session.execute(page)
    names = tuple(found.keys())
    rows = [dict(zip(names, row, strict=True)) for row in found]
    if place is not None:
        run_plan(session, ensure_same_revision(place))
    more = len(rows) > limit
    rows = rows[:limit]
    last = [rows[-1][term.name] for term in terms] if more else []
    return Listing(items=rows, next_cursor=write_cursor(question, revision, last) if more else None, total=total)


def read_position(cursor: str, question: str, terms: Sequence[SortKey]) -> CursorPosition:
    """Read where a page begins, one value a term; raises BadCursor for one that cannot be of this order."""
    place = read_cursor(cursor, question, len(terms))
    if not all(term.accepts(value) for term, value in zip(terms, place.values, strict=True)):
        raise BadCursor(cursor)
    return place


def after_cursor(terms: Sequence[SortKey], values: Sequence[Any]) -> ColumnElement[bool]:
    """Rows after the place: equal in the first keys, after it in the next; a value may be a parameter, None is null."""
    if not any(term.nullable or term.descending for term in terms):
        return tuple_(*(term.expression for term in terms)) > tuple_(*values)
    branches = []
    for index, (term, value) in enumerate(zip(terms, values, strict=True)):
        equal = [before.is_at(at) for before, at in zip(terms[:index], values[:index], strict=True)]
        branches.append(and_(*equal, term.is_after(value)))
    return or_(*branches)
