"""Bulk loading into temporary tables, and merging them into a table without a row leaving the database."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any, cast

from sqlalchemy import (
    Column,
    ColumnElement,
    CursorResult,
    Executable,
    FromClause,
    MetaData,
    Select,
    Table,
    and_,
    delete,
    exists,
    select,
    true,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.catalog.column_types import NOT_IN_DIGEST

Columns = Sequence[Sequence[Any]]
Converters = Mapping[type, Callable[[Any], Any]]


def bulk_load(session: Session, table: Table, blocks: Iterable[Columns]) -> None:
    """Load blocks of columns into a table in the session's transaction; the columns are in the order of the table's.

    SQLite takes them by executemany, PostgreSQL by COPY.
    """
    connection = session.connection()
    _LOADERS[connection.dialect.name](connection.connection.driver_connection, table, blocks)


def _executemany(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    marks = ", ".join("?" for _ in table.columns)
    rows = chain.from_iterable(
        zip(*columns, strict=True) for columns in _driver_values(table, blocks, _SQLITE_CONVERTERS)
    )
    connection.executemany(f"insert into {table.name} values ({marks})", rows)  # noqa: S608  # a table of ours


def _copy(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    with connection.cursor() as cursor:
        with cursor.copy(f"copy {table.name} from stdin") as copy:
            for columns in _driver_values(table, blocks, _COPY_CONVERTERS):
                escaped = [_escape_for_copy(column) for column in columns]
                copy.write("\n".join(map("\t".join, zip(*escaped, strict=True))) + "\n")
        cursor.execute(f"analyze {table.name}")


_LOADERS: dict[str, Callable[[Any, Table, Iterable[Columns]], None]] = {"sqlite": _executemany, "postgresql": _copy}

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


def staging_table(table: Table, key: Sequence[str]) -> Table:
    """Build a temporary table with the columns of a table that are not computed, and a key of its own.

    On SQLite it has no rowid, so that rows are stored in the order of the key.
    """
    stored = [column for column in table.columns if column.computed is None]
    columns = [Column(c.name, c.type, primary_key=c.name in key, nullable=c.name not in key) for c in stored]
    return Table(f"staged_{table.name}", MetaData(), *columns, prefixes=["temporary"], sqlite_with_rowid=False)


@contextmanager
def temporary_tables(session: Session, *tables: Table) -> Iterator[None]:
    """Create temporary tables and drop them afterwards; those that a failed ingest left are dropped first."""
    connection = session.connection()
    for table in tables:
        table.drop(connection, checkfirst=True)
        table.create(connection)
    yield
    for table in tables:
        table.drop(connection)


@contextmanager
def without_indexes(session: Session, table: Table) -> Iterator[None]:
    """Drop the indexes of a table on SQLite, but unique ones, and create them again: faster for very many new rows.

    PostgreSQL keeps them, since no other transaction could read the table until the end of the transaction.
    """
    connection = session.connection()
    created: Sequence[str] = ()
    if connection.dialect.name == "sqlite":
        of_table = "type = 'index' and tbl_name = ? and sql like 'create index%'"
        stored = f"select name, sql from sqlite_master where {of_table}"  # noqa: S608  # a text of ours
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


def drop_unchanged(session: Session, staged: Table, table: Table, key: Sequence[str]) -> int:
    """Delete the staged rows that are in the table with the same values; return how many they were."""
    others = [
        name for name in _common_columns(staged, table) if name not in key and table.c[name].info != NOT_IN_DIGEST
    ]
    alike = and_(same_key(staged, table, key), *(staged.c[name].is_not_distinct_from(table.c[name]) for name in others))
    return execute_count(session, delete(staged).where(exists().where(alike)))


def upsert_staged(session: Session, staged: Table, table: Table, key: Sequence[str]) -> int:
    """Insert staged rows, or update the rows that have their unique key; return how many were written.

    Rows are sorted by the primary key first: a B-tree is then written from end to end.
    """
    names = _common_columns(staged, table)
    # Without a WHERE, SQLite parses the ON of "on conflict" as the condition of a join.
    new = select(*(staged.c[name] for name in names)).where(true())
    return upsert(session, table, names, new.order_by(*(staged.c[column.name] for column in table.primary_key)), key)


def upsert(session: Session, table: Table, names: Sequence[str], rows: Select[Any], key: Sequence[str]) -> int:
    """Insert the rows of a query with a WHERE, or update those that have their unique key; return how many."""
    insert = _INSERT[session.connection().dialect.name](table)
    values = {name: insert.excluded[name] for name in names if name not in key}
    return execute_count(
        session, insert.on_conflict_do_update(index_elements=key, set_=values).from_select(names, rows)
    )


def _common_columns(staged: Table, table: Table) -> list[str]:
    return [column.name for column in staged.columns if column.name in table.c]


def execute_count(session: Session, statement: Executable) -> int:
    """Execute a statement that writes; return how many rows it wrote."""
    result = session.execute(statement, execution_options={"preserve_rowcount": True})
    return cast("CursorResult[Any]", result).rowcount
