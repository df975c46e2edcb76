"""Bulk loading into temporary tables, and merging them into a table without a row leaving the database."""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import chain, islice
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    Dialect,
    Executable,
    FromClause,
    Integer,
    MetaData,
    Select,
    Table,
    and_,
    func,
    literal,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session
from sqlalchemy.schema import CreateTable

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
            connection.execute(f"insert into {table.name} values {marks}", values)  # noqa: S608  # a table of ours


def _copy(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"copy {table.name} from stdin") as copy:
        for columns in _driver_values(table, blocks, _COPY_CONVERTERS):
            escaped = [_escape_for_copy(column) for column in columns]
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


def _escape_for_copy(column: Sequence[str]) -> Sequence[str]:
    """Escape what COPY reads as the end of a cell or line; as a rule no column has any, so one search skips it."""
    if not _SPECIAL.search(" ".join(column)):
        return column
    return [text.translate(_ESCAPES) for text in column]


_INSERT: dict[str, Callable[[Table], postgresql.Insert | sqlite.Insert]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}


@contextmanager
def temporary_tables(session: Session, *tables: Table) -> Iterator[None]:
    """Create temporary tables and drop them afterwards; those that a failed ingest left are dropped first."""
    kind = session.connection().dialect.name
    drop = [f"drop table if exists {_TEMPORARY_SCHEMAS[kind]}.{table.name}" for table in tables]
    _run(session, [*drop, *(_create_text(table, kind) for table in tables)])
    yield
    _run(session, drop)


_TEMPORARY_SCHEMAS = {"sqlite": "temp", "postgresql": "pg_temp"}
_DIALECTS: dict[str, Callable[[], Dialect]] = {"sqlite": sqlite.dialect, "postgresql": postgresql.dialect}


@cache
def _create_text(table: Table, kind: str) -> str:
    return str(CreateTable(table).compile(dialect=_DIALECTS[kind]()))


def _run(session: Session, statements: Sequence[str]) -> None:
    """Run statements without parameters or results: PostgreSQL takes all of them at once."""
    connection = session.connection()
    driver: Any = connection.connection.driver_connection
    for text in statements if connection.dialect.name == "sqlite" else ["; ".join(statements)]:
        driver.execute(text)


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
    insert = _INSERT[session.connection().dialect.name](table)
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
    insert = _INSERT[kind](table)
    key = [column.name for column in table.primary_key]
    if kind == "sqlite":
        rows = keys.add_columns(literal(1, Integer)).where(true())  # SQLite wants a condition before ON CONFLICT
    else:
        rows = keys.add_columns(func.count()).group_by(*keys.selected_columns)
    added = {counted: table.c[counted] + insert.excluded[counted]}
    session.execute(insert.from_select([*key, counted], rows).on_conflict_do_update(index_elements=key, set_=added))


def execute_count(session: Session, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
    """Execute a statement that writes; return how many rows it wrote."""
    result = session.execute(statement, values, execution_options={"preserve_rowcount": True})
    return cast("CursorResult[Any]", result).rowcount
