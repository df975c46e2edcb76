"""The bulk path of each driver: columns of a block go into a temporary table by executemany, or by COPY."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain
from typing import Any

from sqlalchemy import Table
from sqlalchemy.orm import Session

Columns = Sequence[Sequence[Any]]
Converters = Mapping[type, Callable[[Any], Any]]


def load(session: Session, table: Table, blocks: Iterable[Columns]) -> None:
    """Write blocks of columns, in the order of the table's, in the session's transaction."""
    connection = session.connection()
    _LOADERS[connection.dialect.name](connection.connection.driver_connection, table, blocks)


def _executemany(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    marks = ", ".join("?" for _ in table.columns)
    rows = chain.from_iterable(zip(*columns, strict=True) for columns in _converted(table, blocks, _FOR_SQLITE))
    connection.executemany(f"insert into {table.name} values ({marks})", rows)  # noqa: S608  # a table of ours


def _copy(connection: Any, table: Table, blocks: Iterable[Columns]) -> None:
    with connection.cursor() as cursor:
        with cursor.copy(f"copy {table.name} from stdin") as copy:
            for columns in _converted(table, blocks, _FOR_COPY):
                escaped = [_escaped(column) for column in columns]
                copy.write("\n".join(map("\t".join, zip(*escaped, strict=True))) + "\n")
        cursor.execute(f"analyze {table.name}")


_LOADERS: dict[str, Callable[[Any, Table, Iterable[Columns]], None]] = {"sqlite": _executemany, "postgresql": _copy}

_FOR_SQLITE: Converters = {date: date.isoformat, Decimal: float}
_FOR_COPY: Converters = {date: date.isoformat, Decimal: str, int: str, bool: {False: "f", True: "t"}.__getitem__}
_OF_FEW = (date, bool)
"""What a block has few different values of, so that each is converted once."""


def _converted(table: Table, blocks: Iterable[Columns], converters: Converters) -> Iterator[Columns]:
    """Write values as a driver takes them fastest; a table's type says what is in its column."""
    kinds = [column.type.python_type for column in table.columns]
    for columns in blocks:
        yield [_as(kind, column, converters) for kind, column in zip(kinds, columns, strict=True)]


def _as(kind: type, column: Sequence[Any], converters: Converters) -> Sequence[Any]:
    convert = converters.get(kind)
    if convert is None:
        return column
    if kind in _OF_FEW:
        convert = {value: convert(value) for value in set(column)}.__getitem__
    return [*map(convert, column)]


_SPECIAL = re.compile(r"[\\\t\n\r]")
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _escaped(column: Sequence[str]) -> Sequence[str]:
    """Escape what ends a cell or a line of COPY, which is in no column as a rule."""
    if not _SPECIAL.search(" ".join(column)):
        return column
    return [text.translate(_ESCAPES) for text in column]
