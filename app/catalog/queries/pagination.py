"""Keyset pagination over any totally ordered list.

A cursor is opaque and belongs to one query and one revision of the catalog: all pages of a list are of the same
revision, so that each row comes once, or the next page is refused.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import cached_property
from math import isfinite
from typing import Any, Self

import orjson
from sqlalchemy import ColumnElement, Integer, and_, bindparam, false, or_, select, tuple_
from sqlalchemy.sql import Select, func

from app.catalog.queries.params import PageParams
from app.catalog.queries.snapshot import Catalog, current_revision
from app.db.statements import BoundStatement, Row, Rows, Statement, to_dicts
from app.errors import BadCursor, CatalogChanged, CursorGone


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """Where a page begins: after the row with these values of the sort keys, in the list of a revision."""

    revision: str
    values: list[Any]

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the values for the binds of `cursor_binds`; dates as ISO text, which every driver takes."""
        return {
            f"at_{index}": value.isoformat() if isinstance(value, date) else value
            for index, value in enumerate(self.values)
        }


def query_hash(query: str) -> str:
    """Return the short hash that ties a cursor to its query."""
    return hashlib.sha256(query.encode()).hexdigest()[:12]


def write_cursor(query: str, revision: str, values: Sequence[Any]) -> str:
    """Encode the position after which the next page begins."""
    kept = [query_hash(query), revision, *(_to_json(value) for value in values)]
    return base64.urlsafe_b64encode(orjson.dumps(kept)).decode().rstrip("=")


def read_cursor(cursor: str, query: str, count: int) -> CursorPosition:
    """Decode a cursor; raises BadCursor for one that is damaged or of another query."""
    try:
        hashed, revision, *kept = _decode(cursor)
        values = [_from_json(value) for value in kept]
    except (ValueError, TypeError, ArithmeticError, KeyError, RecursionError):
        hashed, revision, values = None, "", []
    if hashed != query_hash(query) or len(values) != count or not isinstance(revision, str):
        raise BadCursor(cursor)
    return CursorPosition(revision, values)


def is_cursor_of(cursor: str | None, query: str) -> bool:
    """Return whether a cursor is of a query, as far as its hash tells."""
    try:
        return bool(_decode(cursor or "")[0] == query_hash(query))
    except (ValueError, TypeError, KeyError, IndexError, RecursionError):
        return False


def _decode(cursor: str) -> Any:
    padded = cursor + "=" * (-len(cursor) % 4)
    return orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))


def offset_of(position: CursorPosition | None, cursor: str | None) -> int:
    """Return the offset that a cursor holds for a list that is computed as a whole for each request."""
    if position is None:
        return 0
    (start,) = position.values
    if type(start) is not int or start < 0:
        raise BadCursor(cursor or "")
    return start


def _to_json(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, float) and not isfinite(value):
        return {"float": str(value)}  # infinity, the rank of an unknown price: JSON has no such number
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {"decimal": Decimal, "date": date.fromisoformat, "float": float}


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _PARSERS[kind](text)
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError
    return value


def ensure_same_revision(catalog: Catalog, position: CursorPosition) -> None:
    """Check that no revision came since the page before; raises CursorGone, or CatalogChanged for a newer one."""
    if position.revision == catalog.snapshot.revision:
        return
    if catalog.snapshot.revision == current_revision(catalog):
        raise CursorGone(position.revision, catalog.snapshot.revision)
    raise CatalogChanged


Item = dict[str, Any]
_INT_LIMIT = 2**31
"""PostgreSQL compares an integer column with nothing larger, and no integer of the catalog is as large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One key of an order: an expression and its direction; a row where it is null comes last."""

    name: str
    expression: ColumnElement[Any]
    descending: bool = False
    nullable: bool = True

    @property
    def order_by(self) -> list[ColumnElement[Any]]:
        """Return the ORDER BY of this key, spelled out because the databases place nulls differently."""
        direction = self.expression.desc() if self.descending else self.expression.asc()
        return [self.expression.is_(None), direction] if self.nullable else [direction]

    def accepts(self, value: Any) -> bool:
        """Return whether a cursor may hold this value: of the column's type, in the range of every database."""
        if value is None:
            return self.nullable
        kind = self.expression.type.python_type
        if isinstance(value, int) and not isinstance(value, bool):
            return kind in (int, float) and abs(value) < _INT_LIMIT
        if isinstance(value, str):
            return kind is str and value.isprintable()
        return type(value) is kind and (not isinstance(value, Decimal) or value.is_finite())

    def is_at(self, value: Any) -> ColumnElement[bool]:
        """Return the condition that a row has the value."""
        return self.expression.is_(None) if value is None else self.expression == value

    def is_after(self, value: Any) -> ColumnElement[bool]:
        """Return the condition that a row comes after the value."""
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

    def without(self, *names: str) -> Self:
        """Return the same page without some fields of its items."""
        items = [{name: value for name, value in item.items() if name not in names} for item in self.items]
        return replace(self, items=items)


