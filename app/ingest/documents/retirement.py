"""Retirement dates of sizes and series: in sentences about a page's own series, and in tables that list many series."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from app.catalog.names import series_key
from app.ingest.documents.blocks import MarkdownTable
from app.ingest.documents.columns import header_key
from app.ingest.documents.page import Finding, Sentence, SourcePage
from app.ingest.documents.series import to_series_name
from app.ingest.documents.values import find_date, find_slashed_dates, is_blank

_RETIRES = re.compile(
    r"\b(?:will be retired|planned to retire|(?:has|have|was|were|is|are) (?:being )?retired?|retires?|"
    r"(?:be|is|are) retiring|scheduled to retire|(?:scheduled|planned|set|slated) for retirement)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|n't|doesn't|won't)\b", re.IGNORECASE)
_THESE_SIZES = re.compile(
    r"^(?:the|this|these)\s+(?:vm\s+)?(?:sizes?|series)\b|\b(?:this|these)\s+(?:vm\s+)?(?:sizes?|series)\b",
    re.IGNORECASE,
)
_SERIES_LIST = re.compile(
    r"^(?:(?:the|azure|both)\s+)*(?P<names>[A-Z]\w*[\s-]series\b(?:(?:\s*,|\s+and|\s*&|\s*/)+\s*[A-Z]\w*[\s-]series\b)+)",
    re.IGNORECASE,
)
"""Several series at the start of a sentence, `The Ev3-series and Esv3-series`."""
_SERIES_SEPARATOR = re.compile(r"/(?=[A-Z])|\s*,\s*(?:and\s+)?(?=[A-Z])")
_OPENING_DATE = re.compile(r"(?:on|by|from|as of)\s[^.;]{6,20}\d{4},", re.IGNORECASE)
SOME_SIZES = re.compile(r"\b(?:all|the|these|following)\s+(?!vm\b)[a-z]+\s+sizes\s+(?:in|of)\b", re.IGNORECASE)
"""Sizes of a series that a sentence tells from its others: `all isolated sizes in this series`."""
_LIST = re.compile(r"\s*(?:,|\band\b|&|/)\s*", re.IGNORECASE)


_NAME_HEADER = re.compile(r"(?:vms? |virtual machines? )?(?:(?:size )?series(?: name)?|sizes?)")


def is_retiring(text: str) -> bool:
    """Return whether a text gives a retirement date of series that it names (not of `these sizes`)."""
    verb = _RETIRES.search(text)
    if not verb or _THESE_SIZES.search(text[: verb.start()]):
        return False
    return find_date(text[verb.start() :]) is not None


def find_retirement(sentences: Iterable[Sentence], series: str | None) -> tuple[Sentence, date] | None:
    """Return the first sentence that retires the page's own series, and its date, ignoring other series."""
    for sentence in sentences:
        verb = _RETIRES.search(sentence.text)
        if not verb or _NEGATION.search(sentence.text):
            continue
        day = find_date(sentence.text[verb.start() :])
        if day is None and (opening := _OPENING_DATE.match(sentence.text)):
            day = find_date(opening[0])
        if day and _names_series(sentence.text[: verb.start()], series):
            return sentence, day
    return None


def _names_series(subject: str, series: str | None) -> bool:
    if _THESE_SIZES.search(subject):
        return True
    if series is None:
        return False
    if several := _SERIES_LIST.match(subject):
        return series_key(series) in {series_key(name) for name in _LIST.split(several["names"])}
    names = re.split(r"[\s-]+(?:size\s+)?series\b|\s+(?:Azure\s+)?(?:virtual machines|VMs?|sizes?)\b", subject)[0]
    keys = {
        series_key(re.sub(r"^(?:the|azure)\s+", "", name.strip(), flags=re.IGNORECASE)) for name in _LIST.split(names)
    }
    return series_key(series) in keys


def is_retirement_table(table: MarkdownTable) -> bool:
    """Return whether a table lists series or sizes with their retirement dates."""
    keys = [header_key(cell.text) for cell in table.header]
    return any(map(_NAME_HEADER.fullmatch, keys)) and any(_is_date_header(key) for key in keys)


def read_retirement_table(page: SourcePage, table: MarkdownTable) -> Iterator[Finding]:
    """Yield the retirement date of every series or size of the table.

    A date such as 05/06/2021 is read in the order that the other dates of its column show.
    """
    keys = [header_key(cell.text) for cell in table.header]
    names = next(at for at, key in enumerate(keys) if _NAME_HEADER.fullmatch(key))
    dates = next(at for at, key in enumerate(keys) if _is_date_header(key))
    month_first = _is_month_first(row.cells[dates].text for row in table.rows)
    for row in table.rows:
        name, cell = row.cells[names].text, row.cells[dates]
        if is_blank(name) or is_blank(cell.text):
            continue
        day = find_date(cell.text, month_first=month_first)
        if day is None:
            yield page.report("is not a date, or an ambiguous one", row.line, table.header[dates].text, cell.raw)
        elif name.startswith("Standard_"):
            yield page.size_fact(name, "retirement_date", day, cell.raw, row.line)
        else:
            for part in _SERIES_SEPARATOR.split(re.sub(r"\s*\([^)]*\)", "", name)):
                yield page.series_fact(to_series_name(part) or part.strip(), "retirement_date", day, cell.raw, row.line)


def _is_month_first(cells: Iterable[str]) -> bool | None:
    """Return whether the month comes first, by the unambiguous dates of a column; None if they leave it open."""
    single = [next(iter(readings)) for cell in cells if len(readings := find_slashed_dates(cell)) == 1]
    return None if not single or len(set(single)) > 1 else single[0]


def _is_date_header(key: str) -> bool:
    return "retirement date" in key or key in ("retires on", "retired on", "date of retirement")
