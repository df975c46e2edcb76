"""Blocks of a parsed page (tables, passages of text, includes) with their line numbers, and repair of table layout.

Pages break tables in ways that make a Markdown parser miss them; `repair_layout` fixes these without losing count of
the source lines.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

LINE_END, HTML_BREAK = "\n", "\v"
"""Characters of a passage's text: the end of a source line, and a `<br>`, which does not end a source line."""


PassageKind = Literal["heading", "paragraph", "item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell of a table: `text` without markup, `raw` as in the file, its footnote marks (`*`, `1`)."""

    text: str
    raw: str
    footnote_marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row with as many cells as the header; `extra_cells` are those beyond the last column."""

    line: int
    cells: tuple[TableCell, ...]
    extra_cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownTable:
    """A table; `line` is that of its header, `in_list` whether it is inside a list, `heading` the heading above it."""

    line: int
    header: tuple[TableCell, ...]
    rows: tuple[TableRow, ...]
    in_list: bool
    heading: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A heading, paragraph or list item without markup; `bold` are its parts in bold, `heading` the heading above it.

    `level` is 1 to 6 for a heading and 0 for anything else.
    """

    kind: PassageKind
    text: str
    line: int
    heading: str
    bold: tuple[str, ...] = ()
    footnote_marks: tuple[str, ...] = ()
    level: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """A reference to another file whose text is part of the page."""

    target: str
    line: int


MAX_COLUMNS = 200
"""Of a table; the widest of Azure's on sizes has some 20. Every header is looked up many times."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The parsed body of a page.

    `html_tables` and `wide_tables` are the lines of tables that are not read: those in HTML, and those of more than
    MAX_COLUMNS columns.
    """

    tables: tuple[MarkdownTable, ...]
    passages: tuple[Passage, ...]
    includes: tuple[Include, ...]
    html_tables: tuple[int, ...]
    wide_tables: tuple[int, ...] = ()


_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_SPACER = re.compile(r"^\s*(<br\s*/?>\s*)+$|^\s*:::", re.IGNORECASE)


def split_row(line: str) -> list[str]:
    """Split a line of a table into its cells; the outer pipes are optional."""
    cells = [cell.strip() for cell in _PIPE.split(line.strip().removeprefix(">").strip())]
    if cells and not cells[0]:
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1] else cells


def repair_layout(lines: Sequence[str], first: int) -> tuple[list[str], list[int]]:
    """Return the repaired lines and the number of the source line of each.

    Blank lines are put around a table that touches other text, a delimiter row is made as wide as its header, and a
    line of nothing but `<br>` (which would turn the lines below it into an HTML block) is made blank.
    """
    repaired = list(_repaired_lines(lines, first))
    return [text for _, text in repaired], [number for number, _ in repaired]


def _repaired_lines(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    inside = False
    for at, source in enumerate(lines):
        line, number = source, first + at
        opens = not inside and _is_table_header(lines, at)
        if inside and not _PIPE.search(line):
            inside = False
            yield number, ""
        if opens:
            inside = True
            yield number, ""
        elif inside and _DELIMITER.match(line) and _is_table_header(lines, at - 1):
            line = _fit_delimiter_row(line, len(split_row(lines[at - 1])))
        yield number, "" if _SPACER.match(line) else line


def _is_table_header(lines: Sequence[str], at: int) -> bool:
    if at < 0 or at + 1 >= len(lines) or not _PIPE.search(lines[at]):
        return False
    # `---` without a pipe below a line makes it a heading, not a table.
    return bool(_DELIMITER.match(lines[at + 1]) and "|" in lines[at + 1]) and not _DELIMITER.match(lines[at])


def _fit_delimiter_row(line: str, width: int) -> str:
    cells = split_row(line)
    if len(cells) == width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}|{'|'.join(['---'] * width)}|"
