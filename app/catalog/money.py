"""Amounts of US dollars, which both databases keep exactly: prices are stored as nano-dollars."""

from decimal import Decimal

SIGNIFICANT_DIGITS = 15
"""A double keeps this many decimal digits, so SQLite's REAL loses nothing of a price."""
USD_DECIMALS = 9
"""PostgreSQL keeps this many decimals of a price, and as many digits before them."""


def is_exact(usd: Decimal) -> bool:
    """Return whether both databases keep a price to its last digit."""
    plain = usd.normalize()
    _, digits, exponent = plain.as_tuple()
    return len(digits) <= SIGNIFICANT_DIGITS and plain.adjusted() < USD_DECIMALS and -int(exponent) <= USD_DECIMALS


NANO_USD: int = 10**USD_DECIMALS
"""Nano-dollars in a US dollar."""
_DECIMAL_NANO_USD = Decimal(NANO_USD)


def to_nano_usd(usd: Decimal) -> int:
    """Return a price in nano-dollars; raises ValueError for one with more decimals."""
    scaled = usd * _DECIMAL_NANO_USD
    nano = int(scaled)
    if nano != scaled:
        raise ValueError(f"{usd} has more than {USD_DECIMALS} decimals")
    return nano


def to_usd_text(nano: int) -> str:
    """Return nano-dollars as the shortest decimal text of dollars."""
    return f"{Decimal(nano).scaleb(-USD_DECIMALS).normalize():f}"
