"""A page of several series: each section that names one and has its own table of sizes is a document of its own.

What a section says of features, GPUs or retirement is said of its sizes only; what stands above the first section
speaks of all series at once, so that nothing of it is taken for one of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

from app.catalog.names import series_key
from app.ingest.documents.blocks import Blocks, Passage
from app.ingest.documents.headers import to_columns
from app.ingest.documents.page import Document, FrontMatter, Page
from app.ingest.documents.retirement import is_retiring
from app.ingest.documents.series import fits, to_series_name
from app.ingest.documents.size_tables import name_column, names_of

_MANY = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Section:
    """The lines from `start` up to `end` of a page; `series` is what its heading names, if it has sizes of it."""

    page: Page
    heading: Passage | None
    start: int
    end: int
    series: str | None = None


def split(document: Document) -> list[Document]:
    """Give the sections of a page of several series, the page itself where it is of one."""
    if document.page.front.first("series"):
        return [document]
    sections = [section for page in document.pages for section in _sections(page)]
    if len({series_key(section.series) for section in sections if section.series}) < _MANY:
        return [document]
    several = {section.page.file for section in sections if section.series}
    own = [section for section in sections if section.page.file in several and section.heading]
    parts = [Document(page=_part(section), included=_included(section, document)) for section in own]
    taken = {page.file for part in parts for page in part.included} | several
    rest = tuple(page for page in document.included if page.file not in taken)
    if document.page.file in several:
        first = _upto(next(section for section in sections if section.page is document.page))
        return [Document(page=first, included=rest), *(_with_retirements(part, first) for part in parts)]
    return [Document(page=document.page, included=rest), *parts]


def _sections(page: Page) -> Iterator[_Section]:
    headings = [passage for passage in page.blocks.passages if passage.kind == "heading"]
    opening = _Section(page=page, heading=None, start=0, end=_last(page))
    depth = 0
    for at, heading in enumerate(headings):
        until = next((later.line for later in headings[at + 1 :] if later.level <= heading.level), _last(page))
        series = _series(page, heading, until)
        named = series is not None or _names_series(heading.text)
        if depth and named and _named(heading.text) == _named(opening.heading.text if opening.heading else ""):
            opening = replace(opening, series=opening.series or series)
            continue
        if named or (depth and heading.level <= depth):
            yield replace(opening, end=heading.line)
            opening = _Section(page=page, heading=heading, start=heading.line, end=_last(page), series=series)
            depth = heading.level
    yield opening


def _series(page: Page, heading: Passage, until: int) -> str | None:
    """Name the series of a heading below which, before the next heading that names one, stand sizes."""
    name = _named(heading.text)
    if name is None:
        return None
    said = _names_series(heading.text)
    sizes = [
        size for table in page.blocks.tables if heading.line < table.line < until
        for column in [name_column(table, to_columns(table.header))] if column
        for size in names_of(table, column)
    ]  # fmt: skip
    fitting = [size for size in sizes if fits(name, size)]
    return name if sizes and (said or len(fitting) == len(sizes)) else None


def _named(text: str) -> str | None:
    """Name the series of a heading; what stands behind it in brackets, `(NVMe)`, makes it no other series."""
    return to_series_name(text) or to_series_name(
        re.sub(r"(?<=series)\s*\([^()]*\)\s*$", "", text, flags=re.IGNORECASE)
    )


def _names_series(text: str) -> bool:
    return "series" in text.lower() and _named(text) is not None


def _last(page: Page) -> int:
    blocks = page.blocks
    lines = [item.line for items in (blocks.tables, blocks.passages, blocks.includes) for item in items]
    return max([*lines, *blocks.unread], default=0) + 1


def _part(section: _Section) -> Page:
    heading = section.heading.text if section.heading else None
    return replace(_upto(section), front=FrontMatter(), heading=heading)


def _with_retirements(part: Document, opening: Page) -> Document:
    """Put what the opening says of retirement into a section: such sentences name the series that they are about."""
    told = tuple(
        passage for passage in opening.blocks.passages if passage.kind != "heading" and is_retiring(passage.text)
    )
    if not told or part.page.file != opening.file:
        return part
    blocks = replace(part.page.blocks, passages=(*part.page.blocks.passages, *told))
    return replace(part, page=replace(part.page, blocks=blocks))


def _upto(section: _Section) -> Page:
    def inside(line: int) -> bool:
        return section.start <= line < section.end

    blocks = section.page.blocks
    kept = Blocks(
        tables=tuple(table for table in blocks.tables if inside(table.line)),
        passages=tuple(passage for passage in blocks.passages if inside(passage.line)),
        includes=tuple(include for include in blocks.includes if inside(include.line)),
        unread=tuple(line for line in blocks.unread if inside(line)),
    )
    return replace(section.page, blocks=kept)


def _included(section: _Section, document: Document) -> tuple[Page, ...]:
    names = {PurePath(item.target).name for item in section.page.blocks.includes if _holds(section, item.line)}
    return tuple(page for page in document.included if PurePath(page.file).name in names and page != section.page)


def _holds(section: _Section, line: int) -> bool:
    return section.start <= line < section.end
