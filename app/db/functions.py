"""A price divided exactly and rounded once, the same on SQLite, by a function of ours, and on PostgreSQL."""

import sqlite3
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import Double, String
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import GenericFunction


class json_text(GenericFunction[str]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A number, a text or a day as JSON text: `5.0`, `"eastus"`, `"2026-09-01"`; `null` for null."""

    type = String()
    inherit_cache = True


@compiles(json_text, "postgresql")
def _compile_json_text(element: json_text, compiler: SQLCompiler, **how: Any) -> str:
    """PostgreSQL writes the shortest text that gives a double back, and a whole one without a point."""
    (value,) = element.clauses
    text = f"to_json({compiler.process(value, **how)})::text"
    if isinstance(value.type, Double):
        text = f"regexp_replace({text}, '^(-?[0-9]+)$', '\\1.0')"
    return f"coalesce({text}, 'null')"


def register_json_text(connection: sqlite3.Connection) -> None:
    """Make the function known to a connection of SQLite, whose own would round a double to 15 digits."""
    connection.create_function("json_text", 1, lambda value: orjson.dumps(value).decode(), deterministic=True)


DECIMALS = 9
"""A ratio is rounded to this many decimal places, half away from zero."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_QUANTUM = Decimal(1).scaleb(-DECIMALS)


class exact_ratio(GenericFunction[float]):  # noqa: N801  # SQL functions are written small, as SQLAlchemy's own are
    """A price x a denominator / a numerator, a double; null where one of them is unknown, or the numerator is zero."""

    type = Double()
    inherit_cache = True


@compiles(exact_ratio, "postgresql")
def _compile_exact_ratio(element: exact_ratio, compiler: SQLCompiler, **how: Any) -> str:
    """PostgreSQL divides numerics with as many digits as it is given; the text of a double is its shortest."""
    usd, denominator, numerator = (f"({compiler.process(part, **how)})::text::numeric" for part in element.clauses)
    quotient = f"({usd} * {denominator})::numeric(80, 40) / nullif({numerator}, 0)"
    return f"round({quotient}, {DECIMALS})::double precision"


@lru_cache(maxsize=16_384)
def ratio(usd: float | None, denominator: float | None, numerator: float | None) -> float | None:
    """The same in Python: every number means what is written of it, 0.1 a tenth."""
    if usd is None or denominator is None or not numerator:
        return None
    product = _EXACT.multiply(Decimal(repr(usd)), Decimal(repr(denominator)))
    return float(_EXACT.divide(product, Decimal(repr(numerator))).quantize(_QUANTUM, context=_EXACT))


def register_exact_ratio(connection: sqlite3.Connection) -> None:
    """Make the function known to a connection of SQLite."""
    connection.create_function("exact_ratio", 3, ratio, deterministic=True)
