"""How differences are shown: a sign, an arrow and a word, so that no colour is needed to tell better from worse."""

from dataclasses import dataclass
from decimal import Decimal

from app.web.rendering import format_amount, format_number

MINUS = "\u2212"
Amount = Decimal | float


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference from the baseline: its text, its percent (empty where unknown), and whether it is better.

    `verdict` is better, worse, or empty where neither is; `arrow` points up for more.
    """

    text: str
    percent: str
    arrow: str
    verdict: str


def signed(text: str, value: Amount) -> str:
    """Return the text of an absolute amount with the sign of the value."""
    return f"{'+' if value > 0 else MINUS if value < 0 else '±'}{text}"


def _size(value: Amount) -> Amount:
    return -value if value < 0 else value


def signed_money(value: Amount) -> str:
    """Return a difference of money without its currency: `+1.20`, `−0.05`."""
    return signed(format_amount(_size(value)), value)


def signed_percent(value: Amount | None) -> str:
    """Return a difference in percent: `+25 %`, `−7.5 %`; empty if it is unknown."""
    return "" if value is None else signed(f"{format_number(_size(value), digits=1)}\u00a0%", value)


def describe(value: Amount, percent: float | None, *, better: int, money: bool) -> Difference:
    """Describe a difference that is not zero; `better` is 1 where more is better, -1 where less is, else 0."""
    text = signed_money(value) if money else signed(format_number(_size(value)), value)
    verdict = "" if not better else "better" if (value > 0) == (better > 0) else "worse"
    return Difference(text, signed_percent(percent), "\u2191" if value > 0 else "\u2193", verdict)
