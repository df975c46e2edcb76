"""Units of sizes and rates, and what they are in the unit that is kept."""

import re
from decimal import ROUND_HALF_UP, Decimal
from typing import Literal

Dimension = Literal["memory", "disk", "network", "throughput", "iops", "count", "text"]

_GIB = Decimal(2**30)
_THOUSANDTH = Decimal("0.001")
_UNROUNDED = Decimal(10**15)
_SPELLINGS = (
    (re.compile(r"([KMGT])i?b(?:it)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\b"), r"\1bps"),
    (re.compile(r"([KMGT])(i?)B(?:ytes?)?\s*(?:/|per)\s*s(?:ec(?:ond)?)?\b"), r"\1\2Bps"),
    (re.compile(r"([KMGT])ibps\b"), r"\1bps"),
    (re.compile(r"\b(\d*)\s*Gigabit\b(?:/s)?", re.IGNORECASE), r"\1 Gbps"),
)
_UNIT = re.compile(r"(?<![A-Za-z])(?:[KMGT]i?B|[KMGT]iB?ps|[KMGT]i?Bps|[KMGT]bps|IOPS)(?![A-Za-z])")
_LOOSE = {
    "gib": "GiB", "gb": "GB", "tib": "TiB", "tb": "TB", "mib": "MiB", "mb": "MB", "g": "GB", "mbps": "Mbps",
    "gbps": "Gbps", "tbps": "Tbps", "iops": "IOPS",
}  # fmt: skip
_LOOSE_UNIT = re.compile(r"(?<![A-Za-z])(?:gib|gb|tib|tb|mib|mb|[mgt]bps|iops)(?![A-Za-z])", re.IGNORECASE)

_TO_KEPT: dict[Dimension, dict[str, Decimal]] = {
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
}  # fmt: skip


def spelled(text: str) -> str:
    """Write rates in one way: `Mb/s` is Mbps, `MB/s` is MBps; they differ by the letter's case only."""
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return text


def find_units(text: str) -> list[str]:
    """Find the units in a header or cell, in order; a wrong case (`Gib`, `mbps`) is taken where it leaves no doubt."""
    text = spelled(text)
    exact: list[str] = _UNIT.findall(text)
    return exact or [_LOOSE[unit.lower()] for unit in _LOOSE_UNIT.findall(text)]


def to_kept(number: Decimal, unit: str, dimension: Dimension) -> Decimal | None:
    """Convert to GiB, Mbps, MBps or IOPS, unrounded; None where the unit is not of the dimension."""
    factor = _TO_KEPT.get(dimension, {}).get(unit)
    return None if factor is None else number * factor


def rounded(number: Decimal) -> Decimal:
    """Keep three decimals: a thousandth of a GiB is less than any drive's size is known to."""
    if abs(number) >= _UNROUNDED:
        return number
    return number.quantize(_THOUSANDTH, rounding=ROUND_HALF_UP).normalize() + 0


def to_integer(number: Decimal) -> int | None:
    """Give a whole number, None for any other."""
    return int(number) if number == number.to_integral_value() else None
