"""Writing rows: what is new is added, what differs is changed, what is the same is left alone and counted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, bindparam, delete, insert, select, update
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.tables import table_of

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows of one table were added, changed, left as they were, and removed."""

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0

    def __add__(self, other: "Change") -> "Change":
        """Add up what two writes did."""
        return Change(
            self.added + other.added,
            self.changed + other.changed,
            self.unchanged + other.unchanged,
            self.removed + other.removed,
        )

    @property
    def any(self) -> bool:
        """Whether anything is different now."""
        return bool(self.added or self.changed or self.removed)


def save_rows(session: Session, model: type[SQLModel], rows: Iterable[Row], *, whole: bool = False) -> Change:
    """Write rows by primary key; with `whole` the rows are all there should be, and others are removed."""
    table = table_of(model)
    keys = [column.name for column in table.primary_key]
    there = {_key(row, keys): row for row in map(dict[str, Any], session.execute(select(table)).mappings())}
    wanted = {_key(row, keys): dict(row) for row in rows}
    new = [row for key, row in wanted.items() if key not in there]
    different = [row for key, row in wanted.items() if key in there and _differs(row, there[key])]
    gone = [row for key, row in there.items() if key not in wanted] if whole else []
    if gone:
        session.execute(_where_key(delete(table), table), [_bound(row, keys) for row in gone])
    if new:
        session.execute(insert(table), new)
    for row in different:
        values = {name: value for name, value in row.items() if name not in keys}
        session.execute(_where_key(update(table), table).values(values), _bound(row, keys))
    return Change(len(new), len(different), len(wanted) - len(new) - len(different), len(gone))


def _key(row: Row, keys: list[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in keys)


def _differs(row: Row, there: Row) -> bool:
    return any(there[name] != value for name, value in row.items())


def _where_key(statement: Any, table: Table) -> Any:
    for column in table.primary_key:
        statement = statement.where(column == bindparam(f"key_{column.name}"))
    return statement


def _bound(row: Row, keys: list[str]) -> dict[str, Any]:
    return {f"key_{name}": row[name] for name in keys}
