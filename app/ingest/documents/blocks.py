"""What a page consists of once its Markdown is parsed: tables, passages of text, includes; each knows its line."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

LINE_END, HTML_BREAK = "\n", "\v"
"""In a passage's text: the end of a source line, and a `<br>` (which ends no source line)."""


PassageKind = Literal["heading", "paragraph", "item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCell:
    """A cell of a table: `text` is without markup, `raw` as in the file, `marks` its footnote marks (`*`, `1`)."""

    text: str
    raw: str
    footnote_marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A row as wide as the header; `surplus` are the cells beyond the last column."""

    line: int
    cells: tuple[TableCell, ...]
    extra_cells: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownTable:
    """A table, and whether it stands inside a list."""

    line: int
    header: tuple[TableCell, ...]
    rows: tuple[TableRow, ...]
    in_list: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A heading, paragraph or list item without markup; `bold` are its words in bold, `heading` what it is under.

    `level` is that of a heading, 1 to 6, and 0 of anything else.
    """

    kind: PassageKind
    text: str
    line: int
    heading: str
    bold: tuple[str, ...] = ()
    footnote_marks: tuple[str, ...] = ()
    level: int = 0

    def line_at(self, offset: int) -> int:
        """Find the source line of a place in the text."""
        return self.line + self.text.count(LINE_END, 0, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """A reference to another file whose text belongs here."""

    target: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The parsed body of a page; `unread` are places where a table stands that is no Markdown table."""

    tables: tuple[MarkdownTable, ...]
    passages: tuple[Passage, ...]
    includes: tuple[Include, ...]
    html_tables: tuple[int, ...]


_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_SPACER = re.compile(r"^\s*(<br\s*/?>\s*)+$|^\s*:::", re.IGNORECASE)


def split_row(line: str) -> list[str]:
    """Split a table's line into its cells, with or without the outer pipes."""
    cells = [cell.strip() for cell in _PIPE.split(line.strip().removeprefix(">").strip())]
    if cells and not cells[0]:
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1] else cells


def repair_layout(lines: Sequence[str], first: int) -> tuple[list[str], list[int]]:
    """Give the mended lines and, for each, the number of the source line that it stands for.

    A table is set apart from what stands directly above or below it, a delimiter row is made as wide as its header,
    and a line of nothing but `<br>` (which would swallow the lines below it as HTML) is made blank.
    """
    texts: list[str] = []
    numbers: list[int] = []
    for number, text in _repaired_lines(lines, first):
        texts.append(text)
        numbers.append(number)
    return texts, numbers


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
    return bool(_DELIMITER.match(lines[at + 1]) and "|" in lines[at + 1]) and not _DELIMITER.match(lines[at])


def _fit_delimiter_row(line: str, width: int) -> str:
    cells = split_row(line)
    if len(cells) == width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}|{'|'.join(['---'] * width)}|"
