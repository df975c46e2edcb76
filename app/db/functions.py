"""SQL functions with equal results on SQLite and PostgreSQL: JSON text of a value, exact price ratios and dollars."""

import sqlite3
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

from sqlalchemy import BigInteger, Boolean, ColumnClause, Double, Float, Numeric, String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement, GenericFunction
from sqlalchemy.sql.operators import OperatorType


def _compile_by_template(kind: str, function: type[FunctionElement[Any]], template: str) -> None:
    """Compile a function for one kind of database by a template, which has its arguments in the order of their call."""

    def compile_function(element: FunctionElement[Any], compiler: SQLCompiler, **how: Any) -> str:
        return template.format(*(compiler.process(part, **how) for part in element.clauses))

    compiles(function, kind)(compile_function)


class json_text(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A number, string or date as JSON text: `5.0`, `"eastus"`, `"2026-09-01"`; `null` for null.

    Numbers are doubles of at most 15 significant digits, as prices are: SQLite rounds to 15.
    """

    type = String()
    inherit_cache = True


@compiles(json_text, "postgresql")
def _compile_json_text(element: json_text, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for PostgreSQL, which writes doubles in their shortest form, but whole ones without `.0`."""
    (value,) = element.clauses
    text = f"to_json({compiler.process(value, **how)})::text"
    if isinstance(value.type, Float):
        text = f"regexp_replace({text}, '^(-?[0-9]+)$', '\\1.0')"
    return f"coalesce({text}, 'null')"


@compiles(json_text, "sqlite")
def _compile_json_text_for_sqlite(element: json_text, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for SQLite, whose `json_quote` writes doubles of 15 digits in some versions and of 17 in others."""
    (value,) = element.clauses
    text = compiler.process(value, **how)
    if isinstance(value.type, Float):
        return f"case when {text} is null then 'null' else printf('%!.15g', {text}) end"
    return f"json_quote({text})"


class number_after(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A constant text, and behind it a number that is not null, as `json_text` writes it: `"vcpus":5.0`.

    The text is a literal column without a percent sign.
    """

    type = String()
    inherit_cache = True


@compiles(number_after, "postgresql")
def _compile_number_after(element: number_after, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for PostgreSQL."""
    text, number = element.clauses
    return f"{compiler.process(text, **how)} || {compiler.process(json_text(number), **how)}"


@compiles(number_after, "sqlite")
def _compile_number_after_for_sqlite(element: number_after, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for SQLite: the text becomes a part of the format, which is faster than to join the two."""
    text, number = (compiler.process(part, **how) for part in element.clauses)
    return f"printf({text[:-1]}%!.15g', {number})"


DECIMALS = 9
"""Decimal places of a ratio, rounded half away from zero."""

NANO: int = 10**DECIMALS
"""Nano-dollars in a dollar."""

_MAX_EXACT_NANO_USD = 1e6
"""Below this a double of at most nine decimals is exact when it is counted in nano-dollars."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_QUANTUM = Decimal(1).scaleb(-DECIMALS)


class exact_ratio(GenericFunction[float]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """price * denominator / numerator as a double; null if one of them is null or the numerator is zero."""

    type = Double()
    inherit_cache = True


_MAX_WHOLE_DENOMINATOR, _MAX_WHOLE_NUMERATOR = 8, 10**9
"""Products of nano-dollars with these denominators are below 2**53, which a double holds without rounding."""


@compiles(exact_ratio)
def _compile_exact_ratio(element: exact_ratio, compiler: SQLCompiler, **how: Any) -> str:
    """Compile what `ratio` does with whole numbers; all others are left to Python, or to numerics on PostgreSQL.

    A call of a Python function takes several times as long, and so do numerics.
    """
    usd, by, of = (f"({compiler.process(part, **how)})" for part in element.clauses)
    nano, whole_by, whole_of = (f"cast({number} as bigint)" for number in (f"round({usd} * {_NANO_SQL})", by, of))
    is_whole = (
        f"{usd} >= 0 and {usd} < {_MAX_EXACT_NANO_USD!r} and {by} between 1 and {_MAX_WHOLE_DENOMINATOR}"
        f" and {of} between 1 and {_MAX_WHOLE_NUMERATOR} and {nano} / {_NANO_SQL} = {usd}"
        f" and {by} = {whole_by} and {of} = {whole_of}"
    )
    quotient = f"(2 * {nano} * {whole_by} + {whole_of}) / (2 * {whole_of}) / {_NANO_SQL}"
    other = f"exact_ratio({usd}, {by}, {of})"
    if compiler.dialect.name == "postgresql":  # numerics of sufficient scale, of the shortest text of each double
        usd, by, of = (f"{part}::text::numeric" for part in (usd, by, of))
        other = f"round(({usd} * {by})::numeric(80, 40) / nullif({of}, 0), {DECIMALS})::double precision"
    return f"case when {is_whole} then {quotient} else {other} end"


_NANO_SQL = f"cast({NANO} as double precision)"


@lru_cache(maxsize=16_384)
def ratio(usd: float | None, denominator: float | None, numerator: float | None) -> float | None:
    """Return the same in Python: each number is taken as its shortest decimal text, 0.1 as a tenth."""
    if usd is None or denominator is None or not numerator:
        return None
    if 0 <= usd < _MAX_EXACT_NANO_USD and numerator > 0:
        nano, by, of = round(usd * NANO), int(denominator), int(numerator)
        if nano / NANO == usd and by == denominator and of == numerator:  # as most are: integers are much faster
            return (2 * nano * by + of) // (2 * of) / NANO
    product = _EXACT.multiply(Decimal(repr(usd)), Decimal(repr(denominator)))
    return float(_EXACT.divide(product, Decimal(repr(numerator))).quantize(_QUANTUM, context=_EXACT))


class usd_text(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A price in dollars as its shortest decimal text: `0.5`, `12`; null for null."""

    type = String()
    inherit_cache = True


# Doubles become numerics of 15 digits: as many as a price may have.
_compile_by_template("postgresql", usd_text, "trim_scale(cast({0} as numeric))::text")


def to_usd_text(usd: float | None) -> str | None:
    """Return the same in Python."""
    return None if usd is None else f"{Decimal(repr(usd)).normalize():f}"


class usd_of(GenericFunction[Decimal]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """Nano-dollars as dollars: a numeric on PostgreSQL, on SQLite the double nearest to the exact quotient."""

    type = Numeric(18, DECIMALS)
    inherit_cache = True


_compile_by_template("postgresql", usd_of, f"cast({{0}} / {NANO}::numeric as numeric(18, {DECIMALS}))")

_EXACT_INTEGERS = 2**53
"""A double holds every integer up to this one."""


@compiles(usd_of, "sqlite")
def _compile_usd_of_for_sqlite(element: usd_of, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for SQLite, whose division of a column is exact, but for integers that it would round first.

    A call of a Python function takes three times as long.
    """
    (nano,) = element.clauses
    text = compiler.process(nano, **how)
    if not isinstance(nano, ColumnClause):
        return f"usd_of({text})"
    is_exact = f"{text} between -{_EXACT_INTEGERS} and {_EXACT_INTEGERS}"
    return f"case when {is_exact} then {text} / {float(NANO)!r} else usd_of({text}) end"


class adjusted_nano(GenericFunction[int]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """An amount of nano-dollars after rules, exact and rounded once, half away from zero.

    Behind the amount come pairs of a condition and a literal column: where the condition holds, a Numeric multiplies
    what is left, and a BigInteger takes its place.
    """

    type = BigInteger()
    inherit_cache = True


@compiles(adjusted_nano, "postgresql")
def _compile_adjusted_nano(element: adjusted_nano, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for PostgreSQL, whose numerics lose nothing."""
    amount, *pairs = element.clauses
    text = f"({compiler.process(amount, **how)})::numeric"
    for condition, step in zip(pairs[::2], pairs[1::2], strict=True):
        holds, value = compiler.process(condition, **how), compiler.process(step, **how)
        if isinstance(step.type, Numeric):
            text = f"{text} * case when {holds} then {value} else 1 end"
        else:
            text = f"(case when {holds} then {value} else {text} end)"
    return f"round({text})::bigint"


@compiles(adjusted_nano, "sqlite")
def _compile_adjusted_nano_for_sqlite(element: adjusted_nano, compiler: SQLCompiler, **how: Any) -> str:
    """Compile for SQLite: the steps whose conditions hold are joined to a text, for `apply_steps`."""
    amount, *pairs = element.clauses
    steps = []
    for condition, step in zip(pairs[::2], pairs[1::2], strict=True):
        sign = "*" if isinstance(step.type, Numeric) else "="
        holds, value = compiler.process(condition, **how), compiler.process(step, **how)
        steps.append(f"case when {holds} then '{sign}{value} ' else '' end")
    return f"adjusted_nano({compiler.process(amount, **how)}, {' || '.join(steps)})"


@lru_cache(maxsize=16_384)
def apply_steps(nano: int | None, steps: str) -> int | None:
    """Return the same in Python, of steps such as `*0.88 =4000 `."""
    if nano is None or not steps:
        return nano
    amount = Fraction(nano)
    for step in steps.split():
        amount = Fraction(step[1:]) if step[0] == "=" else amount * Fraction(step[1:])
    return (2 * amount.numerator + amount.denominator) // (2 * amount.denominator)


class after_last(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """What comes after the last separator (one character) of a text; the whole text without one."""

    type = String()
    inherit_cache = True


_compile_by_template("postgresql", after_last, "reverse(split_part(reverse({0}), {1}, 1))")


class is_among(GenericFunction[bool]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """Whether a value is among the rows of a subquery of one column, which is read first, once.

    PostgreSQL estimates that thousands of sizes match a pattern, of which few do: it then reads all prices in their
    order to look for one of these, where an array has it search the index for each.
    """

    type = Boolean()
    inherit_cache = True

    def self_group(self, against: OperatorType | None = None) -> Self:
        """Return it as it is: SQLite, told to compare it with 1, would search no index."""
        del against
        return self


_compile_by_template("postgresql", is_among, "{0} = any(array{1})")
_compile_by_template("sqlite", is_among, "{0} in {1}")


class is_listed(is_among):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """Whether a text is in a JSON array of texts, which is a parameter: one statement serves any number of them."""

    inherit_cache = True


_compile_by_template("postgresql", is_listed, "{0} = any(array(select json_array_elements_text(cast({1} as json))))")
_compile_by_template("sqlite", is_listed, "{0} in (select value from json_each({1}))")

SEPARATOR = "\x1f"
"""Stands between joined texts: no text of a catalog has control characters other than tabs and line ends."""


class joined_texts(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """The values of a group, which are not null, as texts with SEPARATOR between them, in any order."""

    type = String()
    inherit_cache = True


_compile_by_template("postgresql", joined_texts, f"string_agg(cast({{0}} as text), '{SEPARATOR}')")
# The separator is no parameter, which SQLite would copy for each value.
_compile_by_template("sqlite", joined_texts, f"group_concat({{0}}, '{SEPARATOR}')")


def register(connection: sqlite3.Connection) -> None:
    """Register the functions on an SQLite connection; PostgreSQL has expressions for all of them."""
    functions: dict[str, tuple[int, Callable[..., Any]]] = {
        "exact_ratio": (3, ratio),
        "usd_text": (1, to_usd_text),
        "usd_of": (1, lambda nano: None if nano is None else nano / NANO),
        "adjusted_nano": (2, apply_steps),
        "after_last": (2, lambda text, separator: text.rpartition(separator)[2]),
    }
    for name, (arguments, function) in functions.items():
        connection.create_function(name, arguments, function, deterministic=True)
