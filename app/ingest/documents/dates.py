"""Dates as pages write them; one that can be read in two ways is left to other evidence."""

import re
from datetime import date

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
    """Find the first date in a text; `month_first` says how `05/06/2021` is to be read, None that nobody knows."""
    for pattern, order in ((_ISO, "ymd"), (_MONTH_FIRST, "mdy"), (_DAY_FIRST, "dmy")):
        if found := pattern.search(text):
            return _named(dict(zip(order, found.groups(), strict=True)))
    found = _SLASHED.search(text)
    readings = slashed_readings(found[0]) if found else {}
    if len(set(readings.values())) == 1:
        return next(iter(readings.values()))
    return None if month_first is None else readings.get(month_first)


def slashed_readings(text: str) -> dict[bool, date]:
    """Give the possible readings of `30/9/25` by whether the month stands first."""
    found = _SLASHED.search(text)
    if not found:
        return {}
    first, second, year = (int(part) for part in found.groups())
    year += _CENTURY if year < _CENTURY else 0
    options = {True: _date(year, first, second), False: _date(year, second, first)}
    return {month_first: day for month_first, day in options.items() if day}


def _named(parts: dict[str, str]) -> date | None:
    month = parts["m"]
    number = int(month) if month.isdecimal() else [name[:3] for name in MONTHS].index(month[:3].lower()) + 1
    return _date(int(parts["y"]), number, int(parts["d"]))


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
