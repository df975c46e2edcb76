"""SELECT statements joined as text from fragments that SQLAlchemy has compiled.

Building and compiling the statement of a list takes SQLAlchemy milliseconds, and its objects 100 KB. Lists are asked
for with thousands of sets of filters, but all of these are made of a few hundred conditions: so each condition, column
and order is compiled once by itself, and the text of a statement is joined from theirs.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Select, literal_column, select, true
from sqlalchemy.sql import operators, visitors
from sqlalchemy.sql.elements import BooleanClauseList

from app.db.statements import CompiledStatement, Statement, compile_query

_MARK: ColumnElement[Any] = literal_column("'fragment'")
"""What the queries select that fragments are compiled in: it tells where a source begins."""
_serial_numbers = count()


@dataclass(frozen=True, slots=True)
class FragmentText:
    """The text of a fragment for one driver, what comes before SELECT, and the values of its own parameters."""

    sql: str
    constants: dict[str, Any]
    before: str = ""


class Fragment:
    """A part of a statement that is compiled by itself, on first use; `within` is the FROM clause that it is used with.

    `tables` are those that it uses columns of.
    """

    __slots__ = ("_expression", "_texts", "_within", "tables")

    def __init__(self, expression: ColumnElement[Any], within: FromClause) -> None:
        self._expression: Any = expression
        if isinstance(expression, BooleanClauseList):
            self._expression = expression.self_group(against=operators.and_)  # brackets around OR
        self._within = within
        self.tables = frozenset(getattr(part, "table", None) for part in visitors.iterate(expression))
        self._texts: dict[str, FragmentText] = {}

    @property
    def always_holds(self) -> bool:
        """Return whether this is the condition that is always true, which a statement may leave out."""
        return self._expression is true()

    def text_for(self, kind: str) -> FragmentText:
        """Return the text for a database dialect."""
        if kind not in self._texts:
            # The last clause of a query, so that its text is all that follows the FROM clause.
            compiled = compile_query(select(_MARK).select_from(self._within).order_by(self._expression), kind)
            start = f"{_from_text(self._within, kind)} ORDER BY "
            if not compiled.sql.startswith(start):
                raise RuntimeError(f"unexpected SQL: {compiled.sql}")
            used = CompiledStatement(compiled.sql.removeprefix(start), compiled.constants, ())
            self._texts[kind] = _with_own_parameters(used)
        return self._texts[kind]


class Source:
    """The FROM clause of a query, with its joins and hints, that is compiled by itself on first use."""

    __slots__ = ("_query", "_texts")

    def __init__(self, query: Select[Any]) -> None:
        self._query = query.with_only_columns(_MARK, maintain_column_froms=True)
        self._texts: dict[str, FragmentText] = {}

    def text_for(self, kind: str) -> FragmentText:
        """Return the text for a database dialect; its CTEs come before the SELECT."""
        if kind not in self._texts:
            compiled = _with_own_parameters(compile_query(self._query, kind))
            before, _, tables = compiled.sql.partition("SELECT 'fragment' \nFROM ")
            self._texts[kind] = FragmentText(tables, compiled.constants, before)
        return self._texts[kind]


class StatementText:
    """Collects the fragments of a statement for one dialect: gives the text of each, and keeps their parameters."""

    def __init__(self, kind: str) -> None:
        self._kind, self._constants, self._before = kind, dict[str, Any](), ""

    def sql(self, fragment: Fragment | Source) -> str:
        """Return the text of a fragment that the statement is made of."""
        text = fragment.text_for(self._kind)
        self._constants |= text.constants
        self._before = self._before or text.before
        return text.sql

    def conditions(self, fragments: Iterable[Fragment]) -> list[str]:
        """Return the texts of conditions, but of those that always hold."""
        return [self.sql(fragment) for fragment in fragments if not fragment.always_holds]

    def compiled(
        self, sql: str, converters: tuple[tuple[int, Callable[[Any], Any]], ...] = (), *, first: str = ""
    ) -> CompiledStatement:
        """Return the statement that was joined from the texts; `first` is a CTE that those of the source may read."""
        before = self._before
        if first:
            before = f"WITH {first}, {before.removeprefix('WITH ')}" if before else f"WITH {first} "
        return CompiledStatement(f"{before}{sql}", self._constants, converters)


class JoinedStatement(Statement):
    """A statement whose text `join` makes for a dialect, from fragments."""

    __slots__ = ("_join",)

    def __init__(self, names: Sequence[str], join: Callable[[str], CompiledStatement], *, short: bool = False) -> None:
        self.names, self.short, self._join = tuple(names), short, join
        self._compiled = {}

    def rebuilt_by(self, make: Callable[[], Statement]) -> Statement:  # noqa: ARG002  # it keeps nothing to drop
        """Return this statement."""
        return self

    def _compile(self, kind: str) -> CompiledStatement:
        return self._join(kind)


def select_text(
    columns: Iterable[str], source: str, *, where: Iterable[str] = (), order: Iterable[str] = (), limit: str = ""
) -> str:
    """Join a SELECT from the texts of its parts; `limit` begins with the word."""
    conditions, keys = " AND ".join(where), ", ".join(order)
    parts = [f"SELECT {', '.join(columns)} FROM {source}"]  # noqa: S608  # parts are compiled; values are parameters
    parts += [f"WHERE {conditions}"] if conditions else []
    parts += [f"ORDER BY {keys}"] if keys else []
    return " ".join([*parts, limit] if limit else parts)


def order_text(expression: str, *, descending: bool, nullable: bool) -> str:
    """Return one key of ORDER BY, with null last, as `SortKey.order_by` does."""
    ordered = f"{expression} {'DESC' if descending else 'ASC'}"
    return f"{expression} IS NULL, {ordered}" if nullable else ordered


@lru_cache(maxsize=128)
def _from_text(within: FromClause, kind: str) -> str:
    return compile_query(select(_MARK).select_from(within), kind).sql


def _with_own_parameters(compiled: CompiledStatement) -> FragmentText:
    """Give the constants of a fragment names that no other fragment has: SQLAlchemy numbers them from 1 in each."""
    if not compiled.constants:
        return FragmentText(compiled.sql, {})
    number = next(_serial_numbers)
    names = {name: f"{name}_of_{number}" for name in compiled.constants}
    parameter = re.compile(rf"(?<=:)({'|'.join(names)})\b|(?<=%\()({'|'.join(names)})(?=\)s)")
    sql = parameter.sub(lambda found: names[found[0]], compiled.sql)
    used = set(re.findall(rf"\w+_of_{number}\b", sql))
    return FragmentText(sql, {names[name]: value for name, value in compiled.constants.items() if names[name] in used})
