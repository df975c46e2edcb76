"""What a table holds as one number: the sum of its rows' hashes, which does not depend on their order.

What was added can be added to it, and what was removed subtracted, so that the number of a large table is known after
an ingest without reading it again (docs/adr/0010-prices-come-in-bulk.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    Integer,
    Select,
    String,
    Table,
    cast,
    func,
    select,
    type_coerce,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import NO_CONTENT, Usd

_MODULUS = 2**256
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Content:
    """How many rows, and the sum of the sha256 of each, modulo 2^256."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: "Content") -> "Content":
        """Put rows to these."""
        return Content(self.rows + other.rows, (self.sum + other.sum) % _MODULUS)

    def __sub__(self, other: "Content") -> "Content":
        """Take rows from these."""
        return Content(self.rows - other.rows, (self.sum - other.sum) % _MODULUS)


def heading(table: Table) -> str:
    """What rows are of: a table and its columns; a table that got other columns has other content."""
    return f"{table.name}({', '.join(column.name for column in _told(table))})"


def content_of(session: Session, rows: Select[Any]) -> Content:
    """Hash every row of a query made by `canonical`, a few thousand at a time."""
    result = session.execute(rows, execution_options={"yield_per": _AT_ONCE})
    content = Content()
    for part in result.partitions():
        content += Content(len(part), sum(map(_hash, part)))
    return content


def _hash(row: Iterable[Any]) -> int:
    """The sha256 of a row as a JSON array of texts, numbers and nulls, without spaces, in UTF-8."""
    return int.from_bytes(sha256(orjson.dumps(tuple(row))).digest())


def canonical(session: Session, table: Table, columns: Table | None = None) -> Select[Any]:
    """Select what both databases give as the same texts, integers and doubles, of a table or of one like it."""
    kind = session.connection().dialect.name
    of = columns if columns is not None else table
    return select(*(_plain(of.c[column.name], kind) for column in _told(table)))


def _told(table: Table) -> list[Column[Any]]:
    """The columns that are content: not those that only say how a row came in."""
    return [column for column in table.columns if column.info != NO_CONTENT]


def _plain(column: Column[Any], kind: str) -> ColumnElement[Any]:
    if isinstance(column.type, Usd):
        return cast(column, Double)
    if isinstance(column.type, Boolean):
        return cast(column, Integer)
    if isinstance(column.type, Date):
        return type_coerce(column, String) if kind == "sqlite" else func.to_char(column, "YYYY-MM-DD")
    return column