def read_page(
    catalog: Catalog,
    identity: str,
    page: BoundStatement,
    count: Callable[[], BoundStatement],
    *,
    limit: int,
    position: CursorPosition | None,
    key_of: Callable[[Row], Sequence[Any]],
    to_items: Callable[[Rows], list[Item]],
    kept: bool = False,
) -> Listing:
    """Read one page of a totally ordered list, and count the list unless the snapshot has its total.

    `identity` is the query without its cursor and limit; `page` reads one row more than `limit`, which tells whether
    there is a next page. `key_of` returns the values of the sort keys of a row. Where the total is `kept`, so that
    counting reads no list, a list without rows is not looked for. Raises CursorGone where the catalog has changed since
    the page before.
    """
    if position is not None:
        ensure_same_revision(catalog, position)
    key = "total", hashlib.sha256(identity.encode()).digest()

    def count_all() -> int:
        ((total,),) = catalog.fetch(count())
        return int(total)

    total: int | None = catalog.keep(key, count_all) if kept else catalog.kept(key)
    rows = catalog.fetch(page) if total != 0 or position is not None else ()
    shown = rows[:limit]
    more = len(rows) > len(shown)
    if position is None and not more:
        total = len(rows)  # the page is the whole list
        if not rows:
            catalog.keep(key, lambda: 0)  # nothing matches, which is not looked for again
    elif total is None:
        total = catalog.keep(key, count_all)
    cursor = write_cursor(identity, catalog.snapshot.revision, key_of(shown[-1])) if more else None
    return Listing(items=to_items(shown), next_cursor=cursor, total=total)


_LIMIT = bindparam("limit", type_=Integer)


class ListStatements:
    """The statements of a list in a total order: the first `limit` rows, those after a position, all, and their count.

    `build` returns the query; the values that it compares with are binds. `order` are the columns that it selects by
    which it is sorted, none of which is ever null. The list is `short` if it does not grow with the catalog.
    """

    def __init__(
        self,
        build: Callable[[], Select[Any]],
        order: Sequence[str],
        *,
        descending: bool = False,
        short: bool = False,
    ) -> None:
        self._build, self._order, self._descending = build, order, descending

        def whole() -> Select[Any]:
            return build().order_by(*(clause for key in self.sort_keys for clause in key.order_by))

        def later() -> Select[Any]:
            return whole().where(after_cursor(self.sort_keys, cursor_binds(self.sort_keys))).limit(_LIMIT)

        self.whole = Statement(whole)
        self.first = Statement(lambda: whole().limit(_LIMIT), short=short)
        self.later = Statement(later, short=short)
        self.count = Statement(lambda: select(func.count()).select_from(build().subquery()), short=short)

    @cached_property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The keys of the order."""
        columns = self._build().selected_columns
        return tuple(
            SortKey(name=name, expression=columns[name], descending=self._descending, nullable=False)
            for name in self._order
        )


def read_list(
    catalog: Catalog, statements: ListStatements, values: Mapping[str, Any], page: PageParams, *, identity: str
) -> Listing:
    """Read one page of a list, for which the query's binds have some values.

    Raises BadCursor, or CursorGone for a page after one of another revision.
    """
    position = read_position(page.cursor, identity, statements.sort_keys) if page.cursor is not None else None
    bound = BoundStatement(
        statements.first if position is None else statements.later,
        {**values, **(position.parameters if position is not None else {}), "limit": page.limit + 1},
    )

    def key_of(row: Row) -> list[Any]:
        names = bound.statement.names
        return [row[names.index(key.name)] for key in statements.sort_keys]

    return read_page(
        catalog,
        identity,
        bound,
        lambda: BoundStatement(statements.count, values),
        limit=page.limit,
        position=position,
        key_of=key_of,
        to_items=lambda rows: to_dicts(bound, rows),
    )


LIST_COLUMNS = ("use_cases", "integrations", "gpu_dtypes", "supported_images", "aliases")
"""Columns of series and others that hold several values, joined by `; `."""


def split_lists(row: Item) -> Item:
    """Split the texts of LIST_COLUMNS; an unknown one is an empty list."""
    return {
        name: (value.split("; ") if value else []) if name in LIST_COLUMNS else value for name, value in row.items()
    }


def read_position(cursor: str, query: str, sort_keys: Sequence[SortKey]) -> CursorPosition:
    """Decode the cursor of a keyset, one value a sort key; raises BadCursor for one that cannot be of this order."""
    position = read_cursor(cursor, query, len(sort_keys))
    if not all(key.accepts(value) for key, value in zip(sort_keys, position.values, strict=True)):
        raise BadCursor(cursor)
    return position


def cursor_binds(sort_keys: Sequence[SortKey]) -> list[Any]:
    """Return the binds of a position's parameters."""
    return [bindparam(f"at_{index}", type_=key.expression.type) for index, key in enumerate(sort_keys)]


def after_cursor(sort_keys: Sequence[SortKey], values: Sequence[Any]) -> ColumnElement[bool]:
    """Return the condition that a row comes after a position; a value may be a bind, None is null.

    Row values (`(a, b) > (x, y)`), which an index can seek, where all keys ascend and none is nullable; else the same
    written out: equal in the first keys, after it in the next.
    """
    if not any(key.nullable or key.descending for key in sort_keys):
        return tuple_(*(key.expression for key in sort_keys)) > tuple_(*values)
    branches = []
    for index, (key, value) in enumerate(zip(sort_keys, values, strict=True)):
        equal = [before.is_at(at) for before, at in zip(sort_keys[:index], values[:index], strict=True)]
        branches.append(and_(*equal, key.is_after(value)))
    return or_(*branches)
