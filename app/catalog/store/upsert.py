"""Writing rows: what is new is added, what differs is changed, what is the same is left alone and counted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from sqlalchemy import Table, bindparam, delete, insert, select, update
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
    """The keys of the rows that are different now, where they are few enough to be told."""

    def __add__(self, other: "TableChange") -> "TableChange":
        """Add up what two writes did."""
        return TableChange(
            self.added + other.added,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.removed + other.removed,
            self.keys | other.keys,
        )

    @property
    def has_changes(self) -> bool:
        """Whether anything is different now."""
        return bool(self.added or self.changed or self.removed)


def save_rows(
    session: Session, model: type[SQLModel], rows: Iterable[DbRow], *, replace_all: bool = False
) -> TableChange:
    """Write rows by primary key; with `whole` the rows are all there should be, and others are removed."""
    table = table_of(model)
    keys = [column.name for column in table.primary_key]
    wanted = {_key(row, keys): dict(row) for row in rows}
    there = {_key(row, keys): row for row in _load_existing(session, table, None if replace_all else wanted)}
    new = [row for key, row in wanted.items() if key not in there]
    different = [row for key, row in wanted.items() if key in there and _differs(row, there[key])]
    gone = [row for key, row in there.items() if key not in wanted] if replace_all else []
    if gone:
        session.execute(_where_key(delete(table), table), [_key_parameters(row, keys) for row in gone])
    if new:
        session.execute(insert(table), new)
    if different:
        others: dict[str, Any] = {name: bindparam(f"new_{name}") for name in different[0] if name not in keys}
        values = [_key_parameters(row, keys) | {f"new_{name}": row[name] for name in others} for row in different]
        session.execute(_where_key(update(table), table).values(others), values)
    unchanged = len(wanted) - len(new) - len(different)
    touched = frozenset(_key(row, keys) for row in (*new, *different, *gone))
    return TableChange(len(new), len(different), unchanged, len(gone), touched)


def _load_existing(session: Session, table: Table, wanted: Iterable[RowKey] | None) -> Iterable[dict[str, Any]]:
    """Read the rows that are there, or of them those whose keys begin as the wanted do."""
    if wanted is None:
        yield from (dict(row) for row in session.execute(select(table)).mappings())
        return
    first = next(iter(table.primary_key))
    values = iter(dict.fromkeys(key[0] for key in wanted))
    while part := list(islice(values, _BATCH_SIZE)):
        query = select(table).where(first.in_(part))
        yield from (dict(row) for row in session.execute(query).mappings())


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
