"""The numbers in a cell: separators of every grouping, fractions, products, and the cells that say nothing."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

NUMBER = r"(?:\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?|\d+(?:\.\d+)?)"
_FRACTIONS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅙": "1/6", "⅛": "1/8"}
_QUOTIENT = re.compile(r"^(\d+)\s*[/⁄]\s*([1-9]\d*)$")
_BLANK = re.compile(
    r"^(?:[-–—−?*\s]*|n\.?\s*/?\s*a\.?|tbd|tba|none|unknown|remote storage only|"
    r"not (?:available|applicable|published|stated|specified))$",
    re.IGNORECASE,
)
_PRODUCT = re.compile(rf"^(\d+)\s*[x×*]\s*({NUMBER})\s*(.*)$", re.IGNORECASE | re.DOTALL)
_SINGLE = re.compile(rf"^({NUMBER})\s*([^\d\s,.].*)?$", re.DOTALL)
_LARGEST_SHARE = 16
_DIGITS = 15
_EITHER = re.compile(r"^[1-9]\d{0,2}\.\d{3}$")
"""A decimal here, a thousand elsewhere: `24.000 Mbps`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number with what follows it; `times` is the 4 of `4 x 800 Gbps`, absent where no product is written."""

    number: Decimal
    rest: str = ""
    times: int | None = None

    @property
    def total(self) -> Decimal:
        """The number, or the product."""
        return self.number * (self.times or 1)


def is_blank(text: str) -> bool:
    """Say whether a cell states nothing: empty, a dash, N/A, to be done."""
    return bool(_BLANK.match(text.strip()))


def to_decimal(text: str) -> Decimal:
    """Read a number with or without separators, `2,00,000` too."""
    return Decimal(text.replace(",", ""))


def to_amount(text: str) -> Amount | None:
    """Read `1,900 GiB`, `4x800`, `2 x 960 GB`; a range or anything else is no amount."""
    text = text.strip()
    if len(text) > 10 * _DIGITS or re.search(rf"\d{{{_DIGITS}}}", text):
        return None
    if product := _PRODUCT.match(text):
        if _is_ambiguous(product[2], product[3]):
            return None
        return Amount(number=to_decimal(product[2]), rest=product[3].strip(), times=int(product[1]))
    if (single := _SINGLE.match(text)) and not _is_ambiguous(single[1], single[2] or ""):
        return Amount(number=to_decimal(single[1]), rest=(single[2] or "").strip())
    return None


def _is_ambiguous(number: str, rest: str) -> bool:
    return bool(_EITHER.match(number)) and not rest.strip().startswith("T")


def to_fraction(text: str) -> Fraction | None:
    """Read `8`, `1/6`, `⅙`, `0.25`, `1 1/2`; `0.33` is a third, because that is what rounds to it."""
    text = text.strip()
    for sign, spelled in _FRACTIONS.items():
        text = text.replace(sign, f" {spelled}").strip()
    whole, _, part = text.rpartition(" ")
    if whole.isdecimal() and _QUOTIENT.match(part):
        return int(whole) + Fraction(part.replace("⁄", "/"))
    if quotient := _QUOTIENT.match(text):
        return Fraction(int(quotient[1]), int(quotient[2]))
    if not re.fullmatch(NUMBER, text):
        return None
    return _share(to_decimal(text))


def _share(number: Decimal) -> Fraction:
    exact = Fraction(number)
    if exact.denominator <= _LARGEST_SHARE:
        return exact
    near = exact.limit_denominator(8)
    digits = -int(number.as_tuple().exponent)
    return near if round(near, digits) == exact else exact
