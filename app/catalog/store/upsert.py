"""Upsert of small tables, and bulk loading into temporary tables, which are merged without a row leaving the database.

Upserts insert new rows, update those that differ, and leave the others alone; all are counted.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    CursorResult,
    Executable,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    and_,
    bindparam,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    true,
    update,
)
from sqlalchemy import Dialect as AnyDialect
from sqlalchemy.dialects import sqlite
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.db.dialects import DIALECTS, Dialect
from app.db.statements import Statement

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

DbRow = Mapping[str, Any]
RowKey = tuple[Any, ...]
_BATCH_SIZE = 500
T = TypeVar("T")


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
    different = [
        row
        for key, row in wanted.items()
        if key in existing and any(existing[key][name] != value for name, value in row.items())
    ]
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
    return (column.in_(part) for part in in_batches(values))


def in_batches(values: Iterable[T]) -> Iterator[list[T]]:
    """Yield lists of as many values as a statement takes."""
    remaining = iter(values)
    while part := list(islice(remaining, _BATCH_SIZE)):
        yield part


def _key(row: DbRow, keys: Sequence[str]) -> RowKey:
    return tuple(row[name] for name in keys)


def _where_key(statement: Any, table: Table) -> Any:
    for column in table.primary_key:
        statement = statement.where(column == bindparam(f"key_{column.name}"))
    return statement


def _key_parameters(row: DbRow, keys: Sequence[str]) -> dict[str, Any]:
    return {f"key_{name}": row[name] for name in keys}


Columns = Sequence[Sequence[Any]]
Converters = Mapping[type, Callable[[Any], Any]]


def temporary_table(name: str, *columns: Column[Any]) -> Table:
    """Return a temporary table; on SQLite one with a primary key is stored in the order of that key."""
    has_key = any(column.primary_key for column in columns)
    return Table(name, MetaData(), *columns, prefixes=["temporary"], sqlite_with_rowid=not has_key)


def columns_like(table: Table, names: Iterable[str], *, primary_key: bool = False) -> Iterator[Column[Any]]:
    """Yield new columns with the names and types of columns of another table."""
    return (Column(name, table.c[name].type, primary_key=primary_key) for name in names)


def bulk_load(session: Session, table: Table, blocks: Iterable[Columns]) -> None:
    """Load blocks of columns into a table in the session's transaction; the columns are in the order of the table's.

    SQLite takes hundreds of rows by each statement, PostgreSQL all by COPY.
    """
    connection = session.connection()
    _LOADERS[connection.dialect.name](connection.connection.driver_connection, table, blocks)
    count_rows(session, table)


def _insert(connection: sqlite3.Connection, table: Table, blocks: Iterable[Columns]) -> None:
    """Insert many rows by each statement, which takes two thirds of executemany: that runs one for each row."""
    row = f"({', '.join('?' for _ in table.columns)})"
    most = connection.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER) // len(table.columns)
    for columns in _driver_values(table, blocks, _SQLITE_CONVERTERS):
        rows = zip(*columns, strict=True)
        while values := [*chain.from_iterable(islice(rows, min(most, _ROWS_AT_ONCE)))]:
            marks = ", ".join([row] * (len(values) // len(columns)))
            connection.execute(f"insert into {table.name} values {marks}", values)  # a table of ours


def _copy(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"copy {table.name} from stdin") as copy:
        for columns in _driver_values(table, blocks, _COPY_CONVERTERS):
            # As a rule no column has what COPY reads as the end of a cell or line, so one search skips it.
            escaped = [
                [text.translate(_ESCAPES) for text in column] if _SPECIAL.search(" ".join(column)) else column
                for column in columns
            ]
            copy.write("\n".join(map("\t".join, zip(*escaped, strict=True))) + "\n")


_ROWS_AT_ONCE = 250
_LOADERS: dict[str, Callable[[Any, Table, Iterable[Columns]], None]] = {"sqlite": _insert, "postgresql": _copy}

_SQLITE_CONVERTERS: Converters = {date: date.isoformat, Decimal: float}
_COPY_CONVERTERS: Converters = {date: date.isoformat, Decimal: str, int: str, bool: {False: "f", True: "t"}.__getitem__}
_LOW_CARDINALITY = (date, bool)
"""Types of which a block has few distinct values, so that each value is converted once."""


def _driver_values(table: Table, blocks: Iterable[Columns], converters: Converters) -> Iterator[Columns]:
    """Yield the blocks with values as the driver takes them fastest; the type of a column says what its values are."""
    kinds = [column.type.python_type for column in table.columns]
    for columns in blocks:
        yield [_convert(kind, column, converters) for kind, column in zip(kinds, columns, strict=True)]


def _convert(kind: type, column: Sequence[Any], converters: Converters) -> Sequence[Any]:
    convert = converters.get(kind)
    if convert is None:
        return column
    if kind in _LOW_CARDINALITY:
        convert = {value: convert(value) for value in set(column)}.__getitem__
    return [*map(convert, column)]


_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _insert_into(session: Session, table: Table) -> "postgresql.Insert | sqlite.Insert":
    if session.connection().dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects.postgresql import insert

    return insert(table)


@contextmanager
def temporary_tables(session: Session, *tables: Table) -> Iterator[None]:
    """Create temporary tables and drop them afterwards; those that a failed ingest left are dropped first."""
    dialect = session.connection().dialect
    drop = [f"drop table if exists {_TEMPORARY_SCHEMAS[dialect.name]}.{table.name}" for table in tables]
    _run(session, [*drop, *(_create_text(table, dialect) for table in tables)])
    yield
    _run(session, drop)


_TEMPORARY_SCHEMAS = {"sqlite": "temp", "postgresql": "pg_temp"}


@cache
def _create_text(table: Table, dialect: AnyDialect) -> str:
    return str(CreateTable(table).compile(dialect=dialect))


def _run(session: Session, statements: Sequence[str]) -> None:
    """Run statements without parameters or results: PostgreSQL takes all of them at once."""
    connection = session.connection()
    for text in statements if connection.dialect.name == "sqlite" else ["; ".join(statements)]:
        connection.exec_driver_sql(text, execution_options={"no_parameters": True})


def count_rows(session: Session, table: Table) -> None:
    """Tell the planner how many rows a temporary table has: else SQLite takes a few for a million, and scans others."""
    _run(session, [f"analyze {_TEMPORARY_SCHEMAS[session.connection().dialect.name]}.{table.name}"])


@contextmanager
def without_indexes(session: Session, table: Table) -> Iterator[None]:
    """Drop the indexes of a table on SQLite and create them again: faster for very many rows.

    PostgreSQL keeps them, since no other transaction could read the table until the end of the transaction.
    """
    connection = session.connection()
    created: Sequence[str] = ()
    if connection.dialect.name == "sqlite":
        stored = "select name, sql from sqlite_master where type = 'index' and tbl_name = ? and sql is not null"
        indexes = connection.exec_driver_sql(stored, (table.name,)).all()
        created = [sql for _, sql in indexes]
        for name, _ in indexes:
            connection.exec_driver_sql(f"drop index {name}")
    yield
    for sql in created:
        connection.exec_driver_sql(sql)


def same_key(left: FromClause, right: FromClause, names: Sequence[str]) -> ColumnElement[bool]:
    """Build the condition that rows of two tables have the same key."""
    return and_(*(left.c[name] == right.c[name] for name in names))


def upsert(session: Session, table: Table, names: Sequence[str], rows: Select[Any], key: Sequence[str]) -> int:
    """Insert the rows of a query with a WHERE, or update those that have their unique key; return how many."""
    insert = _insert_into(session, table)
    values = {name: insert.excluded[name] for name in names if name not in key}
    return execute_count(
        session, insert.on_conflict_do_update(index_elements=key, set_=values).from_select(names, rows)
    )


def add_counts(session: Session, table: Table, counted: str, keys: Select[Any]) -> None:
    """Add to a column of each row of a table how many rows of a query have its primary key; new keys get a row.

    SQLite looks up the key of each row, since it would sort all of them to group them: for few different keys that
    takes twice as long.
    """
    kind = session.connection().dialect.name
    insert = _insert_into(session, table)
    key = [column.name for column in table.primary_key]
    if kind == "sqlite":
        rows = keys.add_columns(literal(1, Integer)).where(true())  # SQLite wants a condition before ON CONFLICT
    else:
        rows = keys.add_columns(func.count()).group_by(*keys.selected_columns)
    added = {counted: table.c[counted] + insert.excluded[counted]}
    session.execute(insert.from_select([*key, counted], rows).on_conflict_do_update(index_elements=key, set_=added))


def sql_of(session: Session) -> Dialect:
    """Return how SQL is spelled for the database of a session."""
    return DIALECTS[session.connection().dialect.name]


def condition(sql: str) -> ColumnElement[bool]:
    """Take a condition that is written as SQL into a statement of SQLAlchemy."""
    return literal_column(sql, Boolean)


def execute_sql(session: Session, statement: Statement, values: Mapping[str, Any]) -> int:
    """Execute a statement that writes and is SQL; days are ISO texts. Return how many rows it wrote."""
    compiled = statement.compiled_for(session.connection().dialect.name)
    return session.connection().exec_driver_sql(compiled.sql, dict(values)).rowcount


def execute_count(session: Session, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
    """Execute a statement that writes; return how many rows it wrote."""
    result = session.execute(statement, values, execution_options={"preserve_rowcount": True})
    return cast("CursorResult[Any]", result).rowcount
