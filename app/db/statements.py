"""Statements that are compiled once and run on the database driver.

SQLAlchemy takes longer to build a statement than the database to run it, so frequent statements are built once per
set of build arguments.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Connection, Dialect, Select, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeDecorator
from sqlmodel import Session as ModelSession

from app.telemetry import tracing

Row = tuple[Any, ...]
Rows = Sequence[Row]
Converter = Callable[[Any], Any]
ALL_ROWS = 2**62
"""The limit of a subquery that is to be computed for itself, and not merged into the statement around it."""
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """SQL for one driver with named parameters; `constants` are the values of those that are part of the statement."""

    sql: str
    constants: Mapping[str, Any]
    converters: tuple[tuple[int, Converter], ...]


class Statement:
    """A query with named parameters; `short` if its cost does not grow with the catalog.

    It is built to be compiled, and not kept: the text takes kilobytes, SQLAlchemy's objects about 100 KB.
    """

    def __init__(self, build: Callable[[], Select[Any]], *, short: bool = False) -> None:
        self._build, self.short = build, short
        self._compiled: dict[str, CompiledStatement] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(self._build().selected_columns.keys())

    def compiled_for(self, kind: str) -> CompiledStatement:
        """Return the statement for a database dialect, compiling it on first use."""
        compiled = self._compiled.get(kind)
        if compiled is None:
            query, dialect = self._build(), _dialect(kind)
            self.names = tuple(query.selected_columns.keys())
            text = query.compile(dialect=dialect)
            converters: list[tuple[int, Converter]] = []
            for index, column in enumerate(query.selected_columns):
                convert: Converter | None = None
                if kind == "sqlite":
                    convert = column.type.dialect_impl(dialect).result_processor(dialect, None)
                elif isinstance(column.type, TypeDecorator):  # psycopg converts all but our own types
                    convert = partial(column.type.process_result_value, dialect=dialect)
                if convert is not None:
                    converters.append((index, convert))
            constants = {name: bind.value for bind, name in text.bind_names.items() if bind.value is not None}
            compiled = self._compiled[kind] = CompiledStatement(str(text), constants, tuple(converters))
        return compiled


def cached_statement(
    max_size: int, *, short: bool = False
) -> Callable[[Callable[P, Select[Any]]], Callable[P, Statement]]:
    """Have a function that builds a query return its statement, cached by its arguments, least recently used out."""

    def decorate(build: Callable[P, Select[Any]]) -> Callable[P, Statement]:
        @lru_cache(maxsize=max_size)
        @wraps(build)
        def kept(*args: P.args, **more: P.kwargs) -> Statement:
            return Statement(partial(build, *args, **more), short=short)

        return cast("Callable[P, Statement]", kept)

    return decorate


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with its parameters: strings, numbers, and dates as ISO strings, which every driver accepts."""

    statement: Statement
    parameters: Mapping[str, Any]


class TakesLong(Exception):
    """A statement is not for an event loop: it may take long, or would wait for a lock of the file."""


class RowReader(Protocol):
    """Runs statements on one connection."""

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement, their values converted to the types of its columns."""


class DriverReader:
    """Runs statements on a connection by its driver, in a fifth of the time that a session of SQLAlchemy takes.

    `session` reads on the same connection, for what is asked of tables by SQLAlchemy.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.driver: Any = connection.connection.driver_connection

    @cached_property
    def session(self) -> ModelSession:
        """Return a session on the connection, which ends with it."""
        return ModelSession(bind=self._connection)

    def fetch(self, bound: BoundStatement) -> Rows:
        """Return the rows of a statement; raises OperationalError, and gives up a connection that is broken."""
        dialect = self._connection.dialect
        compiled = bound.statement.compiled_for(dialect.name)
        try:
            with tracing.statement_span(dialect.name, compiled.sql):
                rows = self.driver.execute(compiled.sql, {**compiled.constants, **bound.parameters}).fetchall()
        except dialect.loaded_dbapi.Error as error:
            is_lost = dialect.is_disconnect(error, self.driver, None) or has_outdated_plan(error)
            if is_lost:
                self._connection.invalidate(error)
            raise OperationalError(compiled.sql, None, error, connection_invalidated=is_lost) from error
        return convert_rows(rows, compiled)


Reader = Session | RowReader
"""What questions read the database by."""


def fetch(reader: Reader, bound: BoundStatement) -> Rows:
    """Return the rows of a statement in a session, or on the connection of an event loop."""
    if not isinstance(reader, Session):
        return reader.fetch(bound)
    connection = reader.connection()
    compiled = bound.statement.compiled_for(connection.dialect.name)
    with connection.exec_driver_sql(compiled.sql, {**compiled.constants, **bound.parameters}) as result:
        try:
            rows = result.cursor.fetchall()  # the driver's own tuples take a third of the time of SQLAlchemy's rows
        except connection.dialect.loaded_dbapi.Error as error:  # SQLite reads its file here
            raise OperationalError(compiled.sql, None, error) from error
    return convert_rows(rows, compiled)


def has_outdated_plan(error: BaseException) -> bool:
    """Check whether an error means that PostgreSQL has prepared a statement for other column types.

    A migration that changes the type of a column leaves such statements in every open connection.
    """
    return "cached plan must not change result type" in str(error)


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


@cache
def _dialect(kind: str) -> Dialect:
    if kind == "sqlite":
        return make_url("sqlite://").get_dialect()(paramstyle="named")  # type: ignore[call-arg]  # every one has it
    return make_url("postgresql+psycopg://").get_dialect()()
