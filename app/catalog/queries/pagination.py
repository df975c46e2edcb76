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
from math import isfinite
from typing import Any, Self

import orjson

from app.catalog.queries.params import PageParams
from app.catalog.queries.snapshot import Catalog
from app.catalog.revisions import current_revision
from app.catalog.statements import COLUMN_KINDS, Statement
from app.db.dialects import Dialect, parameters
from app.db.statements import BoundStatement, ColumnKind, Row, Rows, to_dicts
from app.errors import BadCursor, CatalogChanged, CursorGone


@dataclass(frozen=True, slots=True)
class CursorPosition:
    """Where a page begins: after the row with these values of the sort keys, in the list of a revision."""

    revision: str
    values: list[Any]

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the values of the parameters of `after_position`; dates as ISO text, which every driver takes."""
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
    """Return whether a cursor is of a query, as far as its hash shows."""
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

    `identity` is the query without its cursor and limit; `page` reads one row more than `limit`, which shows whether
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SortKey:
    """One key of an order: an expression of SQL, the type of its values, and its direction; nulls come last."""

    name: str
    expression: str
    kind: type
    descending: bool = False
    nullable: bool = True

    @property
    def order_by(self) -> str:
        """Return the ORDER BY of this key, spelled out because the databases place nulls differently."""
        direction = f"{self.expression} {'desc' if self.descending else 'asc'}"
        return f"{self.expression} is null, {direction}" if self.nullable else direction

    def accepts(self, value: Any) -> bool:
        """Return whether a cursor may hold this value: of the column's type, in the range of every database."""
        if value is None:
            return self.nullable
        if isinstance(value, int) and not isinstance(value, bool):
            return self.kind in (int, float) and abs(value) < _INT_LIMIT
        if isinstance(value, str):
            return self.kind is str and value.isprintable()
        return type(value) is self.kind and (not isinstance(value, Decimal) or value.is_finite())


def after_position(sort_keys: Sequence[SortKey]) -> str:
    """Return the condition that a row comes after a position, given as parameters, for keys without nulls.

    Row values (`(a, b) > (x, y)`), which an index can seek; keys that descend have but one direction.
    """
    sign = "<" if sort_keys[0].descending else ">"
    at = ", ".join(parameters("at", len(sort_keys)))
    return f"({', '.join(key.expression for key in sort_keys)}) {sign} ({at})"


class ListStatements:
    """The statements of a list in a total order: the first `limit` rows, those after a position, all, and their count.

    `build` writes the query; the values that it compares with are parameters. `order` are the columns that it selects
    by which it is sorted, none of which is ever null, each with the type of its values. The list is `short` if it does
    not grow with the catalog.
    """

    def __init__(
        self,
        build: Callable[[Dialect], str],
        order: Mapping[str, type],
        *,
        descending: bool = False,
        short: bool = False,
        kinds: Mapping[str, ColumnKind] = COLUMN_KINDS,
    ) -> None:
        self.sort_keys = tuple(
            SortKey(name=name, expression=name, kind=kind, descending=descending, nullable=False)
            for name, kind in order.items()
        )
        order_by = ", ".join(key.order_by for key in self.sort_keys)
        after = after_position(self.sort_keys)

        def rows(where: str, limit: str) -> Callable[[Dialect], str]:
            return lambda sql: f"select * from ({build(sql)}) as listed {where} order by {order_by} {limit}"

        self.whole = Statement(rows("", ""), kinds=kinds)
        self.first = Statement(rows("", "limit :limit"), kinds=kinds, short=short)
        self.later = Statement(rows(f"where {after}", "limit :limit"), kinds=kinds, short=short)
        self.count = Statement(lambda sql: f"select count(*) from ({build(sql)}) as listed", short=short)


def read_list(
    catalog: Catalog,
    statements: ListStatements,
    values: Mapping[str, Any],
    page: PageParams,
    *,
    identity: str,
) -> Listing:
    """Read one page of a list, for which the query's parameters have some values.

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
