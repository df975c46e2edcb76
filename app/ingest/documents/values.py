"""Text to values: lines of bytes, dates, numbers with separators, fractions, products, units and their conversion."""

import codecs
import re
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Literal, NamedTuple

import ftfy

from app.catalog.fields import FactValue


class FieldValue(NamedTuple):
    """A field's value as a cell or sentence states it; `note` says how it was computed (`8 x 32 GiB`)."""

    field: str
    value: FactValue
    note: str | None = None


NUMBER_WORDS = {"one": 1, "two": 2, "four": 4, "eight": 8, "sixteen": 16}
"""Counts that pages write as words."""

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_ISO = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_SLASHED = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\d/])")
_MONTH = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\.?,?\s+(\d{{4}})\b", re.IGNORECASE)
_CENTURY = 2000


def find_date(text: str, *, month_first: bool | None = True) -> date | None:
    """Return the first date in a text, None where there is none or it is ambiguous.

    `month_first` decides how `05/06/2021` is read; with None such a date is ambiguous.
    """
    for pattern, order in ((_ISO, "ymd"), (_MONTH_FIRST, "mdy"), (_DAY_FIRST, "dmy")):
        if match := pattern.search(text):
            parts = dict(zip(order, match.groups(), strict=True))
            month = parts["m"]
            number = int(month) if month.isdecimal() else [name[:3] for name in MONTHS].index(month[:3].lower()) + 1
            return _valid_date(int(parts["y"]), number, int(parts["d"]))
    match = _SLASHED.search(text)
    readings = find_slashed_dates(match[0]) if match else {}
    if len(set(readings.values())) == 1:
        return next(iter(readings.values()))
    return None if month_first is None else readings.get(month_first)


def find_slashed_dates(text: str) -> dict[bool, date]:
    """Return the valid dates that `30/9/25` can mean, by whether the month comes first."""
    match = _SLASHED.search(text)
    if not match:
        return {}
    first, second, year = (int(part) for part in match.groups())
    year += _CENTURY if year < _CENTURY else 0
    options = {True: _valid_date(year, first, second), False: _valid_date(year, second, first)}
    return {month_first: day for month_first, day in options.items() if day}


def _valid_date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


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
_MAX_DENOMINATOR = 16
_MAX_DIGITS = 15
_DECIMAL_OR_THOUSANDS = re.compile(r"^[1-9]\d{0,2}\.\d{3}$")
"""`24.000 Mbps` may be 24 or, with a point as thousands separator, 24,000."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """A number and the text after it; `times` is the 4 of `4 x 800 Gbps`, None without a product."""

    number: Decimal
    suffix: str = ""
    times: int | None = None

    @property
    def total(self) -> Decimal:
        """Return the number, multiplied by `times` if there is one."""
        return self.number * (self.times or 1)

    def unit(self, default: str | None = None) -> str | None:
        """Return the unit written after the number, else `default` (the unit of the column's header)."""
        return next(iter(find_units(self.suffix)), default)

    def product_note(self, number: Decimal, unit: str) -> str | None:
        """Return `4 x 800 Gbps` as the note of a value computed from a product, None without a product."""
        return None if self.times is None else f"{self.times} x {number} {unit}"


def is_blank(text: str) -> bool:
    """Return whether a cell holds no value: empty, a dash, `N/A`, `TBD`."""
    return bool(_BLANK.match(text.strip()))


def to_decimal(text: str) -> Decimal:
    """Parse a number with or without separators, including Indian grouping (`2,00,000`)."""
    return Decimal(text.replace(",", ""))


def to_amount(text: str) -> Amount | None:
    """Parse `1,900 GiB`, `4x800`, `2 x 960 GB`; return None for a range or anything else."""
    text = text.strip()
    # No figure of a size has as many digits.
    if len(text) > 10 * _MAX_DIGITS or re.search(rf"\d{{{_MAX_DIGITS}}}", text):
        return None
    if product := _PRODUCT.match(text):
        if _is_ambiguous(product[2], product[3]):
            return None
        return Amount(number=to_decimal(product[2]), suffix=product[3].strip(), times=int(product[1]))
    if (single := _SINGLE.match(text)) and not _is_ambiguous(single[1], single[2] or ""):
        return Amount(number=to_decimal(single[1]), suffix=(single[2] or "").strip())
    return None


def _is_ambiguous(number: str, suffix: str) -> bool:
    # `1.024 TB` and `3.200 Tbps` cannot mean thousands: no size has that much.
    return bool(_DECIMAL_OR_THOUSANDS.match(number)) and not suffix.strip().startswith("T")


def to_fraction(text: str) -> Fraction | None:
    """Parse `8`, `1/6`, `⅙`, `0.25`, `1 1/2`; `0.33` becomes 1/3, the simplest fraction that rounds to it."""
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
    number = to_decimal(text)
    exact, digits = Fraction(number), -int(number.as_tuple().exponent)
    near = exact.limit_denominator(8)
    return near if exact.denominator > _MAX_DENOMINATOR and round(near, digits) == exact else exact


_INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\u00ad\\x00]")
_SPACES = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_MOJIBAKE = re.compile("[ÂÃâ][^\x00-\x7f]+")
_LINE_END = re.compile(r"\r\n?|\n")


