"""Statements that are written once as SQL and run on the database driver.

Reading needs no SQLAlchemy: to import it takes longer than most commands, and to build a statement with it longer than
the database to run it.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache, wraps
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Union,
    cast,
)

from app.db.dialects import DIALECTS, Dialect
from app.db.errors import DatabaseError
from app.telemetry import tracing

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

Row = tuple[Any, ...]
Rows = Sequence[Row]
Converter = Callable[[Any], Any]
ALL_ROWS = 2**62
"""The limit of a subquery that is to be computed for itself, and not merged into the statement around it."""
P = ParamSpec("P")
T = TypeVar("T")


ColumnKind = Literal["day", "flag", "time", "usd", "json"]
"""Types of columns that a driver returns as another type: a `usd` is an exact amount, and a `time` is in UTC."""


class Statement:
    """A query as SQL with named parameters; `short` if its cost does not grow with the catalog.

    `sql` is its text, or writes it for a dialect. `kinds` are those of columns by name; of the others values stay as
    the driver returns them.
    """

    def __init__(
        self,
        sql: str | Callable[[Dialect], str],
        *,
        kinds: Mapping[str, ColumnKind] = MappingProxyType({}),
        short: bool = False,
    ) -> None:
        self._sql, self._kinds, self.short = sql, kinds, short
        self._compiled: dict[str, CompiledStatement] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, which are known once it ran."""
        return next((compiled.names for compiled in self._compiled.values() if compiled.names), ())

    def compiled_for(self, kind: str) -> "CompiledStatement":
        """Return the statement for a kind of database, writing it on first use."""
        compiled = self._compiled.get(kind)
        if compiled is None:
            dialect = DIALECTS[kind]
            sql = self._sql if isinstance(self._sql, str) else self._sql(dialect)
            new = CompiledStatement(dialect.parameter_style(sql), self._kinds, _CONVERTERS[kind])
            compiled = self._compiled.setdefault(kind, new)  # one for all threads: running it tells its columns
        return compiled


class CompiledStatement:
    """SQL for one driver; `names` are those of its columns, which are known once it ran."""

    def __init__(self, sql: str, kinds: Mapping[str, ColumnKind], converters: Mapping[ColumnKind, Converter]) -> None:
        self.sql, self._kinds, self._converters = sql, kinds, converters
        self.names: tuple[str, ...] = ()
        self.converters: tuple[tuple[int, Converter], ...] = ()

    def describe(self, description: Any) -> None:
        """Take the names of columns from a cursor that has executed it."""
        if not self.names:
            names = tuple(column[0] for column in description or ())
            kinds = ((index, self._kinds.get(name)) for index, name in enumerate(names))
            self.converters = tuple(
                (index, self._converters[kind]) for index, kind in kinds if kind and kind in self._converters
            )
            self.names = names


def _or_none(convert: Converter) -> Converter:
    return lambda value: None if value is None else convert(value)


_CONVERTERS: Mapping[str, Mapping[ColumnKind, Converter]] = {
    "sqlite": {
        "day": _or_none(date.fromisoformat),
        "flag": _or_none(bool),
        "time": _or_none(lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC)),
        "usd": _or_none(lambda amount: Decimal(repr(amount))),
        "json": _or_none(json.loads),
    },
    "postgresql": {
        "time": _or_none(lambda time: time.astimezone(UTC)),
        "usd": _or_none(lambda amount: Decimal(str(amount)).normalize()),
    },
}
"""How values of a driver become those of a kind, where they are not already."""


def cached_statement(
    max_size: int, *, kinds: Mapping[str, ColumnKind] = MappingProxyType({}), short: bool = False
) -> Callable[[Callable[Concatenate[Dialect, P], str]], Callable[P, Statement]]:
    """Have a function that writes a query return its statement, cached by its arguments, least recently used out."""

    def decorate(build: Callable[Concatenate[Dialect, P], str]) -> Callable[P, Statement]:
        @lru_cache(maxsize=max_size)
        @wraps(build)
        def kept(*args: P.args, **more: P.kwargs) -> Statement:
            return Statement(lambda dialect: build(dialect, *args, **more), kinds=kinds, short=short)

        return cast("Callable[P, Statement]", kept)

    return decorate


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with its parameters: strings, numbers, and dates as ISO strings, which every driver accepts."""

    statement: Statement
    parameters: Mapping[str, Any] = field(default_factory=dict)


class TakesLong(Exception):
    """A statement is not for an event loop: it may take long, or would wait for a lock of the file."""


class QueueFull(Exception):
    """Too many queries wait for a thread."""


class RowReader(Protocol):
    """Runs statements on one connection."""

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement, their values converted to the types of its columns."""


class DriverReader(ABC):
    """Runs statements on a connection by its driver; gives it back at the end of a `with` block."""

    kind: ClassVar[Literal["sqlite", "postgresql"]]
    error_type: ClassVar[type[Exception]]
    """Of all errors of the driver."""
    driver: Any

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Give the connection back."""

    def open_cursor(self) -> Any:
        """Return a cursor of the driver that has the rows of a statement as they are fetched."""
        return self.driver.cursor()

    def to_error(self, error: Exception, sql: str) -> DatabaseError:
        """Return what is raised for an error of the driver, and give up the connection where it is broken."""
        return DatabaseError(error, sql)

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement; raises DatabaseError."""
        compiled = bound.statement.compiled_for(self.kind)
        try:
            with tracing.statement_span(self.kind, compiled.sql):
                cursor = self.driver.execute(compiled.sql, bound.parameters)
                compiled.describe(cursor.description)
                rows = cursor.fetchall()
        except self.error_type as error:
            raise self.to_error(error, compiled.sql) from error
        return convert_rows(rows, compiled)


Reader = Union["Session", RowReader]
"""What reads the database: on a connection of its own, or in a session that writes."""


def fetch(reader: Reader, bound: BoundStatement) -> Rows:
    """Return the rows of a statement."""
    if hasattr(reader, "fetch"):
        return reader.fetch(bound)
    connection = reader.connection()
    compiled = bound.statement.compiled_for(connection.dialect.name)
    with connection.exec_driver_sql(compiled.sql, bound.parameters) as result:
        try:
            compiled.describe(result.cursor.description)
            rows = result.cursor.fetchall()  # the driver's own tuples take a third of the time of SQLAlchemy's rows
        except connection.dialect.loaded_dbapi.Error as error:  # SQLite reads its file here
            raise DatabaseError(error, compiled.sql) from error
    return convert_rows(rows, compiled)


def pad_keys(keys: Sequence[str]) -> list[str]:
    """Repeat the last of some keys until there are a power of two, so that few statements serve lists of any length."""
    return [*keys, *[*keys[-1:]] * ((1 << (len(keys) - 1).bit_length()) - len(keys))] if keys else []


def to_dicts(bound: BoundStatement, rows: Rows) -> list[dict[str, Any]]:
    """Return the rows of a statement by the names of its columns."""
    return [dict(zip(bound.statement.names, row, strict=True)) for row in rows]


def convert_rows(rows: Rows, compiled: CompiledStatement) -> Rows:
    """Convert values that the driver returns in another type than the column's: SQLite has no booleans or dates."""
    if not compiled.converters:
        return rows
    converted = []
    for row in rows:
        values = list(row)
        for index, convert in compiled.converters:
            values[index] = convert(values[index])
        converted.append(tuple(values))
    return converted
