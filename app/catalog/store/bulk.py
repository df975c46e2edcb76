"""Merging staged rows into a table: statements over whole tables, so that no row passes through Python."""

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
    """Write blocks of columns, in the order of the table's, in the session's transaction."""
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
"""What a block has few different values of, so that each is converted once."""


def _driver_values(table: Table, blocks: Iterable[Columns], converters: Converters) -> Iterator[Columns]:
    """Write values as a driver takes them fastest; a table's type says what is in its column."""
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
    """Escape what ends a cell or a line of COPY, which is in no column as a rule."""
    if not _SPECIAL.search(" ".join(column)):
        return column
    return [text.translate(_ESCAPES) for text in column]


_INSERT: dict[str, Callable[[Table], postgresql.Insert | sqlite.Insert]] = {
    "postgresql": postgresql.insert,
    "sqlite": sqlite.insert,
}


def staging_table(table: Table, key: Sequence[str]) -> Table:
    """Describe a temporary table with the given columns of a table; on SQLite its rows lie in the order of a key."""
    given = [column for column in table.columns if column.computed is None]
    columns = [Column(c.name, c.type, primary_key=c.name in key, nullable=c.name not in key) for c in given]
    return Table(f"staged_{table.name}", MetaData(), *columns, prefixes=["temporary"], sqlite_with_rowid=False)


@contextmanager
def temporary_tables(session: Session, *tables: Table) -> Iterator[None]:
    """Make temporary tables, and take them away again; what an ingest left that failed is taken away before."""
    connection = session.connection()
    for table in tables:
        table.drop(connection, checkfirst=True)
        table.create(connection)
    yield
    for table in tables:
        table.drop(connection)


def same_key(left: FromClause, right: FromClause, names: Sequence[str]) -> ColumnElement[bool]:
    """Whether rows of two tables have the same key."""
    return and_(*(left.c[name] == right.c[name] for name in names))


def drop_unchanged(session: Session, staged: Table, table: Table, key: Sequence[str]) -> int:
    """Take away the staged rows that are in the table as they are, and say how many those were."""
    others = [
        name for name in _common_columns(staged, table) if name not in key and table.c[name].info != NOT_IN_DIGEST
    ]
    alike = and_(same_key(staged, table, key), *(staged.c[name].is_not_distinct_from(table.c[name]) for name in others))
    return execute_count(session, delete(staged).where(exists().where(alike)))


def upsert_staged(session: Session, staged: Table, table: Table, key: Sequence[str], *, in_order: bool = False) -> int:
    """Add staged rows, or change those that have their unique key; say how many were written.

    They are sorted first, unless they lie in order already: a table by its key is then written from end to end.
    """
    names = _common_columns(staged, table)
    new = select(*(staged.c[name] for name in names)).where(
        true()
    )  # without a condition SQLite would misread what follows
    if not in_order:
        new = new.order_by(*(staged.c[column.name] for column in table.primary_key))
    insert = _INSERT[session.connection().dialect.name](table)
    values = {name: insert.excluded[name] for name in names if name not in key}
    return execute_count(session, insert.on_conflict_do_update(index_elements=key, set_=values).from_select(names, new))


def _common_columns(staged: Table, table: Table) -> list[str]:
    return [column.name for column in staged.columns if column.name in table.c]


def execute_count(session: Session, statement: Executable) -> int:
    """Run a statement that writes, and say how many rows it wrote."""
    result = session.execute(statement, execution_options={"preserve_rowcount": True})
    return cast("CursorResult[Any]", result).rowcount
