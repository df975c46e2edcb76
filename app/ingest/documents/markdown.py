"""Markdown to blocks of a page (tables, passages of text, includes) with their line numbers.

Pages break tables in ways that make a Markdown parser miss them; `repair_layout` fixes these without losing count of
the source lines. markdown-it-py parses what it returns, and tokens become plain text and tables.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

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
            width = len(split_row(lines[at - 1]))
            if len(split_row(line)) != width:
                line = f"{line[: len(line) - len(line.lstrip())]}|{'|'.join(['---'] * width)}|"
        yield number, "" if _SPACER.match(line) else line


def _is_table_header(lines: Sequence[str], at: int) -> bool:
    if at < 0 or at + 1 >= len(lines) or not _PIPE.search(lines[at]):
        return False
    # `---` without a pipe below a line makes it a heading, not a table.
    return bool(_DELIMITER.match(lines[at + 1]) and "|" in lines[at + 1]) and not _DELIMITER.match(lines[at])


_TAG = re.compile(r"<\s*(/?)\s*([a-zA-Z]+)")
_FOOTNOTE = re.compile(r"^[\s(]*(\d{1,2}|[*†‡§]+|[a-e])(?:\s*,\s*\d{1,2})*[\s)]*$")
_TRAILING_MARK = re.compile(r"[\s*†‡§¹²³⁴⁵⁶⁷⁸⁹]+$")


def to_plain(tokens: Sequence[Token]) -> tuple[str, tuple[str, ...]]:
    """Return the text and the footnote marks of an inline token's children.

    A superscript of a digit or sign is a footnote mark; any other is text, as in `24<sup>vCores` (never closed).
    """
    parts: list[str] = []
    marks: list[str] = []
    superscript: list[str] | None = None
    for token in tokens:
        if token.type == "html_inline" and (tag := _TAG.match(token.content)) and tag[2].lower() == "sup":
            _end_superscript(superscript, parts, marks)
            superscript = None if tag[1] else []
            continue
        (parts if superscript is None else superscript).append(_text(token))
    _end_superscript(superscript, parts, marks)
    return "".join(parts), tuple(marks)


def to_cell(tokens: Sequence[Token], raw: str) -> TableCell:
    """Build a table's cell; line ends become spaces, trailing signs such as `*` footnote marks."""
    text, marks = to_plain(tokens)
    text = re.sub(r"[ \t\n]+", " ", text).strip(" \v")
    if mark := _TRAILING_MARK.search(text):
        marks = (*marks, *mark[0].replace(" ", ""))
        text = text[: mark.start()]
    return TableCell(text=text, raw=raw.strip(), footnote_marks=marks)


def to_bold(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the runs of bold text."""
    runs: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "strong_open":
            depth += 1
            runs.append("")
        elif token.type == "strong_close":
            depth -= 1
        elif depth:
            runs[-1] += _text(token)
    return tuple(run.strip(" :.") for run in runs)


def _text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return LINE_END
    if token.type == "html_inline":
        tag = _TAG.match(token.content)
        return HTML_BREAK if tag and tag[2].lower() == "br" else ""
    return token.content


def _end_superscript(superscript: list[str] | None, parts: list[str], marks: list[str]) -> None:
    if superscript is None:
        return
    text = "".join(superscript)
    if _FOOTNOTE.match(text):
        marks.append(text.strip(" ()"))
    elif text.strip():
        parts.append(f" {text}")


_INCLUDE = re.compile(r"\[!INCLUDE\s*\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)\s*\]", re.IGNORECASE)
_PARSER = MarkdownIt("commonmark").enable("table")


_MAX_PIPES = 5 * MAX_COLUMNS


def to_blocks(lines: Sequence[str], *, first: int = 1) -> Blocks:
    """Parse a page's lines, the first of which is number `first` of its file."""
    includes = [
        Include(target=target, line=first + offset)
        for offset, line in enumerate(lines)
        for target in _INCLUDE.findall(line)
    ]
    # The parser makes several objects of each cell: a line of pipes alone would fill the memory.
    endless = [at for at, line in enumerate(lines, first) if line.count("|") > _MAX_PIPES]
    lines = [line.replace("|", " ") if line.count("|") > _MAX_PIPES else line for line in lines]
    texts, line_numbers = repair_layout([_INCLUDE.sub("", line) for line in lines], first)
    tokens = _PARSER.parse("\n".join(texts))
    builder = _BlockBuilder(lines=texts, line_numbers=line_numbers, tokens=tokens)
    for at in range(len(tokens)):
        builder.add(at)
    return Blocks(
        tables=tuple(builder.tables),
        passages=tuple(builder.passages),
        includes=tuple(includes),
        html_tables=tuple(builder.html_tables),
        wide_tables=tuple(sorted((*builder.wide_tables, *endless))),
    )


@dataclass(slots=True, kw_only=True)
class _BlockBuilder:
    """Collects blocks from the parser's tokens; `heading` and `list_depth` are those at the current token."""

    lines: list[str]
    line_numbers: list[int]
    tokens: list[Token]
    heading: str = ""
    list_depth: int = 0
    tables: list[MarkdownTable] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    html_tables: list[int] = field(default_factory=list)
    wide_tables: list[int] = field(default_factory=list)

    def add(self, at: int) -> None:
        token = self.tokens[at]
        if token.type in ("bullet_list_open", "ordered_list_open"):
            self.list_depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            self.list_depth -= 1
        elif token.type == "table_open":
            table = self._to_table(at)
            if len(table.header) > MAX_COLUMNS:
                self.wide_tables.append(table.line)
            else:
                self.tables.append(table)
        elif token.type == "html_block" and "<table" in token.content.lower():
            self.html_tables.append(self._line_number(token))
        elif token.type == "inline" and self.tokens[at - 1].type in ("paragraph_open", "heading_open"):
            self._add_passage(self.tokens[at - 1], token.children or [])

    def _line_number(self, token: Token) -> int:
        return self.line_numbers[token.map[0]] if token.map else 0

    def _add_passage(self, opening: Token, inline: Sequence[Token]) -> None:
        text, marks = to_plain(inline)
        kind: PassageKind = "item" if self.list_depth else "paragraph"
        if opening.type == "heading_open":
            kind, self.heading = "heading", text
        if text.strip():
            self.passages.append(
                Passage(
                    kind=kind,
                    text=text,
                    line=self._line_number(opening),
                    heading=self.heading,
                    bold=to_bold(inline),
                    footnote_marks=marks,
                    level=int(opening.tag[1]) if kind == "heading" else 0,
                )
            )

    def _to_table(self, at: int) -> MarkdownTable:
        rows: list[TableRow] = []
        cells: list[TableCell] = []
        opening = self.tokens[at]
        for token in map(self.tokens.__getitem__, range(at + 1, len(self.tokens))):
            if token.type == "tr_open":
                opening, cells = token, []
            elif token.type == "inline":
                cells.append(to_cell(token.children or [], token.content))
            elif token.type == "tr_close":
                # The parser drops cells beyond the last column, so the source line is split again.
                source = split_row(self.lines[opening.map[0]]) if opening.map else []
                extra = tuple(filter(None, source[len(cells) :]))
                rows.append(TableRow(line=self._line_number(opening), cells=tuple(cells), extra_cells=extra))
            elif token.type == "table_close":
                break
        header, *body = rows
        # Some tables begin with an empty header row; their first row holds the headers.
        if body and not any(cell.text for cell in header.cells):
            header, *body = body
        return MarkdownTable(
            line=header.line,
            header=header.cells,
            rows=tuple(body),
            in_list=self.list_depth > 0,
            heading=self.heading,
        )
