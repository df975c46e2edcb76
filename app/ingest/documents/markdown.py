"""Markdown to blocks: markdown-it-py does the parsing; what pages get wrong about tables is put right before."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.ingest.documents.blocks import (
    HTML_BREAK,
    LINE_END,
    Blocks,
    Include,
    MarkdownTable,
    Passage,
    PassageKind,
    TableCell,
    TableRow,
    repair_layout,
    split_row,
)

_TAG = re.compile(r"<\s*(/?)\s*([a-zA-Z]+)")
_FOOTNOTE = re.compile(r"^[\s(]*(\d{1,2}|[*†‡§]+|[a-e])(?:\s*,\s*\d{1,2})*[\s)]*$")
_TRAILING_MARK = re.compile(r"[\s*†‡§¹²³⁴⁵⁶⁷⁸⁹]+$")


def to_plain(tokens: Sequence[Token]) -> tuple[str, tuple[str, ...]]:
    """Give the text and the footnote marks of an inline token's children.

    A superscript of a digit or sign is a footnote mark; any other is text, as in `24<sup>vCores` (left open).
    """
    parts: list[str] = []
    marks: list[str] = []
    raised: list[str] | None = None
    for token in tokens:
        if token.type == "html_inline" and (tag := _TAG.match(token.content)) and tag[2].lower() == "sup":
            _end_superscript(raised, parts, marks)
            raised = None if tag[1] else []
            continue
        (parts if raised is None else raised).append(_text(token))
    _end_superscript(raised, parts, marks)
    return "".join(parts), tuple(marks)


def to_cell(tokens: Sequence[Token], raw: str) -> TableCell:
    """Read a table's cell; breaks become spaces, a trailing asterisk is a mark."""
    text, marks = to_plain(tokens)
    text = re.sub(r"[ \t\n]+", " ", text).strip(" \v")
    if found := _TRAILING_MARK.search(text):
        marks = (*marks, *found[0].replace(" ", ""))
        text = text[: found.start()]
    return TableCell(text=text, raw=raw.strip(), footnote_marks=marks)


def to_bold(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Give the runs of bold text."""
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


def _end_superscript(raised: list[str] | None, parts: list[str], marks: list[str]) -> None:
    if raised is None:
        return
    text = "".join(raised)
    if _FOOTNOTE.match(text):
        marks.append(text.strip(" ()"))
    elif text.strip():
        parts.append(f" {text}")


_INCLUDE = re.compile(r"\[!INCLUDE\s*\[[^\]]*\]\(\s*([^)\s]+)[^)]*\)\s*\]", re.IGNORECASE)
_PARSER = MarkdownIt("commonmark").enable("table")


@dataclass(slots=True)
class _BlockBuilder:
    """Where the walk through the tokens stands."""

    lines: list[str]
    line_numbers: list[int]
    heading: str = ""
    list_depth: int = 0
    tables: list[MarkdownTable] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    html_tables: list[int] = field(default_factory=list)

    def line_number(self, token: Token) -> int:
        """Give the source line of a token, the first line being 1."""
        return self.line_numbers[token.map[0]] if token.map else 0


def to_blocks(lines: Sequence[str], *, first: int = 1) -> Blocks:
    """Parse a page's lines, the first of which is number `first` of its file."""
    includes = [
        Include(target=target, line=first + offset)
        for offset, line in enumerate(lines)
        for target in _INCLUDE.findall(line)
    ]
    texts, numbers = repair_layout([_INCLUDE.sub("", line) for line in lines], first)
    walk = _BlockBuilder(lines=texts, line_numbers=numbers)
    tokens = _PARSER.parse("\n".join(texts))
    for at, token in enumerate(tokens):
        _visit(walk, tokens, at, token)
    return Blocks(
        tables=tuple(walk.tables),
        passages=tuple(walk.passages),
        includes=tuple(includes),
        html_tables=tuple(walk.html_tables),
    )


def _visit(walk: _BlockBuilder, tokens: list[Token], at: int, token: Token) -> None:
    if token.type in ("bullet_list_open", "ordered_list_open"):
        walk.list_depth += 1
    elif token.type in ("bullet_list_close", "ordered_list_close"):
        walk.list_depth -= 1
    elif token.type == "table_open":
        walk.tables.append(_table(walk, tokens, at))
    elif token.type == "html_block" and "<table" in token.content.lower():
        walk.html_tables.append(walk.line_number(token))
    elif token.type == "inline" and tokens[at - 1].type in ("paragraph_open", "heading_open"):
        _passage(walk, tokens[at - 1], token)


def _passage(walk: _BlockBuilder, opening: Token, token: Token) -> None:
    text, marks = to_plain(token.children or [])
    if opening.type == "heading_open":
        walk.heading = text
    kind: PassageKind = "heading" if opening.type == "heading_open" else "item" if walk.list_depth else "paragraph"
    if text.strip():
        bold = to_bold(token.children or [])
        line = walk.line_number(opening)
        level = int(opening.tag[1]) if kind == "heading" else 0
        walk.passages.append(
            Passage(kind=kind, text=text, line=line, heading=walk.heading, bold=bold, footnote_marks=marks, level=level)
        )


def _table(walk: _BlockBuilder, tokens: list[Token], at: int) -> MarkdownTable:
    rows: list[TableRow] = []
    cells: list[TableCell] = []
    opening = tokens[at]
    for token in tokens[at + 1 :]:
        if token.type == "tr_open":
            opening, cells = token, []
        elif token.type == "inline":
            cells.append(to_cell(token.children or [], token.content))
        elif token.type == "tr_close":
            surplus = _extra_cells(walk, opening, len(cells))
            rows.append(TableRow(line=walk.line_number(opening), cells=tuple(cells), extra_cells=surplus))
        elif token.type == "table_close":
            break
    header, *body = rows
    if body and not any(cell.text for cell in header.cells):
        header, *body = body
    return MarkdownTable(line=header.line, header=header.cells, rows=tuple(body), in_list=walk.list_depth > 0)


def _extra_cells(walk: _BlockBuilder, row: Token, width: int) -> tuple[str, ...]:
    cells = split_row(walk.lines[row.map[0]]) if row.map else []
    return tuple(cell for cell in cells[width:] if cell)
