"""Statements that are compiled once and run on the database's driver, and questions that are made of them.

Building a statement takes SQLAlchemy longer than the database needs to answer it, so what is asked often is built once
for each of its shapes. A question that needs several answers is a generator: it yields statements, is sent their rows,
and does not know whether somebody waits for them or a loop goes on meanwhile.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial, wraps
from typing import Any, ParamSpec, TypeVar, cast

from sqlalchemy import Dialect, FromClause, Select, make_url
from sqlalchemy.dialects.sqlite.base import SQLiteCompiler
from sqlalchemy.orm import Session
from sqlalchemy.types import TypeDecorator, TypeEngine

Row = tuple[Any, ...]
Rows = Sequence[Row]
Converter = Callable[[Any], Any]
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """SQL for one driver, with parameters by name, and what those are that no question gives."""

    sql: str
    constants: Mapping[str, Any]
    converters: tuple[tuple[int, Converter], ...]


class Statement:
    """A query with parameters by name; `short` where its work is bounded by the page, however large the catalog is.

    `names` are those of its columns.
    """

    __slots__ = ("_compiled", "_query", "_rebuild", "names", "short")

    def __init__(self, query: Select[Any], *, short: bool = False) -> None:
        self.names, self.short = tuple(query.selected_columns.keys()), short
        self._query: Select[Any] | None = query
        self._rebuild: Callable[[], Statement] | None = None
        self._compiled: dict[str, CompiledStatement] = {}

    def compiled_for(self, kind: str) -> CompiledStatement:
        """The statement for a kind of database; compiled at the first time."""
        known = self._compiled.get(kind)
        if known is None:
            known = self._compiled[kind] = self._compile(kind)
        return known

    def rebuilt_by(self, make: "Callable[[], Statement]") -> "Statement":
        """Let go of the query once it is compiled: its text is kilobytes, and what SQLAlchemy makes it of a hundred."""
        self._rebuild = make
        return self

    def _compile(self, kind: str) -> CompiledStatement:
        if self._query is None and self._rebuild is not None:  # for another kind of database in the same process
            return self._rebuild().compiled_for(kind)
        query = self._query
        if query is None:
            raise RuntimeError("a statement has let go of its query")
        if self._rebuild is not None:
            self._query = None
        return _compile(query, _dialect(kind))


def cached_statement(max_size: int) -> Callable[[Callable[P, Statement]], Callable[P, Statement]]:
    """Build a statement once for each shape of a question; the shape that was not asked for the longest goes first."""

    def decorate(build: Callable[P, Statement]) -> Callable[P, Statement]:
        @lru_cache(maxsize=max_size)
        @wraps(build)
        def kept(*args: P.args, **more: P.kwargs) -> Statement:
            return build(*args, **more).rebuilt_by(partial(build, *args, **more))

        return cast("Callable[P, Statement]", kept)

    return decorate


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A statement with its parameters: texts, numbers, and dates as ISO texts, as every driver takes them."""

    statement: Statement
    parameters: Mapping[str, Any]


QueryPlan = Generator[BoundStatement, Rows, T]


def run_plan(session: Session, plan: QueryPlan[T]) -> T:
    """Run a question to its end and wait for it."""
    connection = session.connection()
    try:
        bound = next(plan)
        while True:
            compiled = bound.statement.compiled_for(connection.dialect.name)
            found = connection.exec_driver_sql(compiled.sql, {**compiled.constants, **bound.parameters})
            bound = plan.send(convert_rows([tuple(row) for row in found], compiled))
    except StopIteration as end:
        result: T = end.value
        return result


def single_statement(bound: BoundStatement) -> QueryPlan[Rows]:
    """The question that is one statement: its rows."""
    rows = yield bound
    return rows


def convert_rows(rows: Rows, compiled: CompiledStatement) -> Rows:
    """Give rows the types of their columns where the driver's own are others: SQLite knows neither truths nor dates."""
    if not compiled.converters:
        return rows
    return [_convert_row(row, compiled.converters) for row in rows]


def _convert_row(row: Row, converters: tuple[tuple[int, Converter], ...]) -> Row:
    values = list(row)
    for index, convert in converters:
        values[index] = convert(values[index])
    return tuple(values)


def _compile(query: Select[Any], dialect: Dialect) -> CompiledStatement:
    compiled = query.compile(dialect=dialect)
    made = [_converter(column.type, dialect) for column in query.selected_columns]
    converters = tuple((index, each) for index, each in enumerate(made) if each is not None)
    given = {name: bind.value for bind, name in compiled.bind_names.items() if bind.value is not None}
    return CompiledStatement(sql=str(compiled), constants=given, converters=converters)


def _converter(kind: TypeEngine[Any], dialect: Dialect) -> Converter | None:
    """What makes a value of a type of what the driver gives: psycopg gives all but our own types as they are."""
    if dialect.name == "sqlite":
        return kind.dialect_impl(dialect).result_processor(dialect, None)
    return partial(_process_result, kind, dialect) if isinstance(kind, TypeDecorator) else None


def _process_result(kind: TypeDecorator[Any], dialect: Dialect, value: Any) -> Any:
    return kind.process_result_value(value, dialect)


class _HintingCompiler(SQLiteCompiler):
    """Writes hints (`indexed by ...`) behind the table that they are for, which SQLAlchemy does for other databases."""

    def get_from_hint_text(self, _table: FromClause, text: str | None) -> str | None:
        return text


@cache
def _dialect(kind: str) -> Dialect:
    if kind == "sqlite":
        dialect = make_url("sqlite://").get_dialect()(paramstyle="named")  # type: ignore[call-arg]  # every one has it
        dialect.statement_compiler = _HintingCompiler
        return dialect
    return make_url("postgresql+psycopg://").get_dialect()()
