"""Upsert of small tables: new rows are inserted, rows that differ updated, the others left alone; all are counted."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of

DbRow = Mapping[str, Any]
RowKey = tuple[Any, ...]
_BATCH_SIZE = 1_000


@dataclass(frozen=True, slots=True)
class TableChange:
    """How many rows of one table were added, changed, left as they were, and removed."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    keys: frozenset[RowKey] = field(default=frozenset(), repr=False, compare=False)
    """The keys of added, changed and removed rows; empty where a bulk statement wrote them."""

    def __add__(self, other: "TableChange") -> "TableChange":
        """Add up two writes."""
        return TableChange(
            self.added + other.added,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.removed + other.removed,
            self.keys | other.keys,
        )

    @property
    def has_changes(self) -> bool:
        """Whether any row was written or removed."""
        return bool(self.added or self.changed or self.removed)


def save_rows(
    session: Session,
    model: type[SQLModel],
    rows: Iterable[DbRow],
    *,
    replace_all: bool = False,
    replaced: Iterable[DbRow] | None = None,
) -> TableChange:
    """Write rows by primary key; with `replace_all` all other rows of the table are deleted.

    `replaced` are the stored rows that these replace, where they are loaded already: those of them that are not
    written again are deleted, and none of the others has a key of `rows`.
    """
    table = table_of(model)
    keys = [column.name for column in table.primary_key]
    wanted = {_key(row, keys): dict(row) for row in rows}
    stored = _load_existing(session, table, None if replace_all else wanted) if replaced is None else replaced
    existing = {_key(row, keys): row for row in stored}
    new = [row for key, row in wanted.items() if key not in existing]
    different = [row for key, row in wanted.items() if key in existing and _differs(row, existing[key])]
    gone = [row for key, row in existing.items() if key not in wanted] if replace_all or replaced is not None else []
    if gone:
        session.execute(_where_key(delete(table), table), [_key_parameters(row, keys) for row in gone])
    if new:
        session.execute(insert(table), new)
    if different:
        others: dict[str, Any] = {name: bindparam(f"new_{name}") for name in different[0] if name not in keys}
        values = [_key_parameters(row, keys) | {f"new_{name}": row[name] for name in others} for row in different]
        session.execute(_where_key(update(table), table).values(others), values)
    unchanged = len(wanted) - len(new) - len(different)
    written = frozenset(_key(row, keys) for row in (*new, *different, *gone))
    return TableChange(len(new), len(different), unchanged, len(gone), written)


def _load_existing(session: Session, table: Table, wanted: Iterable[RowKey] | None) -> Iterable[dict[str, Any]]:
    """Load the rows of a table, or those whose first key column has one of the wanted values."""
    if wanted is None:
        yield from (dict(row) for row in session.execute(select(table)).mappings())
        return
    first = next(iter(table.primary_key))
    for some in among(first, dict.fromkeys(key[0] for key in wanted)):
        yield from (dict(row) for row in session.execute(select(table).where(some)).mappings())


def among(column: Column[Any], values: Iterable[Any]) -> Iterator[ColumnElement[bool]]:
    """Yield the conditions that a column has one of some values, each of as many as a statement takes."""
    remaining = iter(values)
    while part := list(islice(remaining, _BATCH_SIZE)):
        yield column.in_(part)


def _key(row: DbRow, keys: Sequence[str]) -> RowKey:
    return tuple(row[name] for name in keys)


def _differs(row: DbRow, existing: DbRow) -> bool:
    return any(existing[name] != value for name, value in row.items())


def _where_key(statement: Any, table: Table) -> Any:
    for column in table.primary_key:
        statement = statement.where(column == bindparam(f"key_{column.name}"))
    return statement


def _key_parameters(row: DbRow, keys: Sequence[str]) -> dict[str, Any]:
    return {f"key_{name}": row[name] for name in keys}
