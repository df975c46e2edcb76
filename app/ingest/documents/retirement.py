"""When sizes and series retire: sentences about a page's own series, and tables that list many series."""

import re
from collections.abc import Iterable, Iterator
from datetime import date

from app.catalog.names import series_key
from app.ingest.documents.blocks import MarkdownTable, TableRow
from app.ingest.documents.columns import header_key
from app.ingest.documents.page import Finding, Sentence, SourcePage
from app.ingest.documents.series import to_series_name
from app.ingest.documents.values import find_date, find_slashed_dates, is_blank

_RETIRES = re.compile(
    r"\b(?:will be retired|planned to retire|(?:has|have|was|were|is|are) retired?|retires?|"
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
"""Several series that a sentence begins with, `The Ev3-series and Esv3-series`."""
_LIST = re.compile(r"\s*(?:,|\band\b|&|/)\s*", re.IGNORECASE)


def is_retiring(text: str) -> bool:
    """Say whether a text retires series that it names on a day."""
    verb = _RETIRES.search(text)
    if not verb or _THESE_SIZES.search(text[: verb.start()]):
        return False
    return find_date(text[verb.start() :]) is not None


def find_retirement(sentences: Iterable[Sentence], series: str | None) -> tuple[Sentence, date] | None:
    """Find the sentence that retires the page's own series; sentences about others say nothing of it."""
    for sentence in sentences:
        verb = _RETIRES.search(sentence.text)
        if not verb or _NEGATION.search(sentence.text):
            continue
        day = find_date(sentence.text[verb.start() :])
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
    """Say whether a table lists series or sizes with the day on which they retire."""
    keys = [header_key(cell.text) for cell in table.header]
    return bool({"series name", "series", "size series", "size"} & set(keys)) and any(
        _is_date_header(key) for key in keys
    )


def read_retirement_table(page: SourcePage, table: MarkdownTable) -> Iterator[Finding]:
    """State the retirement date of every series (or size) listed; days that can be read in two ways follow the rest."""
    keys = [header_key(cell.text) for cell in table.header]
    names = next(at for at, key in enumerate(keys) if key in ("series name", "series", "size series", "size"))
    dates = next(at for at, key in enumerate(keys) if _is_date_header(key))
    order = _is_month_first(row.cells[dates].text for row in table.rows)
    for row in table.rows:
        if not is_blank(row.cells[dates].text) and not is_blank(row.cells[names].text):
            yield from _row(page, row, (names, dates), order, table.header[dates].text)


def _row(page: SourcePage, row: TableRow, at: tuple[int, int], order: bool | None, header: str) -> Iterator[Finding]:
    name, cell = row.cells[at[0]].text, row.cells[at[1]]
    day = find_date(cell.text, month_first=order)
    if day is None:
        yield page.report("is not a date, or may be two", row.line, header, cell.raw)
    elif re.match(r"Standard_", name):
        yield page.size_fact(name, "retirement_date", day, cell.raw, row.line)
    else:
        for part in re.split(r"/(?=[A-Z])|\s*,\s*(?:and\s+)?(?=[A-Z])", re.sub(r"\s*\([^)]*\)", "", name)):
            series = to_series_name(part) or part.strip()
            yield page.series_fact(series, "retirement_date", day, cell.raw, row.line)


def _is_month_first(cells: Iterable[str]) -> bool | None:
    """Find out whether the column's months stand first, from those of its cells that can be read in one way only."""
    single = [next(iter(readings)) for cell in cells if len(readings := find_slashed_dates(cell)) == 1]
    return None if not single or len(set(single)) > 1 else single[0]


def _is_date_header(key: str) -> bool:
    return "retirement date" in key or key in ("retires on", "retired on", "date of retirement")
