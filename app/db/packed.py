"""Packed rows: rows that each stand for many, whose values the database has joined to one text for each column.

A driver makes an object of each value that it fetches. To join them in the database, and to split the texts again,
takes a third of the time. The first value of a packed row is how many rows it stands for.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from sqlalchemy import String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction

from app.db.statements import Rows

SEPARATOR = "\x1f"
"""Stands between joined texts: no text of a catalog has control characters other than tabs and line ends."""
COMMA = ","
"""Stands between values that have no commas, such as numbers and days: SQLite joins by it where no other is named."""


class joined_texts(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """The values of a group, the first argument, as texts with SEPARATOR between them; the order is by the others.

    The values are not null. On SQLite they are in the order in which the table is read, which must be this one: only
    newer versions can sort here, and sort also what is in order. Without others they are in any order, which is the
    same for all texts of a row.
    """

    type = String()
    inherit_cache = True
    separator = SEPARATOR


class joined_by_comma(joined_texts):  # noqa: N801
    """The same with COMMA between the values, which must have none; SQLite takes a seventh less for it."""

    inherit_cache = True
    separator = COMMA


@compiles(joined_texts, "postgresql")
def _compile_joined_texts(element: joined_texts, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for PostgreSQL."""
    value, *order = (compiler.process(part, **how) for part in element.clauses)
    ordered = f" order by {', '.join(order)}" if order else ""
    return f"string_agg(cast({value} as text), '{element.separator}'{ordered})"


@compiles(joined_texts, "sqlite")
def _compile_joined_texts_for_sqlite(element: joined_texts, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for SQLite; the separator is no parameter, which SQLite would copy for each value."""
    value, *_ = element.clauses
    separated = "" if element.separator == COMMA else f", '{element.separator}'"
    return f"group_concat({compiler.process(value, **how)}{separated})"


def _as_it_is(text: str) -> str:
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedColumn:
    """Where packed rows have the texts of a column, joined by `separator`, and what they mean.

    `read` returns the value of a text, and is called once for each different one of a block. A `repeated` text is not
    joined: it holds for all rows that its row stands for. With a `divisor` texts are whole numbers, and values the
    doubles nearest to their quotients.
    """

    place: int
    read: Callable[[str], Any] = _as_it_is
    separator: str = SEPARATOR
    repeated: bool = False
    divisor: int | None = None

    def values(self, rows: Rows) -> Sequence[Any]:
        """Return the values of packed rows, at least one."""
        if self.repeated:
            return list(chain.from_iterable(repeat(self.read(row[self.place]), row[0]) for row in rows))
        texts = self.separator.join([row[self.place] for row in rows]).split(self.separator)
        if self.divisor is not None:
            return [int(text) / self.divisor for text in texts]  # most are different
        if self.read is _as_it_is:
            return texts
        values = {text: self.read(text) for text in set(texts)}
        return [values[text] for text in texts]


def count_packed(rows: Rows) -> int:
    """Return how many rows packed rows stand for."""
    return sum(row[0] for row in rows)
