"""Functions that SQLite lacks and PostgreSQL has expressions for: exact ratios and dollars, rules, parts of texts.

`app.db.dialects` writes their calls.
"""

import sqlite3
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

DECIMALS = 9
"""Decimal places of a ratio, rounded half away from zero."""

NANO: int = 10**DECIMALS
"""Nano-dollars in a dollar."""

MAX_EXACT_NANO_USD = 1e6
"""Below this a double of at most nine decimals is exact when it is counted in nano-dollars."""

SEPARATOR = "\x1f"
"""Stands between joined texts: no text of a catalog has control characters other than tabs and line ends."""

_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_QUANTUM = Decimal(1).scaleb(-DECIMALS)


@lru_cache(maxsize=16_384)
def ratio(usd: float | None, denominator: float | None, numerator: float | None) -> float | None:
    """Return usd * denominator / numerator as a double; None if one of them is None or the numerator is zero.

    Each number is taken as its shortest decimal text, 0.1 as a tenth.
    """
    if usd is None or denominator is None or not numerator:
        return None
    if 0 <= usd < MAX_EXACT_NANO_USD and numerator > 0:
        nano, by, of = round(usd * NANO), int(denominator), int(numerator)
        if nano / NANO == usd and by == denominator and of == numerator:  # as most are: integers are much faster
            return (2 * nano * by + of) // (2 * of) / NANO
    product = _EXACT.multiply(Decimal(repr(usd)), Decimal(repr(denominator)))
    return float(_EXACT.divide(product, Decimal(repr(numerator))).quantize(_QUANTUM, context=_EXACT))


def to_usd_text(usd: float | None) -> str | None:
    """Return a price in dollars as its shortest decimal text: `0.5`, `12`."""
    return None if usd is None else f"{Decimal(repr(usd)).normalize():f}"


@lru_cache(maxsize=16_384)
def apply_steps(nano: int | None, steps: str) -> int | None:
    """Return an amount of nano-dollars after steps such as `*0.88 =4000 `, rounded once, half away from zero."""
    if nano is None or not steps:
        return nano
    amount = Fraction(nano)
    for step in steps.split():
        amount = Fraction(step[1:]) if step[0] == "=" else amount * Fraction(step[1:])
    return (2 * amount.numerator + amount.denominator) // (2 * amount.denominator)


def register(connection: sqlite3.Connection) -> None:
    """Register the functions on an SQLite connection."""
    functions: dict[str, tuple[int, Callable[..., Any]]] = {
        "exact_ratio": (3, ratio),
        "usd_text": (1, to_usd_text),
        "usd_of": (1, lambda nano: None if nano is None else nano / NANO),
        "adjusted_nano": (2, apply_steps),
        "after_last": (2, lambda text, separator: text.rpartition(separator)[2]),
    }
    for name, (arguments, function) in functions.items():
        connection.create_function(name, arguments, function, deterministic=True)