def is_binary(data: bytes) -> bool:
    """Return whether data is not text: a NUL occurs in no page but in nearly every program, image or archive."""
    return b"\x00" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def decode(data: bytes) -> str:
    """Decode UTF-8 or UTF-16; fall back to Windows-1252 instead of raising on invalid bytes."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def to_lines(data: bytes) -> list[str]:
    """Decode and split into lines, repairing mojibake, odd spaces and invisible characters in each.

    Lines are repaired one by one, so that a line keeps its number.
    """
    return [_repair_line(line) for line in _LINE_END.split(decode(data))]


def _repair_line(line: str) -> str:
    if not line.isascii():
        line = _MOJIBAKE.sub(_decode_mojibake, ftfy.fix_encoding(line))
    return _SPACES.sub(" ", _INVISIBLE.sub("", line))


def _decode_mojibake(match: re.Match[str]) -> str:
    """Repair what ftfy leaves alone because it could be intended: `â„¢` in an otherwise valid line."""
    try:
        return match[0].encode("sloppy-windows-1252").decode()
    except UnicodeError:
        return match[0]


Dimension = Literal[
    "memory", "disk", "network", "throughput", "iops", "cache", "bandwidth", "frequency", "count", "text"
]

_GIB = Decimal(2**30)
_THOUSANDTH = Decimal("0.001")
_TOO_LARGE_TO_ROUND = Decimal(10**15)
_RATE_SPELLINGS = (
    (re.compile(r"([KMGT])i?b(?:it)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\b"), r"\1bps"),
    (re.compile(r"([KMGT])(i?)B(?:ytes?)?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\b"), r"\1\2Bps"),
    (re.compile(r"([KMGT])ibps\b"), r"\1bps"),
    (re.compile(r"\b(\d*)\s*Gigabit\b(?:/s)?", re.IGNORECASE), r"\1 Gbps"),
)
_UNIT = re.compile(r"(?<![A-Za-z])(?:[KMGT]i?B|[KMGT]iB?ps|[KMGT]i?Bps|[KMGT]bps|IOPS|[GM]Hz)(?![A-Za-z])")
_UNIT_BY_LOWER_CASE = {
    "gib": "GiB", "gb": "GB", "tib": "TiB", "tb": "TB", "mib": "MiB", "mb": "MB", "g": "GB", "mbps": "Mbps",
    "gbps": "Gbps", "tbps": "Tbps", "iops": "IOPS",
}  # fmt: skip
_UNIT_ANY_CASE = re.compile(r"(?<![A-Za-z])(?:gib|gb|tib|tb|mib|mb|[mgt]bps|iops)(?![A-Za-z])", re.IGNORECASE)

_TO_BASE_UNIT: dict[Dimension, dict[str, Decimal]] = {
    # Pages say GB and GiB for the same number of memory; what is larger than that is converted exactly.
    "memory": {
        "GiB": Decimal(1), "GB": Decimal(1), "TiB": Decimal(1024), "TB": Decimal(10**12) / _GIB,
        "MiB": 1 / Decimal(1024), "MB": 1 / Decimal(1024),
    },
    # Drives are sold in decimal units: 960 GB is 960e9 bytes.
    "disk": {
        "GiB": Decimal(1), "GB": Decimal(10**9) / _GIB, "TiB": Decimal(1024), "TB": Decimal(10**12) / _GIB,
        "MiB": 1 / Decimal(1024),
    },
    "network": {"Mbps": Decimal(1), "Gbps": Decimal(1000), "Tbps": Decimal(10**6)},
    "throughput": {
        "MBps": Decimal(1), "GBps": Decimal(1000), "MiBps": Decimal("1.048576"), "KBps": Decimal("0.001"),
    },
    "iops": {"IOPS": Decimal(1)},
    # Caches are counted in powers of two whatever the unit is called: 60.5 MB are 44 times 1.375 MiB.
    "cache": {"MiB": Decimal(1), "MB": Decimal(1), "GiB": Decimal(1024), "GB": Decimal(1024)},
    "bandwidth": {"MBps": Decimal("0.001"), "GBps": Decimal(1), "TBps": Decimal(1000)},
    "frequency": {"GHz": Decimal(1), "MHz": Decimal("0.001")},
}  # fmt: skip


def normalize_rates(text: str) -> str:
    """Return `text` with rates in one spelling: `Mb/s` as Mbps (bits), `MB/s` as MBps (bytes)."""
    for pattern, replacement in _RATE_SPELLINGS:
        text = pattern.sub(replacement, text)
    return text


def find_units(text: str) -> list[str]:
    """Return the units in a header or cell, in order; with none spelled right, those in the wrong case (`Gib`)."""
    text = normalize_rates(text)
    exact: list[str] = _UNIT.findall(text)
    return exact or [_UNIT_BY_LOWER_CASE[unit.lower()] for unit in _UNIT_ANY_CASE.findall(text)]


def to_base_unit(number: Decimal, unit: str, dimension: Dimension) -> Decimal | None:
    """Convert to the base unit of the dimension without rounding; return None if the unit is not of the dimension.

    Base units are GiB, Mbps, MBps, IOPS, for caches MiB, for memory bandwidth GB/s, and GHz.
    """
    factor = _TO_BASE_UNIT.get(dimension, {}).get(unit)
    return None if factor is None else number * factor


def rounded(number: Decimal) -> Decimal:
    """Round to three decimals: no drive's size is known to a thousandth of a GiB."""
    if abs(number) >= _TOO_LARGE_TO_ROUND:
        return number
    return number.quantize(_THOUSANDTH, rounding=ROUND_HALF_UP).normalize() + 0


def to_integer(number: Decimal) -> int | None:
    """Return a whole number as int, None for any other."""
    return int(number) if number == number.to_integral_value() else None
