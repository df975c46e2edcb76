"""Splits a page of several series into documents: one for each section that names a series and has a table of sizes.

Features, GPUs and retirement in a section apply to its sizes only. Text above the first section is about all series at
once, so it is not read as facts of any of them; host specifications there are those of each of them.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, TypeVar

from app.catalog.names import series_key
from app.ingest.documents.blocks import Blocks, Passage
from app.ingest.documents.columns import to_columns
from app.ingest.documents.page import FrontMatter, SourceDocument, SourcePage
from app.ingest.documents.retirement import is_retiring
from app.ingest.documents.series import belongs_to_series, to_series_name
from app.ingest.documents.size_tables import find_name_column, find_names
from app.ingest.documents.specs import is_specs_table

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageSection:
    """The lines of a page from `start` to before `end`; `series` is that of its heading, if sizes of it follow."""

    page: SourcePage
    heading: Passage | None
    start: int
    end: int
    series: str | None = None

    def cut(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Return what is in the section, of blocks or lines in the order of the page."""
        first = bisect_left(items, self.start, key=_line_of)
        return (*items[first : bisect_left(items, self.end, lo=first, key=_line_of)],)


def _line_of(item: Any) -> int:
    line: int = item if isinstance(item, int) else item.line
    return line


def split_by_series(document: SourceDocument) -> list[SourceDocument]:
    """Return a document for each section of a page of several series, else the document itself."""
    if document.page.front.first("series"):
        return [document]
    sections = [section for page in document.pages for section in _sections(page)]
    if len({series_key(section.series) for section in sections if section.series}) <= 1:
        return [document]
    several = {section.page.file for section in sections if section.series}
    own = [section for section in sections if section.page.file in several and section.heading]
    parts = [SourceDocument(page=_to_page(section), included=_included(section, document)) for section in own]
    used = {page.file for part in parts for page in part.included} | several
    rest = tuple(page for page in document.included if page.file not in used)
    if document.page.file in several:
        first = _cut(next(section for section in sections if section.page is document.page))
        return [SourceDocument(page=first, included=rest), *(_with_opening(part, first) for part in parts)]
    return [SourceDocument(page=document.page, included=rest), *parts]


def _sections(page: SourcePage) -> Iterator[_PageSection]:
    headings = [passage for passage in page.blocks.passages if passage.kind == "heading"]
    last = _end_line(page)
    opening = _PageSection(page=page, heading=None, start=0, end=last)
    depth = 0
    for at, heading in enumerate(headings):
        later = (headings[index] for index in range(at + 1, len(headings)))
        until = next((section.line for section in later if section.level <= heading.level), last)
        series = _section_series(page, heading, until)
        named = series is not None or _names_series(heading.text)
        # A second heading with the same name, such as `NDv2-series (NVMe)`, continues the section.
        if (
            depth
            and named
            and _heading_series(heading.text) == _heading_series(opening.heading.text if opening.heading else "")
        ):
            opening = replace(opening, series=opening.series or series)
            continue
        if named or (depth and heading.level <= depth):
            yield replace(opening, end=heading.line)
            opening = _PageSection(page=page, heading=heading, start=heading.line, end=last, series=series)
            depth = heading.level
    yield opening


def _section_series(page: SourcePage, heading: Passage, until: int) -> str | None:
    """Return the series of a heading if a table of its sizes follows before line `until`."""
    name = _heading_series(heading.text)
    if name is None:
        return None
    section = _PageSection(page=page, heading=heading, start=heading.line, end=until)
    sizes = [
        size for table in section.cut(page.blocks.tables)
        for column in [find_name_column(table, to_columns(table.header))] if column
        for size in find_names(table, column)
    ]  # fmt: skip
    fitting = [size for size in sizes if belongs_to_series(name, size)]
    return name if sizes and (_names_series(heading.text) or len(fitting) == len(sizes)) else None


def _heading_series(text: str) -> str | None:
    """Return the series of a heading, ignoring parentheses after it such as `(NVMe)`."""
    return to_series_name(text) or to_series_name(
        re.sub(r"(?<=series)\s*\([^()]*\)\s*$", "", text, flags=re.IGNORECASE)
    )


def _names_series(text: str) -> bool:
    return "series" in text.lower() and _heading_series(text) is not None


def _end_line(page: SourcePage) -> int:
    blocks = page.blocks
    lines = [item.line for items in (blocks.tables, blocks.passages, blocks.includes) for item in items]
    return max([*lines, *blocks.html_tables, *blocks.wide_tables], default=0) + 1


def _to_page(section: _PageSection) -> SourcePage:
    heading = section.heading.text if section.heading else None
    return replace(_cut(section), front=FrontMatter(), heading=heading)


def _with_opening(part: SourceDocument, opening: SourcePage) -> SourceDocument:
    """Add what is above the first section to a section: host specifications, and retirements that name their series."""
    specs = tuple(table for table in opening.blocks.tables if is_specs_table(table))
    retirements = tuple(
        passage for passage in opening.blocks.passages if passage.kind != "heading" and is_retiring(passage.text)
    )
    if not (specs or retirements) or part.page.file != opening.file:
        return part
    own = part.page.blocks
    blocks = replace(own, tables=(*specs, *own.tables), passages=(*own.passages, *retirements))
    return replace(part, page=replace(part.page, blocks=blocks))


def _cut(section: _PageSection) -> SourcePage:
    blocks = section.page.blocks
    kept = Blocks(
        tables=section.cut(blocks.tables),
        passages=section.cut(blocks.passages),
        includes=section.cut(blocks.includes),
        html_tables=section.cut(blocks.html_tables),
        wide_tables=section.cut(blocks.wide_tables),
    )
    return replace(section.page, blocks=kept)


def _included(section: _PageSection, document: SourceDocument) -> tuple[SourcePage, ...]:
    names = {PurePath(item.target).name for item in section.cut(section.page.blocks.includes)}
    return tuple(page for page in document.included if PurePath(page.file).name in names and page != section.page)
